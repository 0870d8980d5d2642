"""Calls of CouchDB's clients for Python against a server: those that apps make, and that work on CouchDB 3.5.

    clients.py URL NAME PASSWORD-FILE

prints a line for each call that does not do what it does on CouchDB, and ends with 1 then. Views, which a server of stores
has only where an app has registered them, are not among them.
"""

import io
import sys
import time
import traceback
import uuid

URL, NAME, PASSWORD = sys.argv[1], sys.argv[2], open(sys.argv[3]).read().strip()
SCHEME, HOST = URL.split("://")
WITH_PASSWORD = f"{SCHEME}://{NAME}:{PASSWORD}@{HOST}"

failures = []
count = 0


def call(name, work, check=lambda result: True):
    """Makes one call, and looks at what it gives."""
    global count
    count += 1
    try:
        result = work()
        if not check(result):
            failures.append(name)
            print(f"{name}: gives {str(result)[:300]}")
        return result
    except Exception as error:  # what a client throws is its own
        failures.append(name)
        print(f"{name}: {type(error).__name__}: {str(error)[:300]}")
        if "-v" in sys.argv:
            traceback.print_exc()
        return None


def refused(work, *kinds):
    """Whether it is refused with one of these errors."""
    try:
        work()
    except kinds:
        return True
    return False


def fresh():
    return "clients-" + uuid.uuid4().hex


def couchdb_python():
    import couchdb

    server = couchdb.Server(WITH_PASSWORD + "/")
    name = fresh()
    call("couchdb: version", server.version, lambda text: text.count(".") == 2)
    call("couchdb: uuids", lambda: server.uuids(3), lambda ids: len(ids) == 3)
    call("couchdb: tasks", server.tasks, lambda tasks: isinstance(tasks, list))
    db = call("couchdb: create", lambda: server.create(name))
    call("couchdb: create twice", lambda: refused(lambda: server.create(name), couchdb.PreconditionFailed), bool)
    call("couchdb: name in server", lambda: name in server, bool)
    call("couchdb: list of names", lambda: list(server), lambda names: name in names)
    call("couchdb: number of databases", lambda: len(server), lambda number: number > 0)
    call("couchdb: open", lambda: server[name].name, lambda text: text == name)
    call("couchdb: no such database", lambda: refused(lambda: server["no-" + name], couchdb.ResourceNotFound), bool)
    call("couchdb: login", lambda: server.login(NAME, PASSWORD), bool)
    call("couchdb: info", db.info, lambda info: info["db_name"] == name and info["doc_del_count"] == 0)
    doc_id, revision = call("couchdb: save", lambda: db.save({"type": "person", "n": 1, "name": "Robin"}))
    call("couchdb: set", lambda: db.__setitem__("fixed", {"n": 2, "type": "thing"}))
    call("couchdb: get", lambda: db["fixed"]["n"], lambda number: number == 2)
    call("couchdb: get or nothing", lambda: db.get("nothing"), lambda doc: doc is None)
    call("couchdb: id in database", lambda: "fixed" in db and "nothing" not in db, bool)
    call("couchdb: ids", lambda: sorted(db), lambda ids: ids == sorted([doc_id, "fixed"]))
    call("couchdb: number of documents", lambda: len(db), lambda number: number == 2)
    call("couchdb: conflict", lambda: refused(lambda: db.save({"_id": "fixed"}), couchdb.ResourceConflict), bool)
    doc = db["fixed"]
    doc["n"] = 3
    call("couchdb: change", lambda: db.save(doc))
    call("couchdb: batch", lambda: db.save({"_id": "batched"}, batch="ok"))
    call("couchdb: revisions", lambda: [one.rev for one in db.revisions("fixed")], lambda revs: len(revs) == 2)
    call("couchdb: bulk", lambda: db.update([{"_id": f"b{n}", "n": n, "type": "bulk"} for n in range(20)]),
         lambda rows: all(row[0] for row in rows))
    call("couchdb: bulk with a conflict", lambda: db.update([{"_id": "b1"}, {"_id": "other"}]),
         lambda rows: [row[0] for row in rows] == [False, True])
    call("couchdb: all documents", lambda: db.view("_all_docs", startkey="b1", endkey="b19", include_docs=True).rows,
         lambda rows: len(rows) == 11 and rows[0].doc["type"] == "bulk")
    call("couchdb: all documents by keys", lambda: db.view("_all_docs", keys=["b2", "none"]).rows,
         lambda rows: rows[0].id == "b2" and rows[1].error == "not_found")
    call("couchdb: offset", lambda: db.view("_all_docs", limit=2), lambda view: view.offset == 0 and view.total_rows > 20)
    call("couchdb: in batches", lambda: list(db.iterview("_all_docs", 7)), lambda rows: len(rows) == len(db))
    call("couchdb: copy", lambda: db.copy("fixed", "copied"))
    call("couchdb: copy over one", lambda: db.copy("fixed", db["copied"]))
    call("couchdb: copied", lambda: db["copied"]["n"], lambda number: number == 3)
    call("couchdb: attach", lambda: db.put_attachment(db["fixed"], b"hello", "a.txt", "text/plain"))
    call("couchdb: attached", lambda: db.get_attachment("fixed", "a.txt").read(), lambda text: text == b"hello")
    call("couchdb: no attachment", lambda: db.get_attachment("fixed", "none"), lambda content: content is None)
    call("couchdb: a copy has attachments", lambda: db.copy("fixed", "with-file") and db.get_attachment("with-file", "a.txt").read(),
         lambda text: text == b"hello")
    call("couchdb: detach", lambda: db.delete_attachment(db["fixed"], "a.txt"))
    call("couchdb: index", lambda: db.index().__setitem__(("ddoc", "by-n"), ["n"]))
    call("couchdb: indexes", lambda: list(db.index()), lambda all: len(all) == 2)
    call("couchdb: find", lambda: list(db.find({"selector": {"type": "bulk", "n": {"$gte": 5, "$lt": 8}}})),
         lambda found: sorted(one["n"] for one in found) == [5, 6, 7])
    call("couchdb: find sorted", lambda: list(db.find({"selector": {"n": {"$gt": 16}}, "sort": [{"n": "desc"}], "fields": ["n"]})),
         lambda found: [one["n"] for one in found] == [19, 18, 17])
    call("couchdb: explain", lambda: db.explain({"selector": {"n": 5}}), lambda plan: plan["index"]["name"] == "by-n")
    call("couchdb: remove index", lambda: db.index().__delitem__(("ddoc", "by-n")))
    call("couchdb: changes", lambda: db.changes(limit=5), lambda page: len(page["results"]) == 5)
    call("couchdb: changes backwards", lambda: db.changes(descending=True, limit=1)["results"], lambda rows: len(rows) == 1)
    call("couchdb: continuous changes", lambda: list(zip(range(3), db.changes(feed="continuous", heartbeat=1000))),
         lambda rows: len(rows) == 3)
    call("couchdb: design document", lambda: db.save({"_id": "_design/app", "language": "javascript"}))
    call("couchdb: commit", db.commit, bool)
    call("couchdb: compact", db.compact, bool)
    call("couchdb: clean up views", db.cleanup, bool)
    call("couchdb: security", lambda: db.security, lambda object: "admins" in object)
    call("couchdb: purge", lambda: db.purge([db["b3"]]), lambda answer: list(answer["purged"]) == ["b3"])
    call("couchdb: delete", lambda: db.delete(db["b4"]))
    call("couchdb: delete by id", lambda: db.__delitem__("b5"))
    call("couchdb: deleted", lambda: ("b4" in db, "b5" in db, db.info()["doc_del_count"]), lambda said: said[:2] == (False, False) and said[2] >= 2)
    call("couchdb: delete database", lambda: server.delete(name))
    call("couchdb: it is gone", lambda: name not in server, bool)


def pycouchdb_client():
    import pycouchdb

    server = pycouchdb.Server(WITH_PASSWORD + "/", authmethod="basic")
    name = fresh()
    call("pycouchdb: info", lambda: server.info()["couchdb"], lambda text: text == "Welcome")
    db = call("pycouchdb: create", lambda: server.create(name))
    call("pycouchdb: create twice", lambda: refused(lambda: server.create(name), pycouchdb.exceptions.Conflict), bool)
    call("pycouchdb: name in server", lambda: name in server, bool)
    call("pycouchdb: names", lambda: list(server), lambda names: name in names)
    call("pycouchdb: open", lambda: server.database(name))
    call("pycouchdb: no such database",
         lambda: refused(lambda: server.database("no-" + name), pycouchdb.exceptions.NotFound), bool)
    doc = call("pycouchdb: save", lambda: db.save({"_id": "a", "n": 1}), lambda doc: "_rev" in doc)
    call("pycouchdb: get", lambda: db.get("a")["n"], lambda number: number == 1)
    call("pycouchdb: not there", lambda: refused(lambda: db.get("none"), pycouchdb.exceptions.NotFound), bool)
    call("pycouchdb: conflict", lambda: refused(lambda: db.save({"_id": "a", "_rev": "1-00"}), pycouchdb.exceptions.Conflict), bool)
    call("pycouchdb: batch", lambda: db.save({"_id": "batched"}, batch=True))
    call("pycouchdb: bulk", lambda: db.save_bulk([{"_id": f"b{n}", "n": n} for n in range(10)]), lambda docs: len(list(docs)) == 10)
    call("pycouchdb: all", lambda: list(db.all()), lambda rows: len(rows) == 12)
    call("pycouchdb: all as list", lambda: db.all(as_list=True, limit=3), lambda rows: len(rows) == 3)
    call("pycouchdb: all by keys", lambda: db.all(keys=["b1", "b2"], as_list=True), lambda rows: len(rows) == 2)
    call("pycouchdb: number", lambda: len(db), lambda number: number == 12)
    call("pycouchdb: id in database", lambda: "a" in db, bool)
    call("pycouchdb: configuration", db.config, lambda info: info["db_name"] == name)
    call("pycouchdb: changes", lambda: db.changes_list(limit=4), lambda page: len(page[1]) == 4)
    call("pycouchdb: attach", lambda: db.put_attachment(db.get("a"), io.BytesIO(b"hello"), "a.txt", "text/plain"))
    call("pycouchdb: attached", lambda: db.get_attachment(db.get("a"), "a.txt"), lambda content: content == b"hello")
    call("pycouchdb: attached in pieces", lambda: b"".join(db.get_attachment(db.get("a"), "a.txt", stream=True).iter_content(2)),
         lambda content: content == b"hello")
    call("pycouchdb: detach", lambda: db.delete_attachment(db.get("a"), "a.txt"))
    call("pycouchdb: revisions", lambda: list(db.revisions("a")), lambda docs: len(docs) == 3)
    call("pycouchdb: clean up", db.cleanup)
    call("pycouchdb: commit", db.commit)
    call("pycouchdb: compact", db.compact)
    call("pycouchdb: find", lambda: list(db.find({"n": {"$gt": 6}}, limit=5)), lambda docs: len(docs) == 3)
    call("pycouchdb: all in pages", lambda: [len(page) for page in db.mango_pages({"_id": {"$gt": None}}, 5)], lambda sizes: sum(sizes) == 12)
    call("pycouchdb: delete", lambda: db.delete("b1"))
    call("pycouchdb: delete many", lambda: db.delete_bulk([db.get("b2"), db.get("b3")]))
    call("pycouchdb: deleted", lambda: "b1" not in db and "b2" not in db, bool)
    call("pycouchdb: delete database", lambda: server.delete(name))


def cloudant():
    from ibm_cloud_sdk_core.api_exception import ApiException
    from ibmcloudant.cloudant_v1 import (AllDocsQuery, BulkDocs, BulkGetQueryDocument, CloudantV1, Document,
                                         IndexDefinition, IndexField)
    from ibmcloudant import CouchDbSessionAuthenticator

    service = CloudantV1(authenticator=CouchDbSessionAuthenticator(NAME, PASSWORD))
    service.set_service_url(URL)
    name = fresh()

    def status(work):
        try:
            return work().get_status_code()
        except ApiException as error:
            return error.status_code

    def result(work):
        return work().get_result()

    call("cloudant: server", lambda: result(service.get_server_information), lambda info: info["couchdb"] == "Welcome")
    call("cloudant: up", lambda: result(service.get_up_information), lambda info: info["status"] == "ok")
    call("cloudant: session", lambda: result(service.get_session_information), lambda info: info["ok"])
    call("cloudant: uuids", lambda: result(lambda: service.get_uuids(count=2)), lambda info: len(info["uuids"]) == 2)
    call("cloudant: membership", lambda: result(service.get_membership_information), lambda info: info["all_nodes"])
    call("cloudant: tasks", lambda: result(service.get_active_tasks), lambda tasks: isinstance(tasks, list))
    call("cloudant: scheduler's jobs", lambda: result(service.get_scheduler_jobs), lambda info: "jobs" in info)
    call("cloudant: scheduler's documents", lambda: result(service.get_scheduler_docs), lambda info: "docs" in info)
    call("cloudant: create", lambda: status(lambda: service.put_database(db=name)), lambda code: code == 201)
    call("cloudant: create twice", lambda: status(lambda: service.put_database(db=name)), lambda code: code == 412)
    call("cloudant: head", lambda: status(lambda: service.head_database(db=name)), lambda code: code == 200)
    call("cloudant: no such database", lambda: status(lambda: service.head_database(db="no-" + name)), lambda code: code == 404)
    call("cloudant: all databases", lambda: result(lambda: service.get_all_dbs(start_key=f'"{name}"', limit=1)), lambda names: names == [name])
    call("cloudant: database", lambda: result(lambda: service.get_database_information(db=name)),
         lambda info: info["doc_count"] == 0 and info["sizes"]["file"] > 0)
    call("cloudant: databases", lambda: result(lambda: service.post_dbs_info(keys=[name, "none"])),
         lambda rows: rows[0]["info"]["db_name"] == name and rows[1]["error"] == "not_found")
    first = call("cloudant: post document", lambda: result(lambda: service.post_document(db=name, document=Document(_id="a", n=1))),
                 lambda answer: answer["ok"])
    call("cloudant: put document", lambda: status(lambda: service.put_document(db=name, doc_id="p", document=Document(n=2))),
         lambda code: code == 201)
    call("cloudant: batch", lambda: status(lambda: service.put_document(db=name, doc_id="q", document=Document(n=2), batch="ok")),
         lambda code: code == 202)
    call("cloudant: conflict", lambda: status(lambda: service.put_document(db=name, doc_id="p", document=Document(n=2))),
         lambda code: code == 409)
    call("cloudant: head document", lambda: service.head_document(db=name, doc_id="a").get_headers()["ETag"],
         lambda tag: tag == f'"{first["rev"]}"')
    call("cloudant: unchanged", lambda: status(lambda: service.head_document(db=name, doc_id="a", if_none_match=f'"{first["rev"]}"')),
         lambda code: code == 304)
    call("cloudant: get document", lambda: result(lambda: service.get_document(db=name, doc_id="a", revs_info=True, meta=True, local_seq=True)),
         lambda doc: doc["n"] == 1 and doc["_revs_info"] and doc["_local_seq"])
    call("cloudant: not there", lambda: status(lambda: service.get_document(db=name, doc_id="none")), lambda code: code == 404)
    call("cloudant: bulk", lambda: result(lambda: service.post_bulk_docs(
        db=name, bulk_docs=BulkDocs(docs=[Document(_id=f"b{n:03}", n=n, kind="bulk", tags=["x", str(n)]) for n in range(50)]))),
        lambda rows: len(rows) == 50)
    call("cloudant: bulk get", lambda: result(lambda: service.post_bulk_get(db=name, docs=[BulkGetQueryDocument(id="a"), BulkGetQueryDocument(id="none")])),
         lambda answer: len(answer["results"]) == 2)
    call("cloudant: all documents", lambda: result(lambda: service.post_all_docs(db=name, start_key="b010", end_key="b019", inclusive_end=False, include_docs=True)),
         lambda answer: len(answer["rows"]) == 9 and answer["rows"][0]["doc"]["n"] == 10)
    call("cloudant: queries of all documents", lambda: result(lambda: service.post_all_docs_queries(
        db=name, queries=[AllDocsQuery(limit=1), AllDocsQuery(keys=["a"])])), lambda answer: len(answer["results"]) == 2)
    call("cloudant: in pages", lambda: [len(page) for page in service_pages(service, name)], lambda sizes: sum(sizes) == 53)
    call("cloudant: index", lambda: result(lambda: service.post_index(
        db=name, ddoc="idx", name="by-n", type="json", index=IndexDefinition(fields=[IndexField(n="asc")]))),
        lambda answer: answer["result"] == "created")
    call("cloudant: indexes", lambda: result(lambda: service.get_indexes_information(db=name)), lambda answer: answer["total_rows"] == 2)
    call("cloudant: find", lambda: result(lambda: service.post_find(
        db=name, selector={"kind": "bulk", "n": {"$gte": 10, "$lte": 12}}, fields=["_id", "n"], sort=[{"n": "desc"}])),
        lambda answer: [doc["n"] for doc in answer["docs"]] == [12, 11, 10])
    call("cloudant: find elements", lambda: result(lambda: service.post_find(db=name, selector={"tags": {"$elemMatch": {"$eq": "7"}}}, execution_stats=True)),
         lambda answer: len(answer["docs"]) == 1 and answer["execution_stats"]["results_returned"] == 1)
    call("cloudant: find all", lambda: result(lambda: service.post_find(db=name, selector={"_id": {"$gt": None}}, limit=200)),
         lambda answer: len(answer["docs"]) == 53)
    call("cloudant: find in pages", lambda: found_pages(service, name), lambda sizes: sum(sizes) == 50)
    call("cloudant: an operator that is none", lambda: status(lambda: service.post_find(db=name, selector={"n": {"$bogus": 1}})),
         lambda code: code == 400)
    call("cloudant: explain", lambda: result(lambda: service.post_explain(db=name, selector={"n": 3})),
         lambda answer: answer["index"]["name"] == "by-n")
    call("cloudant: remove index", lambda: result(lambda: service.delete_index(db=name, ddoc="idx", type="json", index="by-n")),
         lambda answer: answer["ok"])
    call("cloudant: changes", lambda: result(lambda: service.post_changes(db=name, limit=3)), lambda answer: len(answer["results"]) == 3)
    call("cloudant: changes by selector", lambda: result(lambda: service.post_changes(db=name, filter="_selector", selector={"n": {"$lt": 2}})),
         lambda answer: len(answer["results"]) == 3)
    call("cloudant: changes by ids", lambda: result(lambda: service.post_changes(db=name, filter="_doc_ids", doc_ids=["a"])),
         lambda answer: len(answer["results"]) == 1)
    call("cloudant: changes backwards", lambda: result(lambda: service.post_changes(db=name, descending=True, limit=1)),
         lambda answer: answer["results"][0]["id"] == "b049")
    call("cloudant: changes as a stream", lambda: next(service.post_changes_as_stream(db=name, feed="continuous", limit=1, timeout=1000).get_result().iter_lines()),
         bool)
    call("cloudant: local document", lambda: status(lambda: service.put_local_document(db=name, doc_id="l", document=Document(n=1))),
         lambda code: code == 201)
    call("cloudant: get local document", lambda: result(lambda: service.get_local_document(db=name, doc_id="l")), lambda doc: doc["n"] == 1)
    call("cloudant: delete local document", lambda: status(lambda: service.delete_local_document(db=name, doc_id="l")), lambda code: code == 200)
    call("cloudant: design document", lambda: status(lambda: service.put_design_document(db=name, ddoc="app", design_document={"language": "javascript"})),
         lambda code: code == 201)
    call("cloudant: design documents", lambda: result(lambda: service.post_design_docs(db=name)), lambda answer: [row["id"] for row in answer["rows"]] == ["_design/app"])
    call("cloudant: head design document", lambda: status(lambda: service.head_design_document(db=name, ddoc="app")), lambda code: code == 200)
    call("cloudant: attach", lambda: status(lambda: service.put_attachment(
        db=name, doc_id="file", attachment_name="a.txt", attachment=io.BytesIO(b"hello"), content_type="text/plain")),
        lambda code: code == 201)
    call("cloudant: attached", lambda: service.get_attachment(db=name, doc_id="file", attachment_name="a.txt").get_result().content,
         lambda content: content == b"hello")
    call("cloudant: head attachment", lambda: status(lambda: service.head_attachment(db=name, doc_id="file", attachment_name="a.txt")),
         lambda code: code == 200)
    rev = call("cloudant: revision", lambda: result(lambda: service.get_document(db=name, doc_id="file"))["_rev"])
    call("cloudant: detach", lambda: status(lambda: service.delete_attachment(db=name, doc_id="file", attachment_name="a.txt", rev=rev)),
         lambda code: code == 200)
    call("cloudant: revisions that differ", lambda: result(lambda: service.post_revs_diff(db=name, document_revisions={"a": ["1-00", first["rev"]]})),
         lambda answer: answer["a"]["missing"] == ["1-00"])
    call("cloudant: security", lambda: result(lambda: service.get_security(db=name)), lambda answer: "admins" in answer)
    call("cloudant: delete document", lambda: status(lambda: service.delete_document(db=name, doc_id="a", rev=first["rev"])),
         lambda code: code == 200)
    call("cloudant: delete database", lambda: status(lambda: service.delete_database(db=name)), lambda code: code == 200)


def service_pages(service, name):
    from ibmcloudant import Pagination, PagerType

    return Pagination.new_pagination(service, PagerType.POST_ALL_DOCS, db=name, limit=20).pages()


def found_pages(service, name):
    from ibmcloudant import Pagination, PagerType

    pages = Pagination.new_pagination(service, PagerType.POST_FIND, db=name, limit=20, selector={"kind": "bulk"}).pages()
    return [len(page) for page in pages]


for client in (couchdb_python, pycouchdb_client, cloudant):
    start = time.monotonic()
    try:
        client()
    except Exception as error:  # one that came to nothing keeps no other out
        failures.append(client.__name__)
        print(f"{client.__name__}: {type(error).__name__}: {error}")
        if "-v" in sys.argv:
            traceback.print_exc()
    print(f"{client.__name__}: {time.monotonic() - start:.1f} s", file=sys.stderr)
print(f"{count} calls, {len(failures)} not as on CouchDB")
sys.exit(1 if failures else 0)

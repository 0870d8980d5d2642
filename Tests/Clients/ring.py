"""Three databases in a ring, with random edits, kills and lines that break: a CouchDB (A), a store behind `coffer serve` (B), and
a store that `coffer pull` and `coffer push` bring up to date (C).

    ring.py COUCHDB-URL NAME PASSWORD-FILE COFFER EDITS [SEED]

CouchDB replicates with B both ways by its own replicator, C with A and with B by the commands, all through a proxy that breaks,
stalls or cuts connections at random; commands and servers are killed meanwhile. Then, without faults, all of them exchange
what is left. At last CouchDB replicates A and B continuously both ways, and C pulls continuously from B, while A and B are edited
once more. Every leaf, winner, body and attachment must be the same in all three. Ends with 1 where it isn't.
"""

import base64
import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

COUCH, NAME, PASSWORD_FILE, COFFER = sys.argv[1:5]
EDITS = int(sys.argv[5])
SEED = int(sys.argv[6]) if len(sys.argv) > 6 else random.randrange(1 << 32)
PASSWORD = open(PASSWORD_FILE).read().strip()
DATABASE = "ring-" + uuid.uuid4().hex[:12]
chance = random.Random(SEED)


class Line:
    """A proxy for TCP before a server: it breaks connections at random while it is flaky."""

    def __init__(self, host, port):
        self.place = (host, port)
        self.is_flaky = False
        self.count = self.broken_count = 0
        self.chance = random.Random(SEED ^ port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.lead, args=(client,), daemon=True).start()

    def lead(self, client):
        self.count += 1
        try:
            server = socket.create_connection(self.place, timeout=10)
            # A feed may have nothing to say for longer.
            server.settimeout(None)
        except OSError:
            client.close()
            return
        # So many bytes pass before something happens; nothing where that is none.
        budget = self.chance.choice([0, 50, 500, 5_000, 50_000, None, None, None, None]) if self.is_flaky else None
        state = {"left": budget}
        for left, right in ((client, server), (server, client)):
            threading.Thread(target=self.pump, args=(left, right, state), daemon=True).start()

    def pump(self, source, target, state):
        try:
            while True:
                piece = source.recv(1 << 16)
                if not piece:
                    break
                if state["left"] is not None:
                    if len(piece) > state["left"]:
                        target.sendall(piece[: state["left"]])
                        self.broken_count += 1
                        if self.chance.random() < 0.2:
                            time.sleep(self.chance.random())
                        break
                    state["left"] -= len(piece)
                target.sendall(piece)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Database:
    """A database over HTTP."""

    def __init__(self, url, name, password):
        self.url = f"{url}/{DATABASE}"
        self.field = "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()

    def ask(self, method, path="", body=None, fields=None):
        request = urllib.request.Request(
            self.url + path, method=method, data=None if body is None else
            body if isinstance(body, bytes) else json.dumps(body).encode(),
            headers={"Authorization": self.field, "Content-Type": "application/json", "Accept": "application/json",
                     **(fields or {})})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def json(self, *arguments, **named):
        return json.loads(self.ask(*arguments, **named))

    def leaves(self):
        """Of each document its leaves, of which the first is the one that counts."""
        found = {}
        for row in self.json("GET", "/_changes?style=all_docs")["results"]:
            winner = [row for row in [self.winner(row["id"])] if row]
            revisions = []
            for change in row["changes"]:
                revisions.append(self.revision(row["id"], change["rev"]))
            found[row["id"]] = (winner, sorted(revisions))
        return found

    def winner(self, id):
        try:
            return self.json("GET", "/" + urllib.parse.quote(id, safe=""))["_rev"]
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def revision(self, id, rev):
        path = f"/{urllib.parse.quote(id, safe='')}?rev={rev}"
        document = self.json("GET", path)
        contents = {}
        for name in document.pop("_attachments", {}):
            content = self.ask("GET", f"/{urllib.parse.quote(id, safe='')}/{urllib.parse.quote(name, safe='')}?rev={rev}")
            contents[name] = hashlib.sha256(content).hexdigest()
        return json.dumps([rev, document, contents], sort_keys=True)


class Server:
    """`coffer serve` over a folder, to be killed and begun again."""

    def __init__(self, folder, key, port):
        self.folder, self.key, self.port = folder, key, port
        self.process = None

    def begin(self):
        self.process = subprocess.Popen(
            [COFFER, "serve", self.folder, "--port", str(self.port), "--key", f"raw+file:{self.key}", "--user", NAME,
             "--password", f"file:{PASSWORD_FILE}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if not self.process.stdout.readline():
            raise RuntimeError("coffer serve does not begin")

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


IDS = [f"doc-{number}" for number in range(max(20, EDITS // 12))] + ["ä/ö ü", "a+b&c=d?", "z%2Fz"]


def edit(database, counts):
    """One random edit. What another was faster with, or what nobody answers, is none."""
    id = chance.choice(IDS)
    path = "/" + urllib.parse.quote(id, safe="")
    try:
        rev = None
        try:
            rev = database.json("GET", path)["_rev"]
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
        kind = chance.random()
        query = f"?rev={rev}" if rev else ""
        if kind < 0.12 and rev:
            database.ask("DELETE", path + query)
        elif kind < 0.3:
            content = chance.randbytes(chance.choice([0, 10, 3_000, 70_000]))
            # CouchDB's own replicator waits five minutes for an empty content of a type that it doesn't pack, also from CouchDB.
            type = chance.choice(["text/plain", "image/png"]) if content else "text/plain"
            database.ask("PUT", f"{path}/{chance.choice(['a.bin', 'b%20%C3%A4.txt'])}{query}", content, {"Content-Type": type})
        elif kind < 0.4:
            # A conflict, as another database would bring it.
            suffix = "%032x" % chance.getrandbits(128)
            database.ask("POST", "/_bulk_docs", {"new_edits": False, "docs": [
                {"_id": id, "_rev": f"1-{suffix}", "branch": suffix[:4], "n": chance.random()}]})
        else:
            body = {"n": chance.randrange(1 << 40), "text": "x" * chance.choice([0, 10, 2_000]), "list": [1, {"a": None}]}
            database.ask("PUT", path + query, body)
        counts["edits"] += 1
    except (OSError, urllib.error.URLError, ValueError):
        counts["unanswered"] += 1


def main():
    start = time.monotonic()
    host, port = urllib.parse.urlparse(COUCH).hostname, urllib.parse.urlparse(COUCH).port
    with tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, "key")
        with open(key, "wb") as file:
            file.write(os.urandom(32))
        os.mkdir(f"{folder}/b")
        os.mkdir(f"{folder}/c")
        servers = {name: Server(f"{folder}/{name}", key, free_port()) for name in "bc"}
        lines = {"a": Line(host, port), "b": Line("127.0.0.1", servers["b"].port)}
        direct = {"a": Database(COUCH, NAME, PASSWORD)}
        for name, server in servers.items():
            server.begin()
            direct[name] = Database(f"http://127.0.0.1:{server.port}", NAME, PASSWORD)
        for database in direct.values():
            database.ask("PUT")
        counts = {"edits": 0, "unanswered": 0, "kills": 0, "commands": 0, "replications": 0}
        try:
            rounds(direct, servers, lines, folder, key, counts, start)
            follow(direct, servers, folder, key, counts, start)
            return compare(direct, counts, lines, start)
        finally:
            for server in servers.values():
                server.end(signal.SIGKILL)
            direct["a"].ask("DELETE")


def replicate(counts, source, target, patience):
    """Has CouchDB's replicator bring one side to the other; true where that came to its end in so many seconds.

    It begins a replication that failed only after ever longer pauses: so nobody waits long for one over a line that breaks, and
    the last ones go another way, which is another replication to it.
    """
    request = urllib.request.Request(
        COUCH + "/_replicate", method="POST", data=json.dumps({
            "source": source, "target": target, "retries_per_request": 2, "connection_timeout": 5_000}).encode(),
        headers={"Content-Type": "application/json",
                 "Authorization": "Basic " + base64.b64encode(f"{NAME}:{PASSWORD}".encode()).decode()})
    counts["replications"] += 1
    try:
        with urllib.request.urlopen(request, timeout=patience) as answer:
            result = json.loads(answer.read())
            failed = sum(one["doc_write_failures"] for one in result.get("history", [])[:1])
            return bool(result.get("ok")) and failed == 0
    except (OSError, urllib.error.URLError, ValueError):
        return False


def command(counts, words, key, kills):
    """Runs a command of coffer, and kills it after a while where that is asked for; true where it ended with 0."""
    counts["commands"] += 1
    process = subprocess.Popen([COFFER] + words + ["--key", f"raw+file:{key}", "--user", NAME, "--password", f"file:{PASSWORD_FILE}"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if kills:
        try:
            process.wait(chance.random() * 1.5)
        except subprocess.TimeoutExpired:
            process.kill()
            counts["kills"] += 1
    try:
        _, errors = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        process.kill()
        return False
    if process.returncode not in (0, -9) and not kills:
        print("coffer", words[0], process.returncode, errors.decode(errors="replace")[:300], file=sys.stderr)
    return process.returncode == 0


def rounds(direct, servers, lines, folder, key, counts, start):
    def place(line, is_flaky=True):
        url = f"http://127.0.0.1:{lines[line].port}/{DATABASE}" if is_flaky else direct[line].url
        return {"url": url, "auth": {"basic": {"username": NAME, "password": PASSWORD}}}

    store = f"{folder}/c/{DATABASE}.coffer"

    def round(is_flaky):
        for line in lines.values():
            line.is_flaky = is_flaky
        ends, patience = [place(line, is_flaky) for line in "ab"], 8 if is_flaky else 300
        work = [
            lambda: replicate(counts, ends[0], ends[1], patience), lambda: replicate(counts, ends[1], ends[0], patience)]
        threads, results = [], []
        for one in work:
            thread = threading.Thread(target=lambda one=one: results.append(one()))
            thread.start()
            threads.append(thread)
        if is_flaky and chance.random() < 0.5:
            time.sleep(chance.random())
            servers["b"].end(signal.SIGKILL)
            counts["kills"] += 1
            servers["b"].begin()
        # The store of C is nobody else's meanwhile.
        servers["c"].end(signal.SIGKILL if is_flaky and chance.random() < 0.5 else signal.SIGTERM)
        for line in ("a", "b"):
            for direction in ("pull", "push"):
                kills = is_flaky and chance.random() < 0.4
                results.append(command(counts, [direction, store, place(line)["url"]], key, kills))
        servers["c"].begin()
        if is_flaky:
            for _ in range(5):
                edit(chance.choice(list(direct.values())), counts)
        for thread in threads:
            thread.join()
        print(f"{time.monotonic() - start:.0f} s: {counts}, {results}", file=sys.stderr)
        return all(results)

    while counts["edits"] < EDITS:
        for _ in range(max(10, EDITS // 40)):
            edit(direct[chance.choice("abc")], counts)
        round(True)
    # Three times around, so that what the last one brings to one is with all.
    calm = 0
    for _ in range(12):
        calm = calm + 1 if round(False) else 0
        if calm == 3:
            return
    print("the exchange without faults does not come to its end")


def known(database):
    """Of each document the ids of its leaves."""
    rows = database.json("GET", "/_changes?style=all_docs")["results"]
    return {row["id"]: sorted(change["rev"] for change in row["changes"]) for row in rows}


def follow(direct, servers, folder, key, counts, start):
    """Edits two sides while CouchDB replicates both ways between them, and a command pulls from one, until all are the same."""
    system = Database(COUCH, NAME, PASSWORD)
    system.url = COUCH + "/_replicator"
    try:
        system.ask("PUT")
    except urllib.error.HTTPError as error:
        if error.code != 412:
            raise
    ends = [{"url": direct[name].url, "auth": {"basic": {"username": NAME, "password": PASSWORD}}} for name in "ab"]
    jobs = {f"/{DATABASE}-{number}": {"source": source, "target": target, "continuous": True}
            for number, (source, target) in enumerate((ends, ends[::-1]))}
    servers["c"].end()
    words = [COFFER, "pull", f"{folder}/c/{DATABASE}.coffer", direct["b"].url, "--continuous", "--key", f"raw+file:{key}",
             "--user", NAME, "--password", f"file:{PASSWORD_FILE}"]
    pull = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        for path, job in jobs.items():
            system.ask("PUT", path, job)
        before = counts["edits"]
        for number in range(max(40, EDITS // 20)):
            edit(direct[chance.choice("ab")], counts)
            if number % 40 == 20:
                pull.kill()
                pull.wait()
                counts["kills"] += 1
                pull = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 300
        while known(direct["a"]) != known(direct["b"]) and time.monotonic() < end:
            time.sleep(0.5)
        print(f"{time.monotonic() - start:.0f} s: {counts['edits'] - before} edits followed by CouchDB", file=sys.stderr)
        # What C holds can be asked only where nobody else has it open.
        while True:
            time.sleep(2)
            pull.send_signal(signal.SIGTERM)
            pull.wait()
            servers["c"].begin()
            if known(direct["c"]) == known(direct["b"]) or time.monotonic() > end:
                return
            servers["c"].end()
            pull = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    finally:
        pull.kill()
        for path in jobs:
            try:
                system.ask("DELETE", f"{path}?rev=" + system.json("GET", path)["_rev"])
            except urllib.error.HTTPError:
                pass


def compare(direct, counts, lines, start):
    found = {name: database.leaves() for name, database in direct.items()}
    different = 0
    for id in sorted(set().union(*found.values())):
        all = [found[name].get(id) for name in "abc"]
        if all[0] != all[1] or all[0] != all[2]:
            different += 1
            if different <= 5:
                print(f"{id}: not the same in all three")
                for name, one in zip("abc", all):
                    print(f"  {name}: {str(one)[:400]}")
    leaves = sum(len(one[1]) for one in found["a"].values())
    broken = sum(line.broken_count for line in lines.values())
    print(f"seed {SEED}: {counts['edits']} edits ({counts['unanswered']} without an answer), {counts['kills']} kills, "
          f"{broken} broken connections, {counts['replications']} replications of CouchDB's, {counts['commands']} commands, "
          f"{len(found['a'])} documents with {leaves} leaves, {different} different, {time.monotonic() - start:.0f} s")
    return 1 if different else 0


sys.exit(main())

"""How long exchanges with a CouchDB take, beside CouchDB's own replicator between two of its databases, in one run.

    speed.py COUCHDB-URL NAME PASSWORD-FILE COFFER [ROUNDS]

Each row is measured in turn with what it is compared with, and the medians of the rounds (default: 3) are printed. COFFER is to
be built with optimization.
"""

import base64
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid

COUCH, NAME, PASSWORD_FILE, COFFER = sys.argv[1:5]
ROUNDS = int(sys.argv[5]) if len(sys.argv) > 5 else 3
PASSWORD = open(PASSWORD_FILE).read().strip()
RUN = "speed-" + uuid.uuid4().hex[:8]
FIELD = "Basic " + base64.b64encode(f"{NAME}:{PASSWORD}".encode()).decode()


def ask(method, path, body=None, type="application/json", length=None):
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    fields = {"Authorization": FIELD, "Content-Type": type}
    if length is not None:
        fields["Content-Length"] = str(length)
    request = urllib.request.Request(COUCH + path, method=method, data=data, headers=fields)
    with urllib.request.urlopen(request, timeout=900) as answer:
        return answer.read()


def end(url):
    return {"url": url, "auth": {"basic": {"username": NAME, "password": PASSWORD}}}


def timed(body):
    start = time.monotonic()
    body()
    return time.monotonic() - start


def replicate(source, target):
    """By CouchDB, into a database that it makes anew."""
    name = target.rsplit("/", 1)[1]
    ask("PUT", "/" + name)
    taken = timed(lambda: ask("POST", "/_replicate", {"source": end(source), "target": end(target)}))
    count = json.loads(ask("GET", "/" + name))["doc_count"]
    ask("DELETE", "/" + name)
    return taken, count


class Folder:
    def __init__(self, path):
        self.path = path
        self.key = os.path.join(path, "key")
        with open(self.key, "wb") as file:
            file.write(os.urandom(32))
        self.words = ["--key", f"raw+file:{self.key}", "--user", NAME, "--password", f"file:{PASSWORD_FILE}"]

    def run(self, *words):
        """Runs a command; returns its seconds, and the memory in bytes that it had at most."""
        start = time.monotonic()
        process = subprocess.Popen([COFFER, *words, *self.words], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise RuntimeError(f"coffer {words[0]} ended with {os.waitstatus_to_exitcode(status)}")
        return time.monotonic() - start, usage.ru_maxrss * 1024

    def new(self):
        store = f"{self.path}/store-{uuid.uuid4().hex[:8]}.coffer"
        subprocess.run([COFFER, "create", store, "--key", f"raw+file:{self.key}"], check=True, stdout=subprocess.DEVNULL)
        return store


def row(title, ours, theirs, limit):
    pairs = [(ours(), theirs()) for _ in range(ROUNDS)]
    one, other = (statistics.median(column) for column in zip(*pairs))
    print(f"{title}: {one:.2f} s, CouchDB {other:.2f} s: {one / other:.2f} of it (at most {limit})", flush=True)


def documents(name, count):
    ask("PUT", "/" + name)
    for first in range(0, count, 1_000):
        ask("POST", f"/{name}/_bulk_docs", {"docs": [
            {"_id": f"{number:08}", "name": f"Person {number}", "number": number, "tags": ["a", "b"], "text": "x" * 120}
            for number in range(first, min(first + 1_000, count))]})


def attachments(name, count, size):
    ask("PUT", "/" + name)
    for first in range(0, count, 100):
        ask("POST", f"/{name}/_bulk_docs", {"docs": [
            {"_id": f"{number:08}", "_attachments": {"content.bin": {
                "content_type": "image/png", "data": base64.b64encode(os.urandom(size)).decode()}}}
            for number in range(first, min(first + 100, count))]})


def main(folder):
    (plain, files, large) = (f"{RUN}-plain", f"{RUN}-files", f"{RUN}-large")
    fresh = lambda: f"{COUCH}/{RUN}-{uuid.uuid4().hex[:8]}"
    documents(plain, 10_000)
    attachments(files, 1_000, 10_000)
    source = {name: f"{COUCH}/{name}" for name in (plain, files, large)}

    def pushed(store):
        target = fresh()
        ask("PUT", "/" + target.rsplit("/", 1)[1])
        taken, _ = folder.run("push", store, target)
        ask("DELETE", "/" + target.rsplit("/", 1)[1])
        return taken

    for title, name in (("10,000 documents", plain), ("1,000 attachments of 10 KB", files)):
        stores = []

        def pull():
            stores.append(folder.new())
            return folder.run("pull", stores[-1], source[name])[0]

        row(f"pull of {title}", pull, lambda: replicate(source[name], fresh())[0], 0.5)
        row(f"push of {title}", lambda: pushed(stores[-1]), lambda: replicate(source[name], fresh())[0], 0.5)
    served(stores[-1], source[files], fresh)

    ask("PUT", "/" + large)
    # In pieces: what this process has in memory at most counts as the memory of those that it starts.
    ask("PUT", f"/{large}/film/content.bin", (os.urandom(1_000_000) for _ in range(200)), "image/png", length=200_000_000)
    store = folder.new()
    seconds, pulling = folder.run("pull", store, source[large])
    target = fresh()
    ask("PUT", "/" + target.rsplit("/", 1)[1])
    other, pushing = folder.run("push", store, target)
    ask("DELETE", "/" + target.rsplit("/", 1)[1])
    print(f"an attachment of 200 MB: pull {seconds:.2f} s within {pulling / (1 << 20):.0f} MiB, "
          f"push {other:.2f} s within {pushing / (1 << 20):.0f} MiB (at most 32)")
    for name in (plain, files, large):
        ask("DELETE", "/" + name)


def served(store, source, fresh):
    """CouchDB pulls from `coffer serve` what it pulls from itself."""
    place = os.path.join(os.path.dirname(store), "served")
    os.mkdir(place)
    os.rename(store, f"{place}/files.coffer")
    server = subprocess.Popen(
        [COFFER, "serve", place, "--port", "0", *folder.words], stdout=subprocess.PIPE, text=True)
    url = server.stdout.readline().strip() + "/files"
    row("CouchDB's pull of 1,000 attachments from coffer serve", lambda: replicate(url, fresh())[0],
        lambda: replicate(source, fresh())[0], 1)
    server.terminate()
    server.wait()


with tempfile.TemporaryDirectory() as path:
    folder = Folder(path)
    main(folder)

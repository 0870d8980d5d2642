"""The work of scripts/bench --others from Python: others.py sqlcipher|files DIRECTORY DOCUMENTS ATTACHMENT-COUNT.

`sqlcipher` keeps documents and attachments in an encrypted database, `files` encrypts each attachment into a file of its
own. Neither keeps a history.
"""

import os
import sys
import time

KEY = bytes([7]) * 32


def run(name, work):
    """Prints how long it took."""
    start = time.perf_counter()
    work()
    print(name, time.perf_counter() - start, flush=True)


def with_sqlcipher(directory, documents, contents):
    import sqlcipher3

    database = sqlcipher3.connect(os.path.join(directory, "documents.sqlite"), isolation_level=None)
    database.execute(f"PRAGMA key = \"x'{KEY.hex()}'\"")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("PRAGMA cache_size = -65536")
    database.execute("CREATE TABLE documents (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID")
    database.execute("CREATE TABLE attachments (id INTEGER PRIMARY KEY, content BLOB NOT NULL)")

    def insert():
        for start in range(0, len(documents), 1_000):
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT INTO documents (id, body) VALUES (?, ?)", documents[start : start + 1_000])
            database.execute("COMMIT")

    def read():
        count = 0
        for index in range(len(documents)):
            id = documents[index * 7_919 % len(documents)][0]
            count += len(database.execute("SELECT body FROM documents WHERE id = ?", (id,)).fetchone()[0])
        assert count == sum(len(body) for _, body in documents)

    def list_all():
        count = sum(1 for _, body in database.execute("SELECT id, body FROM documents ORDER BY id") if body)
        assert count == len(documents)

    def update():
        for start in range(0, len(documents) // 10, 1_000):
            database.execute("BEGIN IMMEDIATE")
            for id, _ in documents[start : start + 1_000]:
                (body,) = database.execute("SELECT body FROM documents WHERE id = ?", (id,)).fetchone()
                database.execute("UPDATE documents SET body = ? WHERE id = ?", (body[:-1] + b',"version":2}', id))
            database.execute("COMMIT")

    def write():
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT INTO attachments (id, content) VALUES (?, ?)", enumerate(contents))
        database.execute("COMMIT")

    def read_back():
        for number in range(len(contents)):
            (content,) = database.execute("SELECT content FROM attachments WHERE id = ?", (number,)).fetchone()
            assert len(content) == len(contents[number])

    run("insert", insert)
    run("read", read)
    run("list", list_all)
    run("update", update)
    run("write-attachments", write)
    run("read-attachments", read_back)


def with_files(directory, contents):
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    cipher = AESGCM(KEY)

    def write():
        files = []
        for number, content in enumerate(contents):
            nonce = os.urandom(12)
            file = open(os.path.join(directory, str(number)), "xb")
            file.write(nonce)
            file.write(cipher.encrypt(nonce, content, None))
            file.flush()
            files.append(file)
        for file in files:
            os.fsync(file.fileno())
            file.close()
        folder = os.open(directory, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def read_back():
        for number in range(len(contents)):
            with open(os.path.join(directory, str(number)), "rb") as file:
                nonce = file.read(12)
                assert len(cipher.decrypt(nonce, file.read(), None)) == len(contents[number])

    run("write-attachments", write)
    run("read-attachments", read_back)


def main():
    what, directory, path, count = sys.argv[1:]
    contents = [os.urandom(1_000_000) for _ in range(int(count))]
    if what == "files":
        return with_files(directory, contents)
    with open(path, "rb") as file:
        pairs = [line.rstrip(b"\n").split(b"\t", 1) for line in file]
    with_sqlcipher(directory, [(id.decode(), body) for id, body in pairs], contents)


main()

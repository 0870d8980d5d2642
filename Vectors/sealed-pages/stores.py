"""Whole stores with sealed pages: those of ../stores, converted here, and what makes them invalid.

The database is copied into one whose pages have a reserve, by Python's sqlite3, and sealed. What SQLite writes may differ
from version to version, so a vector that is there isn't written again. README.md says what the files hold.
"""

import hashlib
import hmac
import importlib.util
import io
import json
import pathlib
import sqlite3
import struct
import tarfile
import tempfile

import messages
import reader
import sealed
import tinydatabase

HERE = pathlib.Path(__file__).resolve().parent / "stores"
ELSEWHERE = HERE.parent.parent / "stores"
specification = importlib.util.spec_from_file_location("stores_make", ELSEWHERE / "make.py")
plain = importlib.util.module_from_spec(specification)
specification.loader.exec_module(plain)

VALID = {
    "everything": ("everything", False, "Everything that a store can hold, on sealed pages, and a key of each kind."),
    "keyed-names": ("keyed-names", False, "Sealed pages, and attachment files whose names are keyed."),
    "killed": ("killed", True, "As a kill leaves it: most of it is in the log of sealed frames."),
    "empty": ("empty", False, "No document at all."),
}


def sealed_manifest(data, key_for):
    changed = bytearray(data)
    changed[56] = 3
    changed[960:992] = hashlib.sha256(changed[:960]).digest()
    changed[992:] = hmac.new(key_for("manifest"), changed[:992], "sha256").digest()
    return bytes(changed)


def copied(source, directory, in_log):
    """The pages of a copy of a plain database, and those of each commit of its log with the size after it."""
    old, new = pathlib.Path(directory) / "old", pathlib.Path(directory) / "new"
    old.write_bytes(source)
    new.write_bytes(tinydatabase.empty() + bytes(sealed.RESERVE))
    connection = sqlite3.connect(new, isolation_level=None)
    connection.executescript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
    connection.execute("ATTACH ? AS old", (str(old),))
    schema = connection.execute("SELECT type, name, sql FROM old.sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
    connection.execute("BEGIN")
    for _, _, sql in schema:
        connection.execute(sql)
    connection.execute("INSERT INTO info SELECT * FROM old.info")
    connection.execute("PRAGMA user_version = 1")
    connection.execute("COMMIT")
    tables = [name for kind, name, _ in schema if kind == "table" and name != "info"]
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for name in tables:
        connection.execute(f"INSERT INTO {name} SELECT * FROM old.{name}")
    if not in_log:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file, log = new.read_bytes(), pathlib.Path(f"{new}-wal").read_bytes()
    connection.close()

    pages = [file[at:at + sealed.USABLE] for at in range(0, len(file), sealed.PAGE)]
    frames = []
    for at in range(32, len(log), 24 + sealed.PAGE):
        number, size = struct.unpack(">II", log[at:at + 8])
        frames.append((number, size, log[at + 24:at + 24 + sealed.USABLE]))
    return pages, frames


def sealed_log(sealer, frames):
    salts = hashlib.sha256(b"salts").digest()[:8]
    header = sealed.log_header(0x377F0682, 0, salts)
    data, sums, synced = sealer.seal(sealed.HEADER_OF_LOG, 0, header), struct.unpack(">II", header[24:]), 0
    for index, (number, size, page) in enumerate(frames, 1):
        start = struct.pack(">II", number, size)
        sums = sealed.log_checksum(start + page + bytes(sealed.RESERVE), sums, False)
        data += sealer.seal(sealed.LOG_FRAME, index, start + salts + struct.pack(">IIII", *sums, 0, synced) + page)
        if size:
            synced = index
    return data


def convert(base, in_log):
    """The archive of a store of ../stores on sealed pages."""
    vector = json.loads((ELSEWHERE / "valid" / f"{base}.json").read_text())
    with tempfile.TemporaryDirectory() as directory:
        store = plain.unpack(base, directory)
        manifest = reader.Manifest((store / "MANIFEST").read_bytes())
        key_for = manifest.unlock(plain.key_of(vector["keys"][-1]))
        generation = store / manifest.generation_name
        log = generation / "db.sqlite3-wal"
        source = reader.decrypt((generation / "db.sqlite3").read_bytes(),
                                log.read_bytes() if log.exists() else b"", key_for("database"))
        with tempfile.TemporaryDirectory() as other:
            pages, frames = copied(source, other, in_log)
        sealer = messages.Sealer(base, key_for("pages"), manifest.uuid, manifest.generation, manifest.tag)
        file = b"".join(sealer.page(number, page) for number, page in enumerate(pages, 1))
        files = {
            f"{store.name}/MANIFEST": sealed_manifest(manifest.data, key_for),
            f"{store.name}/{generation.name}/db.sqlite3": file,
            f"{store.name}/{generation.name}/db.sqlite3-wal": sealed_log(sealer, frames) if in_log else None,
            f"{store.name}/{generation.name}/db.sqlite3-shm": None,
        }
    target = io.BytesIO()
    with tarfile.open(ELSEWHERE / "valid" / f"{base}.tar") as old, tarfile.open(fileobj=target, mode="w") as new:
        for member in old.getmembers():
            data = old.extractfile(member).read() if member.isfile() else None
            if member.name in files:
                data = files[member.name]
                if data is None:
                    continue
                member.size = len(data)
            new.addfile(member, data is not None and io.BytesIO(data))
    return target.getvalue(), vector


def unpack(name, directory):
    with tarfile.open(HERE / "valid" / f"{name}.tar") as archive:
        archive.extractall(directory)
    return pathlib.Path(directory) / load(f"valid/{name}")["store"]


def load(name):
    return json.loads((HERE / f"{name}.json").read_text())


class Base(plain.Base):
    """A valid store on sealed pages, to be changed."""

    def __init__(self, name):
        self.name, self.vector = name, load(f"valid/{name}")
        self.directory = tempfile.TemporaryDirectory()
        self.path = unpack(name, self.directory.name)
        self.said = self.vector["keys"][-1] if self.vector["keys"] else None
        self.key = plain.key_of(self.said)
        self.manifest = reader.Manifest((self.path / "MANIFEST").read_bytes())
        self.key_for = self.manifest.unlock(self.key)
        self.generation = self.manifest.generation_name
        self.database = f"{self.generation}/db.sqlite3"
        self.log = self.database + "-wal"

    def sealer(self, session, generation=0, store=None, key=None, tag=0):
        return messages.Sealer(
            session, key or self.key_for("pages"), store or self.manifest.uuid, self.manifest.generation + generation,
            self.manifest.tag ^ tag)

    def plain_pages(self):
        file = sealed.database(self.sealer("").pages, self.read(self.database))
        pages = [file[at:at + sealed.USABLE] for at in range(0, len(file), sealed.PAGE)]
        pages[0] = pages[0][:18] + b"\2\2" + pages[0][20:]
        return pages

    def page(self, number, sealer):
        return {"do": "patch", "file": self.database, "offset": (number - 1) * sealed.PAGE,
                "hex": sealer.page(number, self.plain_pages()[number - 1]).hex()}

    def edited(self, statement):
        """The pages that a statement changes, sealed again."""
        before = self.plain_pages()
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "db.sqlite3"
            file.write_bytes(sealed.database(self.sealer("").pages, self.read(self.database)))
            connection = sqlite3.connect(file)
            connection.execute(statement)
            connection.commit()
            connection.close()
            data = bytearray(file.read_bytes())
        data[18:20] = b"\2\2"
        sealer, changes = self.sealer(statement), []
        for number, old in enumerate(before, 1):
            new = bytes(data[(number - 1) * sealed.PAGE:(number - 1) * sealed.PAGE + sealed.USABLE])
            if new != old:
                changes.append({"do": "patch", "file": self.database, "offset": (number - 1) * sealed.PAGE,
                                "hex": sealer.page(number, new).hex()})
        return changes

    def pages_of(self, text):
        return [index for index, page in enumerate(self.plain_pages()) if set(page[4:1000]) == set(text)]


def invalid():
    """Each invalid vector: its name, base, changes, code, and what differs."""
    store, killed, other = Base("everything"), Base("killed"), Base("empty")
    damaged = "damaged"

    yield "manifest-says-sqlcipher", store, store.patched_manifest(56, b"\1"), damaged
    yield "manifest-profile-4", store, store.patched_manifest(56, b"\4"), damaged
    yield "manifest-profile-3-for-sqlcipher", store, [
        {"do": "write", "file": store.database, "hex": plain.Base("everything").read(store.database).hex()}], damaged
    yield "key-of-another-store", store, [], "wrongKey", {"key": other.said}
    yield "key-with-a-damaged-database", store, store.patch(store.database, 3), "wrongKey", {"key": {"password": "guess"}}
    yield "key-missing", store, [], "keyRequired", {"key": None}

    yield "database-missing", store, [{"do": "remove", "file": store.database}], damaged
    yield "database-empty", store, [{"do": "cut", "file": store.database, "length": 0}], damaged
    yield "database-empty-beside-its-log", killed, [{"do": "cut", "file": killed.database, "length": 0}], damaged
    yield "database-cut-within-page-1", store, [{"do": "cut", "file": store.database, "length": 4095}], damaged
    yield "database-cut-to-page-1", store, [{"do": "cut", "file": store.database, "length": 4096}], damaged
    yield "database-with-a-journal", store, [
        {"do": "write", "file": store.database + "-journal", "hex": "d9d505f920a163d7"}], damaged
    yield "database-with-a-log-elsewhere", store, [
        {"do": "write", "file": "kept", "hex": ""}, {"do": "link", "file": store.log, "to": "../kept"}], damaged
    yield "database-of-another-store", store, [
        {"do": "write", "file": store.database, "hex": other.read(other.database).hex()}], damaged
    for name, offset in [("ciphertext", 99), ("nonce", 4060), ("tag", 4095)]:
        yield f"page-1-{name}", store, store.patch(store.database, offset), damaged
    yield "page-1-zeroed", store, [{"do": "patch", "file": store.database, "offset": 0, "hex": "00" * 4096}], damaged
    yield "page-1-of-another-generation", store, [store.page(1, store.sealer("generation", generation=1))], damaged
    yield "page-1-of-another-tag", store, [store.page(1, store.sealer("tag", tag=1))], damaged
    yield "page-1-of-another-store", store, [store.page(1, store.sealer("store", store=bytes(16)))], damaged
    yield "page-1-under-the-key-of-the-database", store, [
        store.page(1, store.sealer("key", key=store.key_for("database")))], damaged
    yield "binding-of-another-store", store, store.edited("UPDATE info SET value = zeroblob(16) WHERE key = 'store'"), damaged
    yield "tables-of-a-later-version", store, store.edited("PRAGMA user_version = 2"), "unsupportedFormat"
    yield "log-frame-in-the-middle", killed, killed.patch(killed.log, 72 + 4128 + 50), damaged
    yield "log-header-and-first-frame", killed, [
        {"do": "patch", "file": killed.log, "offset": 0, "hex": "00" * (72 + 4128)}], damaged

    def reads(document):
        return {"reads": {"document": document, "intact": "empty"}}

    pages = store.pages_of(b"x")
    yield "body-page", store, store.patch(store.database, pages[0] * 4096 + 2000), damaged, reads("body-20000")
    yield "body-last-page", store, store.patch(store.database, pages[-1] * 4096 + 4090), damaged, reads("body-20000")
    yield "body-pages-swapped", store, [
        {"do": "patch", "file": store.database, "offset": page * 4096,
         "hex": store.read(store.database)[from_ * 4096:(from_ + 1) * 4096].hex()}
        for page, from_ in [(pages[0], pages[1]), (pages[1], pages[0])]], damaged, reads("body-20000")
    yield "winner-missing", store, store.edited("UPDATE documents SET winner = 1000000000 WHERE id = 'nested'"), damaged, \
        reads("nested")


def write():
    for folder in ("valid", "invalid"):
        (HERE / folder).mkdir(parents=True, exist_ok=True)
    for name, (base, in_log, comment) in VALID.items():
        if not (HERE / "valid" / f"{name}.tar").exists():
            archive, vector = convert(base, in_log)
            (HERE / "valid" / f"{name}.tar").write_bytes(archive)
            vector["comment"] = comment
            (HERE / "valid" / f"{name}.json").write_text(json.dumps(vector, ensure_ascii=False, indent=1) + "\n")
            print("wrote", name)
    for name, base, changes, code, *more in invalid():
        target = HERE / "invalid" / f"{name}.json"
        if target.exists():
            continue
        vector = {"base": base.name, "store": base.vector["store"], "key": base.said, "changes": changes, "code": code,
                  "status": reader.STATUS[code]} | (more[0] if more else {})
        target.write_text(json.dumps(vector, ensure_ascii=True, indent=1) + "\n")
        print("wrote", name)


def check():
    """What reader.py says of each store otherwise than its vector."""
    failures, count = [], 0
    for file in sorted(HERE.glob("valid/*.json")):
        vector = load(f"valid/{file.stem}")
        for said in vector["keys"]:
            count += 1
            with tempfile.TemporaryDirectory() as directory:
                try:
                    with reader.Store(unpack(file.stem, directory), plain.key_of(said)) as opened:
                        if reader.canonical(opened.describe()) != reader.canonical(vector["holds"]):
                            failures.append(f"{file.stem}: holds something else")
                except reader.Refused as error:
                    failures.append(f"{file.stem}: {error}")
    for file in sorted(HERE.glob("invalid/*.json")):
        vector, count = load(f"invalid/{file.stem}"), count + 1
        with tempfile.TemporaryDirectory() as directory:
            store = unpack(vector["base"], directory)
            for change in vector["changes"]:
                plain.apply(change, store)
            outcome = plain.outcome_of(vector, store, False)
            if outcome != (vector["code"], vector["status"]):
                failures.append(f"{file.stem}: {outcome} and not {vector['code']}")
    return failures, count

#!/usr/bin/env python3
"""Makes the stores of Vectors/stores that must be refused, out of those that open, and tries all of them.

    python3 Vectors/stores/make.py            writes the invalid vectors that are missing, then does as --check
    python3 Vectors/stores/make.py --check    fails unless ../reader.py says of each store what its vector says

A vector that is there is never written again: what encrypts them is random, and none is changed once a release has it. The
valid stores were written by Coffer (README.md). Needs `cryptography` 50 or later and `sqlcipher3-wheels` from PyPI.
"""

import hashlib
import hmac
import json
import pathlib
import shutil
import sqlite3
import struct
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True

import reader  # noqa: E402
import sqlcipher3  # noqa: E402
from cryptography.cobblestone import Cobblestone256Encryptor  # noqa: E402

sys.setrecursionlimit(10_000)


def key_of(said):
    if said is None:
        return None
    return said["password"] if "password" in said else bytes.fromhex(said["bytes"])


def load(name):
    return json.loads((HERE / f"{name}.json").read_text())


def unpack(name, directory):
    with tarfile.open(HERE / "valid" / f"{name}.tar") as archive:
        archive.extractall(directory)
    return pathlib.Path(directory) / load(f"valid/{name}")["store"]


# --- Changes, as README.md lists them ---

def apply(change, store):
    file = store / change["file"]
    to = store / change.get("to", "")
    match change["do"]:
        case "patch":
            data, new = bytearray(file.read_bytes()), bytes.fromhex(change["hex"])
            data += bytes(max(0, change["offset"] + len(new) - len(data)))
            data[change["offset"]:change["offset"] + len(new)] = new
            file.write_bytes(data)
        case "cut":
            file.write_bytes(file.read_bytes()[:change["length"]])
        case "write":
            file.write_bytes(bytes.fromhex(change["hex"]))
        case "remove":
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        case "rename":
            file.replace(to)
        case "link":
            file.symlink_to(change["to"])
        case "exchange":
            other = store / "exchanged"
            file.replace(other)
            to.replace(file)
            other.replace(to)
        case other:
            raise ValueError(other)


def differences(before, after, file):
    """The pages in which a file differs, as patches."""
    changes = []
    for at in range(0, len(after), 4096):
        if after[at:at + 4096] != before[at:at + 4096]:
            changes.append({"do": "patch", "file": file, "offset": at, "hex": after[at:at + 4096].hex()})
    if len(after) < len(before):
        changes.append({"do": "cut", "file": file, "length": len(after)})
    return changes


class Base:
    """A valid store, to be changed."""

    def __init__(self, name):
        self.name, self.vector = name, load(f"valid/{name}")
        self.directory = tempfile.TemporaryDirectory()
        self.path = unpack(name, self.directory.name)
        self.said = self.vector["keys"][-1] if self.vector["keys"] else None
        self.key = key_of(self.said)
        self.manifest = reader.Manifest((self.path / "MANIFEST").read_bytes())
        self.key_for = self.manifest.unlock(self.key)
        self.generation = self.manifest.generation_name
        self.database = f"{self.generation}/db.sqlite3"

    def content(self, content):
        """The name of the file of a content."""
        with reader.Store(self.path, self.key) as store:
            return f"{self.generation}/attachments/{store.file_name(hashlib.sha1(content).digest())}"

    def read(self, file):
        return (self.path / file).read_bytes()

    def patched_manifest(self, offset, new, code=True):
        """MANIFEST with other bytes, its checksum made to fit, and its authentication code too."""
        data = bytearray(self.manifest.data)
        data[offset:offset + len(new)] = new
        data[960:992] = hashlib.sha256(data[:960]).digest()
        if code:
            data[992:] = hmac.new(self.key_for("manifest"), data[:992], "sha256").digest()
        return [{"do": "write", "file": "MANIFEST", "hex": data.hex()}]

    def edited(self, *statements):
        """The changes that statements make in the database file."""
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "db.sqlite3"
            file.write_bytes(self.read(self.database))
            connection = reader.connect(file.parent, self.key_for("database"), True, directory) \
                if self.key_for else sqlite3.connect(file)
            for statement in statements:
                cursor = connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
                assert cursor.rowcount != 0, statement
            connection.commit()
            connection.close()
            return differences(self.read(self.database), file.read_bytes(), self.database)

    def patch(self, file, offset, mask=0x10):
        byte = self.read(file)[offset] ^ mask
        return [{"do": "patch", "file": file, "offset": offset, "hex": f"{byte:02x}"}]

    def pages_of(self, text):
        """The pages of the database that hold nothing but `text` after their first four bytes."""
        plain = reader.decrypt(self.read(self.database), b"", self.key_for("database"))
        pages = [plain[at:at + 4048] for at in range(0, len(plain), 4096)]
        return [index for index, page in enumerate(pages) if set(page[4:1000]) == set(text)]


def pattern(count, number=0):
    return bytes(((i ^ (i >> 8)) + number) & 255 for i in range(count))


def vectors():
    """Each invalid vector: its name, base, changes, code, and what differs from the base's key."""
    store, all_kinds, plain = Base("keyed-names"), Base("everything"), Base("unencrypted")
    other, late, killed = Base("empty"), Base("changed-key"), Base("killed")
    damaged, gone = "damaged", "notAStore"

    def write(file, data):
        return [{"do": "write", "file": file, "hex": bytes(data).hex()}]

    # MANIFEST. Vectors/manifest has each of its fields.
    yield "manifest-missing", store, [{"do": "remove", "file": "MANIFEST"}], gone
    yield "manifest-empty", store, [{"do": "cut", "file": "MANIFEST", "length": 0}], damaged
    yield "manifest-cut", store, [{"do": "cut", "file": "MANIFEST", "length": 1023}], damaged
    yield "manifest-longer", store, [{"do": "patch", "file": "MANIFEST", "offset": 1024, "hex": "00"}], damaged
    yield "manifest-salt", store, store.patch("MANIFEST", 80), damaged
    yield "manifest-code", store, store.patch("MANIFEST", 1023), damaged
    yield "manifest-salt-and-checksum", store, store.patched_manifest(80, b"\x55", code=False), "wrongKey"
    yield "manifest-uuid-and-checksum", store, store.patched_manifest(16, b"\x55" * 16, code=False), "wrongKey"
    yield "manifest-tag-and-checksum", store, store.patched_manifest(48, b"\x55", code=False), damaged
    yield "manifest-version-2", store, store.patched_manifest(9, b"\2"), "unsupportedFormat"
    yield "manifest-profile-2", store, store.patched_manifest(56, b"\2"), "unsupportedFormat"
    yield "manifest-slot-of-a-later-version", store, store.patched_manifest(65, b"\3"), "unsupportedFormat"
    yield "manifest-of-another-store", store, write("MANIFEST", other.manifest.data), damaged, {"key": other.said}
    yield "manifest-of-an-unencrypted-store", store, write("MANIFEST", plain.manifest.data), "notEncrypted"
    older = store.patched_manifest(40, struct.pack(">Q", store.manifest.sequence)) + \
        store.edited("UPDATE info SET value = value + 1 WHERE key = 'sequence'")
    yield "manifest-older-than-the-database", store, older, damaged
    yield "manifest-names-another-generation", store, store.patched_manifest(48, b"\x55"), damaged
    yield "manifest-is-a-link", store, [
        {"do": "rename", "file": "MANIFEST", "to": "M"}, {"do": "link", "file": "MANIFEST", "to": "M"}], damaged

    # Keys.
    password = {"password": "pa\u0308sswo\u0308rd 1"}
    yield "key-of-another-store", store, [], "wrongKey", {"key": other.said}
    yield "key-is-a-password-for-bytes", store, [], "wrongKey", {"key": {"password": store.said["bytes"]}}
    yield "key-in-other-letters", all_kinds, [], "wrongKey", {"key": {"password": "Pässwörd 1"}}
    yield "key-with-a-blank", all_kinds, [], "wrongKey", {"key": {"password": password["password"] + " "}}
    yield "key-that-was-removed", all_kinds, [], "wrongKey", {"key": {"password": "goes again"}}
    yield "key-before-the-change", late, [], "wrongKey", {"key": {"password": "first"}}
    yield "key-missing", store, [], "keyRequired", {"key": None}
    yield "key-for-an-unencrypted-store", plain, [], "notEncrypted", {"key": store.said}

    # The generation and the database file.
    yield "generation-missing", store, [{"do": "rename", "file": store.generation, "to": "kept"}], damaged
    yield "generation-is-a-link", store, [
        {"do": "rename", "file": store.generation, "to": "kept"},
        {"do": "link", "file": store.generation, "to": "kept"}], damaged
    yield "database-missing", store, [{"do": "remove", "file": store.database}], damaged
    yield "database-empty", store, [{"do": "cut", "file": store.database, "length": 0}], damaged
    yield "database-empty-beside-its-log", killed, [{"do": "cut", "file": killed.database, "length": 0}], damaged
    yield "database-cut", store, [{"do": "cut", "file": store.database, "length": 4095}], damaged
    yield "database-is-a-link", store, [
        {"do": "rename", "file": store.database, "to": "kept"},
        {"do": "link", "file": store.database, "to": "../kept"}], damaged
    yield "database-with-a-journal", store, [
        {"do": "write", "file": store.database + "-journal", "hex": "d9d505f920a163d7"}], damaged
    yield "database-with-a-log-elsewhere", store, [
        {"do": "write", "file": "kept", "hex": ""},
        {"do": "link", "file": store.database + "-wal", "to": "../kept"}], damaged
    yield "database-salt", store, store.patch(store.database, 3), damaged
    yield "database-first-page", store, store.patch(store.database, 100), damaged
    yield "database-first-code", store, store.patch(store.database, 4064), damaged
    pages = store.read(store.database)
    yield "database-pages-swapped", store, [
        {"do": "patch", "file": store.database, "offset": 4096, "hex": (pages[8192:12288] + pages[4096:8192]).hex()}], \
        damaged
    yield "database-of-another-store", store, write(store.database, other.read(other.database)), damaged
    with tempfile.TemporaryDirectory() as directory:
        for name, module, key in [("database-not-encrypted", sqlite3, None),
                                  ("database-as-sqlcipher-4-makes-it", sqlcipher3, store.key_for("database"))]:
            file = f"{directory}/{name}"
            connection = module.connect(file)
            if key:
                connection.execute(f"PRAGMA key = \"x'{key.hex()}'\"")
            connection.executescript(
                "PRAGMA user_version = 1; CREATE TABLE info (key TEXT PRIMARY KEY, value) WITHOUT ROWID;")
            connection.close()
            yield name, store, write(store.database, pathlib.Path(file).read_bytes()), damaged
    yield "tables-of-a-later-version", store, store.edited("PRAGMA user_version = 2"), "unsupportedFormat"
    yield "tables-without-a-version", store, store.edited("PRAGMA user_version = 0"), damaged
    yield "binding-of-another-store", store, store.edited("UPDATE info SET value = zeroblob(16) WHERE key = 'store'"), damaged
    yield "binding-missing", store, store.edited("DELETE FROM info WHERE key = 'store'"), damaged
    yield "binding-without-a-sequence", store, store.edited("DELETE FROM info WHERE key = 'sequence'"), damaged
    yield "binding-of-another-generation", store, store.edited("UPDATE info SET value = 2 WHERE key = 'generation'"), damaged

    # Documents. Each is damaged where it is read, and others are not.
    def reads(document, **more):
        return {"reads": {"document": document, "intact": "empty", **more}}

    pages = all_kinds.pages_of(b"x")
    yield "body-page", all_kinds, all_kinds.patch(all_kinds.database, pages[0] * 4096 + 2000), damaged, reads("body-20000")
    yield "body-last-page", all_kinds, all_kinds.patch(all_kinds.database, pages[-1] * 4096 + 2000), damaged, reads("body-20000")
    change = "UPDATE revisions SET {} WHERE sequence = (SELECT winner FROM documents WHERE id = '{}')"
    other_body = "body = CAST(replace(CAST(body AS TEXT), 'xxx', 'xyx') AS BLOB)"
    yield "body-changed", all_kinds, all_kinds.edited(change.format(other_body, "body-2049")), damaged, reads("body-2049")
    yield "body-digest-missing", all_kinds, all_kinds.edited(change.format("digest = NULL", "body-2049")), damaged, \
        reads("body-2049")
    yield "body-digest-of-a-short-one", all_kinds, all_kinds.edited(change.format("digest = zeroblob(16)", "body-2048")), \
        damaged, reads("body-2048")
    winner = "UPDATE documents SET winner = {} WHERE id = 'nested'"
    yield "winner-missing", all_kinds, all_kinds.edited(winner.format(10**9)), damaged, reads("nested")
    yield "winner-of-another-document", all_kinds, \
        all_kinds.edited(winner.format("(SELECT winner FROM documents WHERE id = 'numbers')")), damaged, reads("nested")
    yield "local-document-changed", all_kinds, all_kinds.edited(
        "UPDATE local_documents SET body = CAST(replace(CAST(body AS TEXT), 'lll', 'lyl') AS BLOB) WHERE id = '_local/two'"
    ), damaged, {"reads": {"localDocument": "_local/two", "intact": "empty"}}

    # Contents.
    def damages(name, base, changes, attachment="40000/ü.bin"):
        return name, base, changes, damaged, {"reads": {"document": "attachments", "attachment": attachment, "intact": "blobs"}}

    content = pattern(40_000)
    file, length = store.content(content), 56 + 40_000 + 48
    sealed = store.read(file)
    assert len(sealed) == length
    yield damages("content-missing", store, [{"do": "remove", "file": file}])
    yield damages("content-empty", store, [{"do": "cut", "file": file, "length": 0}])
    yield damages("content-cut", store, [{"do": "cut", "file": file, "length": length - 1}])
    yield damages("content-without-its-last-chunk", store, [{"do": "cut", "file": file, "length": 56 + 2 * 16_400}])
    yield damages("content-longer", store, [{"do": "patch", "file": file, "offset": length, "hex": "00"}])
    for name, offset in [("salt", 0), ("commitment", 24), ("first-chunk", 56), ("middle-chunk", 56 + 16_400 + 99),
                         ("last-tag", length - 1)]:
        yield damages(f"content-{name}", store, store.patch(file, offset))
    swapped = sealed[56 + 16_400:56 + 2 * 16_400] + sealed[56:56 + 16_400]
    yield damages("content-chunks-swapped", store, [{"do": "patch", "file": file, "offset": 56, "hex": swapped.hex()}])
    context = b"coffer/v1/attachment\0" + store.manifest.uuid + struct.pack(">Q", store.manifest.generation)
    encryptor = Cobblestone256Encryptor(store.key_for("attachments"), context)
    again = encryptor.update(content) + encryptor.finalize()
    assert len(again) == length
    yield damages("content-encrypted-again", store, write(file, again))
    yield damages("content-not-encrypted", store, write(file, content))
    yield damages("content-of-another", store, [
        {"do": "exchange", "file": file, "to": store.content(pattern(16_385))}])
    yield damages("content-is-a-link", store, [
        {"do": "rename", "file": file, "to": "kept"}, {"do": "link", "file": file, "to": "../../kept"}])
    digest = hashlib.sha1(content).digest()
    without = store.edited(("DELETE FROM attachments WHERE digest = ?", (digest,)))
    yield "content-without-a-row", store, without, "attachmentNotFound", damages("", store, [])[4]
    file = plain.content(content)
    yield damages("plain-content-changed", plain, plain.patch(file, 20_000))
    yield damages("plain-content-cut", plain, [{"do": "cut", "file": file, "length": 39_999}])


def write():
    for name, base, changes, code, *more in vectors():
        target = HERE / "invalid" / f"{name}.json"
        if target.exists():
            continue
        vector = {"base": base.name, "store": base.vector["store"], "key": base.said, "changes": changes, "code": code,
                  "status": reader.STATUS[code]} | (more[0] if more else {})
        target.write_text(json.dumps(vector, ensure_ascii=True, indent=1) + "\n")
        print("wrote", name)


# --- Trying them ---

def outcome_of(vector, store, use_sqlcipher):
    """The code with which reader.py refuses a store, or what of it is to be read; None when it does not."""
    try:
        with reader.Store(store, key_of(vector["key"]), use_sqlcipher) as opened:
            reads = vector.get("reads", {})
            if "intact" in reads:
                opened.document(reads["intact"])
            if "localDocument" in reads:
                opened.local_document(reads["localDocument"])
            elif "attachment" in reads:
                opened.attachment(reads["document"], reads["attachment"])
            elif reads:
                opened.document(reads["document"])
    except reader.Refused as error:
        return error.code, error.status
    return None


def check():
    failures, count = [], 0
    for file in sorted(HERE.glob("valid/*.json")):
        vector = load(f"valid/{file.stem}")
        for use_sqlcipher in (True, False):
            with tempfile.TemporaryDirectory() as directory:
                store = unpack(file.stem, directory)
                for said in vector["keys"] or [None]:
                    count += 1
                    try:
                        with reader.Store(store, key_of(said), use_sqlcipher) as opened:
                            described = opened.describe()
                        if reader.canonical(described) != reader.canonical(vector["holds"]):
                            failures.append(f"{file.stem}: holds something else")
                    except reader.Refused as error:
                        failures.append(f"{file.stem}: {error}")
    for file in sorted(HERE.glob("invalid/*.json")):
        vector = load(f"invalid/{file.stem}")
        for use_sqlcipher in (True, False):
            with tempfile.TemporaryDirectory() as directory:
                store = unpack(vector["base"], directory)
                for change in vector["changes"]:
                    apply(change, store)
                count += 1
                outcome = outcome_of(vector, store, use_sqlcipher)
                if outcome != (vector["code"], vector["status"]):
                    failures.append(f"{file.stem}: {outcome} and not {vector['code']}, SQLCipher {use_sqlcipher}")
    print(f"{count} readings of stores, {len(failures)} not as their vectors say")
    if failures or count == 0:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    if sys.argv[1:] != ["--check"]:
        write()
    check()

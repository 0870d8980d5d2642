#!/usr/bin/env python3
"""Reads a store of Coffer's, from docs/FORMAT.md alone: nothing of Coffer is used, and nothing is written.

    reader.py list STORE                     each document: its id, its current revision, `deleted` where it is
    reader.py document STORE ID              the content of the current revision, as canonical JSON
    reader.py attachment STORE ID NAME       the content of an attachment of it, to standard output
    reader.py blob STORE DIGEST              the content with this digest property, such as sha1-gOHUOBmIMoDCrMuGyaLWzf1hQTE=
    reader.py describe STORE                 everything in it as JSON, after every digest was checked

    --password-file FILE    the key is the password that FILE holds; one line end after it is left out
    --key-file FILE         the key is the 32 bytes that FILE holds
    --without-sqlcipher     decrypts the database's pages and log here, instead of having SQLCipher do it

A database of sealed pages is always opened here, by sealed.py beside this file, and needs no SQLCipher. Needs
`cryptography` 50 or later and, unless told otherwise, `sqlcipher3-wheels`, both from PyPI. An error ends with the
status that Coffer has for it, such as `wrongKey (401)`, and exit status 1.
"""

import argparse
import base64
import fcntl
import hashlib
import hmac
import json
import os
import pathlib
import shutil
import sqlite3
import stat
import struct
import sys
import tempfile
import unicodedata

from cryptography.cobblestone import Cobblestone256Decryptor
from cryptography.hazmat.primitives import hashes, keywrap
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

import sealed
from sealed import log_checksum

STATUS = {
    "invalidKey": 400, "wrongKey": 401, "keyRequired": 401, "notEncrypted": 401, "databaseNotFound": 404,
    "documentNotFound": 404, "revisionNotFound": 404, "attachmentNotFound": 404, "notAStore": 404, "damaged": 500,
    "unsupportedFormat": 501, "busy": 503,
}


class Refused(Exception):
    def __init__(self, code, what):
        super().__init__(f"{what}: {code} ({STATUS[code]})")
        self.code = code
        self.status = STATUS[code]


def need(holds, what):
    """What FORMAT.md calls damaged."""
    if not holds:
        raise Refused("damaged", what)


# --- Files: inside a store no symbolic link is followed ---

def is_directory(path):
    return path.exists() and stat.S_ISDIR(path.lstat().st_mode)


def read_file(path, what):
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise Refused("damaged", f"{what}: {error.strerror}")
    with open(descriptor, "rb") as file:
        need(stat.S_ISREG(os.fstat(descriptor).st_mode), f"{what} is no file")
        return file.read()


# --- MANIFEST ---

class Slot:
    def __init__(self, data):
        self.type, self.derivation, self.log2n, self.r, self.cost, encoding = struct.unpack(">BBBBIB", data[:9])
        self.salt, self.wrapped, self.id = data[16:48], data[48:88], data[88:96]
        kind = (self.type, self.derivation)
        if kind == (1, 1):
            need(10 <= self.log2n <= 18 and self.r == 8 and 1 <= self.cost <= 4, "MANIFEST: cost of scrypt")
            need(self.cost << self.log2n <= 2**18, "MANIFEST: cost of scrypt")
        elif kind == (1, 2):
            need(self.log2n == 0 and self.r == 0 and 100_000 <= self.cost <= 2_000_000, "MANIFEST: cost of PBKDF2")
        else:
            need(kind == (2, 0) and (self.log2n, self.r, self.cost) == (0, 0, 0), "MANIFEST: kind of key")
        need(encoding == (1 if self.type == 1 else 0), "MANIFEST: encoding of the password")
        need(data[9:16] == bytes(7) and data[104:] == bytes(8), "MANIFEST: reserved bytes of a slot")
        need(self.id != bytes(8), "MANIFEST: slot id")

    def opens_for(self, key):
        return (self.type == 1) == isinstance(key, str)

    def key_encryption_key(self, key, uuid):
        if self.type == 2:
            info = b"coffer/v1/kek/raw\0" + uuid
            return HKDF(algorithm=hashes.SHA256(), length=32, salt=self.salt, info=info).derive(key)
        password = unicodedata.normalize("NFC", key).encode()
        if self.derivation == 1:
            salt = b"coffer/v1/kek/scrypt\0" + uuid + self.salt
            return Scrypt(salt=salt, length=32, n=1 << self.log2n, r=self.r, p=self.cost).derive(password)
        salt = b"coffer/v1/kek/pbkdf2-sha512\0" + uuid + self.salt
        return PBKDF2HMAC(algorithm=hashes.SHA512(), length=32, salt=salt, iterations=self.cost).derive(password)


class Manifest:
    """MANIFEST after steps 2 to 8 of FORMAT.md's checks."""

    def __init__(self, data):
        self.data = data
        need(len(data) == 1024 and data[:8] == bytes.fromhex("894346520D0A1A0A"), "MANIFEST: length or magic")
        need(data[10:12] == b"\x04\x00", "MANIFEST: length field")
        need(hashlib.sha256(data[:960]).digest() == data[960:992], "MANIFEST: checksum")

        parts = [data[64 + 112 * index:176 + 112 * index] for index in range(8)]
        if data[8:10] != b"\0\1" or data[56] == 2 or any(part[1] == 3 for part in parts):
            raise Refused("unsupportedFormat", "MANIFEST: of a later version")

        flags, self.uuid, self.generation, self.sequence, self.tag = struct.unpack(">I16sQQQ", data[12:56])
        need(1 <= self.generation < 2**63 and 1 <= self.sequence < 2**63, "MANIFEST: generation or sequence")
        self.is_encrypted = bool(flags & 1)
        profile, format, names, suite = data[56:60]
        need((profile, format) in (((1, 1), (3, 1)) if self.is_encrypted else ((0, 0),)), "MANIFEST: profile or format")
        self.has_sealed_pages = profile == 3
        need(names in ((1, 2) if self.is_encrypted else (1,)), "MANIFEST: names")
        self.has_keyed_names = names == 2
        self.slots = [Slot(part) for part in parts if part != bytes(112)]
        need(len({slot.id for slot in self.slots}) == len(self.slots), "MANIFEST: slot ids")
        need(bool(self.slots) == self.is_encrypted, "MANIFEST: slots")
        need(self.is_encrypted or data[992:] == bytes(32), "MANIFEST: authentication code")
        need(flags in (0, 1) and suite == flags and data[60:64] == bytes(4), "MANIFEST: flags, suite or reserved bytes")

    @property
    def generation_name(self):
        return f"g{self.generation:016x}-{self.tag:016x}"

    def unlock(self, key):
        """The function from a purpose to its key; None for a store that is not encrypted."""
        if not self.is_encrypted:
            if key is not None:
                raise Refused("notEncrypted", "the store has no key")
            return None
        if key is None:
            raise Refused("keyRequired", "the store is encrypted")
        if len(key) == 0 or (len(key) != 32 if isinstance(key, bytes) else "\0" in key):
            raise Refused("invalidKey", "a key is a password without U+0000, or 32 bytes")
        for slot in self.slots:
            if not slot.opens_for(key):
                continue
            try:
                master = keywrap.aes_key_unwrap(slot.key_encryption_key(key, self.uuid), slot.wrapped)
            except keywrap.InvalidUnwrap:
                continue

            def key_for(purpose):
                info = b"coffer/v1/" + purpose.encode() + b"\0" + self.uuid + struct.pack(">Q", self.generation)
                return HKDFExpand(algorithm=hashes.SHA256(), length=32, info=info).derive(master)

            code = hmac.new(key_for("manifest"), self.data[:992], "sha256").digest()
            need(hmac.compare_digest(code, self.data[992:]), "MANIFEST: authentication code")
            return key_for
        raise Refused("wrongKey", "no slot opens")


# --- The database file ---

PAGE = 4096


def decrypt_page(number, page, key, mac_key):
    ciphertext, iv, mac = page[16 if number == 1 else 0:-48], page[-48:-32], page[-32:-12]
    code = hmac.new(mac_key, ciphertext + iv + struct.pack("<I", number), "sha1").digest()
    need(hmac.compare_digest(code, mac), f"page {number} of the database")
    decryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).decryptor()
    plaintext = decryptor.update(ciphertext) + decryptor.finalize()
    return (b"SQLite format 3\0" if number == 1 else b"") + plaintext + bytes(48)


def pages_of_log(log):
    """The pages of the commits in the log and how many the database has then, or None: fileformat2.html, section 4."""
    if len(log) < 32:
        return {}, None
    magic, _, page_size = struct.unpack(">III", log[:12])
    big = magic == 0x377F0683
    sums = log_checksum(log[:24], (0, 0), big)
    if magic not in (0x377F0682, 0x377F0683) or page_size != PAGE or sums != struct.unpack(">II", log[24:32]):
        return {}, None
    pages, pending, count = {}, {}, None
    for at in range(32, len(log) - 24 - PAGE + 1, 24 + PAGE):
        number, commit, salts, first, second = struct.unpack(">II8sII", log[at:at + 24])
        page = log[at + 24:at + 24 + PAGE]
        if salts != log[16:24]:
            break
        sums = log_checksum(page, log_checksum(log[at:at + 8], sums, big), big)
        if sums != (first, second):
            break
        pending[number] = page
        if commit:
            pages.update(pending)
            pending, count = {}, commit
    return pages, count


def decrypt(file, log, key):
    """The database as plain SQLite, with its log in it."""
    pages = {index + 1: file[index * PAGE:(index + 1) * PAGE] for index in range(len(file) // PAGE)}
    logged, count = pages_of_log(log)
    count = len(pages) if count is None else count
    pages.update(logged)
    need(count >= 1 and all(number in pages for number in range(1, count + 1)), "the database file is too short")
    salt = pages[1][:16]
    mac_key = hashlib.pbkdf2_hmac("sha1", key, bytes(byte ^ 0x3A for byte in salt), 2, 32)
    plain = bytearray()
    for number in range(1, count + 1):
        plain += bytes(PAGE) if number == 262_145 else decrypt_page(number, pages[number], key, mac_key)
    plain[18:20] = b"\1\1"  # of the copy: it has no log
    return bytes(plain)


def connect(directory, key, use_sqlcipher, copy, pages=None):
    """Opens a copy of the database file and its log, so that nothing in the store is written.

    The copy is plain SQLite where `pages` are the sealed ones of the store, and where no SQLCipher is to be used."""
    file, log = directory / "db.sqlite3", directory / "db.sqlite3-wal"
    need(not os.path.lexists(directory / "db.sqlite3-journal"), "there is a journal beside the database")
    data = read_file(file, "db.sqlite3")
    logged = read_file(log, "db.sqlite3-wal") if os.path.lexists(log) else b""
    target = pathlib.Path(copy) / "db.sqlite3"
    if pages is not None:
        try:
            target.write_bytes(sealed.database(pages, data, logged))
        except sealed.Damaged as error:
            raise Refused("damaged", str(error))
        return sqlite3.connect(target)
    if key is not None and not use_sqlcipher:
        target.write_bytes(decrypt(data, logged, key))
        return sqlite3.connect(target)
    target.write_bytes(data)
    if logged:
        pathlib.Path(f"{target}-wal").write_bytes(logged)
    if key is None:
        return sqlite3.connect(target)
    import sqlcipher3
    connection = sqlcipher3.connect(str(target))
    connection.execute(f"PRAGMA key = \"x'{key.hex()}'\"")
    connection.execute("PRAGMA cipher_log_level = NONE")
    for setting in ("page_size = 4096", "hmac_algorithm = HMAC_SHA1", "kdf_algorithm = PBKDF2_HMAC_SHA1"):
        connection.execute(f"PRAGMA cipher_{setting}")
    return connection


# --- Canonical JSON ---

def number_text(value):
    if isinstance(value, float) and value.is_integer() and -2**63 <= value < 2**64:
        value = int(value)
    if isinstance(value, int) and -2**63 <= value < 2**64:
        return str(value)
    value = float(value)
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent or 0) - (len(digits) - len(digits.lstrip("0")))
    digits = digits.strip("0")
    if len(digits) <= point <= 21:
        text = digits + "0" * (point - len(digits))
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        text = digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + f"e{point - 1:+d}"
    return ("-" if value < 0 else "") + text


ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def canonical(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, str):
        return '"' + "".join(ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in value) + '"'
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
    return "{" + ",".join(f"{canonical(key)}:{canonical(value[key])}" for key in keys) + "}"


def parse_body(body, what):
    def object_of(pairs):
        need(len(dict(pairs)) == len(pairs), f"{what}: a key twice")
        return dict(pairs)

    def no_constant(name):
        raise ValueError(name)

    try:
        value = json.loads(body.decode(), object_pairs_hook=object_of, parse_constant=no_constant)
        need(isinstance(value, dict) and canonical(value).encode() == body, f"{what}: its body is not canonical")
    except ValueError:
        raise Refused("damaged", f"{what}: its body is not JSON")
    return value


def check_digest(digest, body, what):
    wanted = hashlib.sha256(body).digest()[:16] if body is not None and len(body) > 2048 else None
    need(digest == wanted, f"{what}: its body is not what was written")


# --- Contents ---

def digest_bytes(property):
    """The SHA-1 in a digest property; the text itself where it is another's."""
    if property.startswith("sha1-") and len(property) == 33:
        try:
            digest = base64.b64decode(property[5:], validate=True)
        except ValueError:
            return property
        if len(digest) == 20 and base64.b64encode(digest).decode() == property[5:]:
            return digest
    return property


def contents_of(value):
    """The contents that a body names: from digest property to length."""
    found = {}

    def blobs(value):
        if isinstance(value, list):
            for element in value:
                blobs(element)
        elif isinstance(value, dict):
            digest, length = value.get("digest"), value.get("length")
            if value.get("@type") == "blob" and isinstance(digest, str):
                found[digest] = length if isinstance(length, int) and not isinstance(length, bool) else 0
            else:
                for element in value.values():
                    blobs(element)

    for attachment in value.get("_attachments", {}).values():
        found[attachment["digest"]] = attachment["length"]
    blobs({key: element for key, element in value.items() if key != "_attachments"})
    return found


class Revision:
    COLUMNS = "sequence, document, parent, flags, generation, suffix, digest, id, body"

    def __init__(self, row):
        self.sequence, self.document, self.parent, flags, self.generation, suffix, self.digest, self.id, self.body = row
        self.is_deletion, self.has_attachments, self.is_foreign = bool(flags & 1), bool(flags & 2), bool(flags & 4)
        self.suffix = suffix.hex() if isinstance(suffix, bytes) else suffix
        what = f"revision {self.sequence}"
        is_hex = len(self.suffix) == 32 and set(self.suffix) <= set("0123456789abcdef")
        need(is_hex == isinstance(suffix, bytes) and 1 <= self.generation < 2**63, f"{what}: its id")
        check_digest(self.digest, self.body, what)

    @property
    def revision_id(self):
        return f"{self.generation}-{self.suffix}"

    @property
    def rank(self):
        return struct.pack(">BQ", not self.is_deletion, self.generation) + self.suffix.encode()


class Store:
    """An open store. Raises Refused where it is not one, the key is not its key, or something is damaged."""

    def __init__(self, path, key=None, use_sqlcipher=True):
        self.path = pathlib.Path(path)
        if not self.path.is_dir():
            raise Refused("databaseNotFound", str(path))
        self.lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused("busy", "somebody has the store open for writing")
        if not os.path.lexists(self.path / "MANIFEST"):
            raise Refused("notAStore", "there is no MANIFEST")
        self.manifest = Manifest(read_file(self.path / "MANIFEST", "MANIFEST"))
        self.key_for = self.manifest.unlock(key)
        self.directory = self.path / self.manifest.generation_name
        need(is_directory(self.directory), "the generation is missing")
        self.copy = tempfile.mkdtemp()
        try:
            key = self.key_for and self.key_for("database")
            self.database = connect(self.directory, key, use_sqlcipher, self.copy, self.sealed_pages)
            self.errors = (sqlite3.DatabaseError, getattr(sys.modules.get("sqlcipher3"), "DatabaseError", sqlite3.Error))
            self.check_binding()
        except BaseException:
            shutil.rmtree(self.copy)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.database.close()
        shutil.rmtree(self.copy)
        os.close(self.lock)

    @property
    def sealed_pages(self):
        if not self.manifest.has_sealed_pages:
            return None
        manifest = self.manifest
        return sealed.SealedPages(self.key_for("pages"), manifest.uuid, manifest.generation, manifest.tag)

    def rows(self, sql, *values):
        """The rows of one query, read in a transaction that ends with the probe."""
        try:
            self.database.execute("BEGIN")
            rows = self.database.execute(sql, values).fetchall()
            self.database.execute("SELECT 1 FROM info LIMIT 1").fetchall()
            self.database.execute("COMMIT")
        except self.errors as error:
            raise Refused("damaged", f"the database: {error}")
        return rows

    def check_binding(self):
        self.info = dict(self.rows("SELECT key, value FROM info"))
        need(self.info.get("store") == self.manifest.uuid, "the database is another store's")
        need(self.info.get("generation") == self.manifest.generation, "the database is another generation's")
        sequence = self.info.get("sequence")
        need(isinstance(sequence, int) and sequence <= self.manifest.sequence, "an older MANIFEST was put back")
        [[version]] = self.rows("PRAGMA user_version")
        if version > 1:
            raise Refused("unsupportedFormat", "the tables are a later version's")
        need(version == 1, "the tables have no version")

    # What a user reads.

    def documents(self):
        """The id, current revision and state of each document."""
        for (id,) in self.rows("SELECT id FROM documents ORDER BY id"):
            revision = self.winner(id)
            yield id, revision.revision_id, revision.is_deletion

    def winner(self, id):
        found = self.rows("SELECT number, winner FROM documents WHERE id = ?", id)
        if not found:
            raise Refused("documentNotFound", f"document {id}")
        [[number, winner]] = found
        rows = self.rows(f"SELECT {Revision.COLUMNS} FROM revisions WHERE sequence = ?", winner)
        need(rows, f"document {id}: its current revision is missing")
        revision = Revision(rows[0])
        need((revision.document, revision.id) == (number, id), f"document {id}: its revision is another document's")
        return revision

    def document(self, id):
        revision = self.winner(id)
        need(revision.body is not None, f"document {id}: its content is missing")
        return parse_body(revision.body, f"document {id}")

    def attachment(self, id, name):
        stubs = self.document(id).get("_attachments", {})
        if name not in stubs:
            raise Refused("attachmentNotFound", f"document {id}, attachment {name}")
        return self.content(stubs[name]["digest"])

    def local_document(self, id):
        rows = self.rows("SELECT digest, body FROM local_documents WHERE id = ?", id)
        if not rows:
            raise Refused("documentNotFound", f"document {id}")
        [[digest, body]] = rows
        check_digest(digest, body, f"document {id}")
        value = parse_body(body, f"document {id}")
        need(not any(key.startswith("_") for key in value), f"document {id}: a member that it cannot have")
        return value

    def content(self, property):
        """The bytes of the content with a digest property; None where it is another database's and not here."""
        digest = digest_bytes(property)
        rows = self.rows("SELECT length, sha256, header FROM attachments WHERE digest = ?", digest)
        if not rows:
            raise Refused("attachmentNotFound", f"content {property} has no row")
        [[length, sha256, header]] = rows
        if sha256 is None:
            need(header is None, f"content {property}: its row")
            return None
        need(isinstance(digest, bytes), f"content {property}: its digest")
        what = f"content {property}"
        need(is_directory(self.directory / "attachments"), f"{what}: attachments/ is missing")
        file = read_file(self.directory / "attachments" / self.file_name(digest), what)
        content = file if self.key_for is None else self.decrypt_content(file, length, header, what)
        need(self.key_for is not None or header == b"", f"{what}: its row")
        need(len(content) == length and hashlib.sha256(content).digest() == sha256, f"{what}: not what was written")
        need(hashlib.sha1(content).digest() == digest, f"{what}: its digest")
        return content

    def file_name(self, digest):
        if self.manifest.has_keyed_names:
            return hmac.new(self.key_for("names"), digest, "sha256").hexdigest() + ".blob"
        return digest.hex() + ".blob"

    def decrypt_content(self, file, length, header, what):
        need(len(file) == 56 + length + 16 * (length // 16_384 + 1), f"{what}: its length")
        need(file[:56] == header, f"{what}: another file, or an older one")
        context = b"coffer/v1/attachment\0" + self.manifest.uuid + struct.pack(">Q", self.manifest.generation)
        decryptor = Cobblestone256Decryptor(self.key_for("attachments"), context)
        try:
            return decryptor.update(file) + decryptor.finalize()
        except Exception as error:
            raise Refused("damaged", f"{what}: {type(error).__name__}")

    # Everything, with every digest checked.

    def describe(self):
        rows = self.rows(f"SELECT {Revision.COLUMNS} FROM revisions ORDER BY sequence")
        revisions = {revision.sequence: revision for revision in map(Revision, rows)}
        attachments = {number: digest for number, digest in self.rows("SELECT number, digest FROM attachments")}
        uses = {}
        for sequence, number in self.rows("SELECT revision, attachment FROM attachment_uses"):
            need(number in attachments, f"revision {sequence} uses a content without a row")
            uses.setdefault(sequence, set()).add(attachments[number])
        need(uses.keys() <= revisions.keys(), "something uses contents and is no revision")
        self.sha256s = {}
        documents = {}
        for id, number, winner, flags in self.rows("SELECT id, number, winner, flags FROM documents"):
            mine = {s: revision for s, revision in revisions.items() if revision.document == number}
            need(mine and all(revision.id == id for revision in mine.values()), f"document {id}: its revisions")
            documents[id] = self.describe_document(id, number, winner, flags, mine, uses)
        need(sum(len(document["revisions"]) for document in documents.values()) == len(revisions),
             "a revision of no document")
        for digest in attachments.values():
            self.sha256(digest if isinstance(digest, str) else "sha1-" + base64.b64encode(digest).decode())
        local = {id: canonical(self.local_document(id)) for (id,) in self.rows("SELECT id FROM local_documents")}
        return {
            "documents": documents, "generation": self.manifest.generation, "isEncrypted": self.manifest.is_encrypted,
            "keyLabels": [self.info.get(f"label {slot.id.hex()}") for slot in self.manifest.slots],
            "keyedNames": self.manifest.has_keyed_names, "localDocuments": local,
            "storeUUID": self.manifest.uuid.hex(),
        }

    def describe_document(self, id, number, winner, flags, revisions, uses):
        parents = {revision.parent for revision in revisions.values()}
        leaves = [revision for revision in revisions.values() if revision.sequence not in parents]
        best = max(leaves, key=lambda revision: revision.rank)
        need(best.sequence == winner, f"document {id}: another revision should be the current one")
        live = [revision for revision in leaves if not revision.is_deletion]
        wanted = best.is_deletion + 2 * (len(leaves) > 1) + 4 * (len(live) > 1)
        need(flags == wanted, f"document {id}: its flags are {flags} and not {wanted}")
        rows = self.rows("SELECT rank, sequence FROM leaves WHERE document = ?", number)
        wanted = {(revision.rank, revision.sequence) for revision in leaves} if len(leaves) > 1 else set()
        need(set(rows) == wanted, f"document {id}: its leaves")
        expires = self.rows("SELECT time FROM expirations WHERE id = ?", id)
        return {
            "expires": expires[0][0] if expires else None, "isDeleted": best.is_deletion,
            "leaves": sorted((revision.revision_id for revision in leaves), key=str.encode),
            "revisions": {revision.revision_id: self.describe_revision(revision, revisions, uses)
                          for revision in revisions.values()},
            "winner": best.revision_id,
        }

    def describe_revision(self, revision, revisions, uses):
        what = f"document {revision.id}, revision {revision.revision_id}"
        parent = revisions.get(revision.parent)
        if parent is not None:
            need(parent.sequence < revision.sequence and parent.generation == revision.generation - 1, f"{what}: its parent")
        description = {"isDeletion": revision.is_deletion, "parent": parent and parent.revision_id, "body": None}
        if revision.body is None:
            need(revision.sequence not in uses, f"{what}: contents without a body")
            return description
        is_first = revision.parent is None
        if not revision.is_foreign and (is_first or parent is not None):
            text = b"" if is_first else parent.revision_id.encode()
            data = struct.pack(">H", len(text)) + text + bytes([revision.is_deletion]) + revision.body
            need(hashlib.sha256(data).hexdigest()[:32] == revision.suffix, f"{what}: its id doesn't match its content")
            need(not is_first or revision.generation == 1, f"{what}: its generation")
        body = parse_body(revision.body, what)
        need(bool(body.get("_attachments")) == revision.has_attachments, f"{what}: its flags")
        need(not any(key.startswith("_") and key != "_attachments" for key in body), f"{what}: a member of others")
        named = contents_of(body)
        need({digest_bytes(digest) for digest in named} == uses.get(revision.sequence, set()), f"{what}: its contents")
        need(all(self.rows("SELECT 1 FROM attachments WHERE digest = ?", digest_bytes(digest)) for digest in named),
             f"{what}: a content without a row")
        description["body"] = revision.body.decode()
        description["contents"] = {digest: self.sha256(digest, length) for digest, length in named.items()}
        return description

    def sha256(self, property, length=None):
        if property not in self.sha256s:
            content = self.content(property)
            self.sha256s[property] = content and (hashlib.sha256(content).hexdigest(), len(content))
            if content == b"":
                self.sha256s[property] = (hashlib.sha256(b"").hexdigest(), 0)
        found = self.sha256s[property]
        if found is None:
            return None
        need(length in (None, found[1]), f"content {property}: its length")
        return found[0]


# --- The command ---

def key_of(arguments):
    if arguments.password_file:
        text = pathlib.Path(arguments.password_file).read_bytes()
        return text.removesuffix(b"\n").removesuffix(b"\r").decode()
    if arguments.key_file:
        return pathlib.Path(arguments.key_file).read_bytes()
    return None


def main():
    sys.setrecursionlimit(10_000)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["list", "document", "attachment", "blob", "describe"])
    parser.add_argument("store")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--password-file")
    parser.add_argument("--key-file")
    parser.add_argument("--without-sqlcipher", action="store_true")
    arguments = parser.parse_args()
    wanted = {"list": 0, "describe": 0, "document": 1, "blob": 1, "attachment": 2}[arguments.command]
    if len(arguments.names) != wanted:
        parser.error(f"{arguments.command} takes {wanted} more arguments")
    try:
        with Store(arguments.store, key_of(arguments), not arguments.without_sqlcipher) as store:
            output = sys.stdout.buffer
            match arguments.command:
                case "list":
                    for id, revision, is_deletion in store.documents():
                        output.write(f"{id}\t{revision}{chr(9) + 'deleted' if is_deletion else ''}\n".encode())
                case "document":
                    output.write(canonical(store.document(*arguments.names)).encode() + b"\n")
                case "describe":
                    output.write(canonical(store.describe()).encode() + b"\n")
                case "attachment":
                    output.write(store.attachment(*arguments.names) or b"")
                case "blob":
                    output.write(store.content(*arguments.names) or b"")
    except Refused as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()

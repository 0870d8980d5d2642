#!/usr/bin/env python3
"""Makes the manifest vectors of format 1 (docs/FORMAT.md), one file for each outcome.

Independent of Coffer: every byte is laid out here, and the cryptography is that of the Python package `cryptography`.
Everything "random" is a digest of the vector's name, so that running this again gives the same files.

    python3 Vectors/manifest/make.py            writes the files beside this one
    python3 Vectors/manifest/make.py --check    fails when a file differs from what would be written
"""

import hashlib
import hmac
import json
import pathlib
import struct
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from cryptography.hazmat.primitives.keywrap import aes_key_wrap

MAGIC = bytes.fromhex("894346520D0A1A0A")
STATUS = {
    "opens": None, "damaged": 500, "unsupportedFormat": 501, "wrongKey": 401, "keyRequired": 401, "notEncrypted": 401,
    "invalidKey": 400,
}


def digest(*parts):
    return hashlib.sha256("\0".join(map(str, parts)).encode()).digest()


class Slot:
    """One key slot. `key` is a str (password) or 32 bytes; every other field can be overridden."""

    def __init__(self, key, **fields):
        self.key = key
        self.fields = fields

    def encode(self, store, index):
        password = isinstance(self.key, str)
        f = dict(
            type=1 if password else 2, kdf=1 if password else 0, log2n=10 if password else 0, r=8 if password else 0,
            cost=1 if password else 0, encoding=1 if password else 0, reserved1=bytes(7),
            salt=digest(store.name, "salt", index), wrapped=None,
            id=struct.unpack(">Q", digest(store.name, "slot id", index)[:8])[0],
            created=1_700_000_000 + index, reserved2=bytes(8))
        f.update(self.fields)
        if f["kdf"] == 2:
            f.update({k: 0 for k in ("log2n", "r") if k not in self.fields})
            f.update({"cost": 100_000} if "cost" not in self.fields else {})
        if f["wrapped"] is None:
            f["wrapped"] = aes_key_wrap(self.kek(store, f), store.master_key)
        self.id = f["id"]
        out = struct.pack(">BBBBIB7s32s40sQQ8s", f["type"], f["kdf"], f["log2n"], f["r"], f["cost"], f["encoding"],
                          f["reserved1"], f["salt"], f["wrapped"], f["id"], f["created"], f["reserved2"])
        assert len(out) == 112
        return out

    def kek(self, store, f):
        uuid, salt = store.uuid, f["salt"]
        if not isinstance(self.key, str):
            return HKDF(hashes.SHA256(), 32, salt, b"coffer/v1/kek/raw\0" + uuid).derive(self.key)
        secret = self.key.encode()
        if f["kdf"] == 2:
            iterations = min(f["cost"], 200_000)  # more only where the cost itself is refused
            return PBKDF2HMAC(hashes.SHA512(), 32, b"coffer/v1/kek/pbkdf2-sha512\0" + uuid + salt, iterations).derive(secret)
        valid = 10 <= f["log2n"] <= 18 and f["r"] == 8 and 1 <= f["cost"] <= 4
        n, r, p = (2 ** f["log2n"], f["r"], f["cost"]) if valid else (1024, 8, 1)
        return Scrypt(b"coffer/v1/kek/scrypt\0" + uuid + salt, 32, n, r, p).derive(secret)


class Store:
    """A manifest. `slots` may hold None for an empty slot and bytes for a slot of 112 given bytes."""

    def __init__(self, name, slots=(), **fields):
        self.name = name
        encrypted = bool(slots)
        f = dict(
            magic=MAGIC, version=1, length=1024, flags=1 if encrypted else 0, uuid=digest(name, "uuid")[:16],
            generation=3, sequence=17, tag=struct.unpack(">Q", digest(name, "tag")[:8])[0],
            profile=1 if encrypted else 0, attachments=1 if encrypted else 0, names=1, suite=1 if encrypted else 0,
            reserved=bytes(4))
        f.update(fields)
        self.f = f
        self.uuid = f["uuid"]
        self.master_key = digest(name, "master key")
        self.slots = slots
        head = struct.pack(">8sHHI16sQQQBBBB4s", f["magic"], f["version"], f["length"], f["flags"], f["uuid"],
                           f["generation"], f["sequence"], f["tag"], f["profile"], f["attachments"], f["names"],
                           f["suite"], f["reserved"])
        assert len(head) == 64
        places = []
        for index in range(8):
            slot = slots[index] if index < len(slots) else None
            places.append(slot if isinstance(slot, bytes) else slot.encode(self, index) if slot else bytes(112))
        self.body = head + b"".join(places)

    def subkey(self, purpose):
        info = b"coffer/v1/" + purpose.encode() + b"\0" + self.uuid + struct.pack(">Q", self.f["generation"])
        return HKDFExpand(hashes.SHA256(), 32, info).derive(self.master_key)

    def bytes(self, mac=None):
        summed = self.body + hashlib.sha256(self.body).digest()
        if mac is None:
            mac = hmac.digest(self.subkey("manifest"), summed, "sha256") if self.slots else bytes(32)
        return summed + mac


VECTORS = {}


def vector(name, comment, store_or_bytes, key, result, opened_slot=None):
    data = store_or_bytes if isinstance(store_or_bytes, bytes) else store_or_bytes.bytes()
    entry = {
        "comment": comment,
        "manifest": [data[i:i + 32].hex() for i in range(0, len(data), 32)],
        "key": None if key is None else {"password": key} if isinstance(key, str) else {"bytes": key.hex()},
        "result": result,
        "status": STATUS[result],
    }
    if result == "opens":
        store = store_or_bytes
        encrypted = bool(store.slots)
        entry["opened"] = {
            "storeUUID": store.uuid.hex(),
            "generation": store.f["generation"],
            "sequence": store.f["sequence"],
            "generationName": "g%016x-%016x" % (store.f["generation"], store.f["tag"]),
            "keyedNames": store.f["names"] == 2,
            "slots": ["%016x" % s.id for s in store.slots if s],
            "openedSlot": "%016x" % store.slots[opened_slot].id if encrypted else None,
            "subkeys": {
                p: store.subkey(p).hex()
                for p in ("pages" if store.f["profile"] == 3 else "database", "attachments", "names", "manifest")
            }
            if encrypted else None,
        }
    assert name not in VECTORS
    VECTORS[name] = json.dumps(entry, indent=1, ensure_ascii=True) + "\n"


RAW = bytes(range(32))
OTHER = bytes(range(32, 64))
PASSWORD = "correct horse battery staple"


def raw_store(name, slot=None, **fields):
    return Store(name, [Slot(RAW, **(slot or {}))], **fields)


def password_store(name, **slot):
    return Store(name, [Slot(PASSWORD, **slot)])


def valid():
    n = "valid-unencrypted"
    vector(n, "no encryption, no key", Store(n), None, "opens")
    n = "valid-raw-key"
    vector(n, "one slot, 32 bytes", raw_store(n), RAW, "opens", 0)
    n = "valid-password-scrypt"
    vector(n, "one slot, scrypt at the lowest cost", password_store(n), PASSWORD, "opens", 0)
    n = "valid-password-standard-cost"
    vector(n, "one slot, scrypt N=2^16 r=8 p=2", password_store(n, log2n=16, cost=2), PASSWORD, "opens", 0)
    n = "valid-password-pbkdf2"
    vector(n, "one slot, PBKDF2 at the lowest cost", password_store(n, kdf=2), PASSWORD, "opens", 0)
    n = "valid-password-decomposed"
    vector(n, "made with an u-umlaut of one character, opened with one of two", Store(n, [Slot("gr\u00fcn")]),
           "gru\u0308n", "opens", 0)
    n = "valid-keyed-names"
    vector(n, "attachment names are keyed", raw_store(n, names=2), RAW, "opens", 0)
    n = "valid-sealed-pages"
    vector(n, "the database's pages are sealed", raw_store(n, profile=3), RAW, "opens", 0)
    n = "valid-largest-numbers"
    vector(n, "generation, sequence, tag, id and time as large as they may be",
           raw_store(n, slot=dict(id=2**64 - 1, created=2**64 - 1), generation=2**63 - 1, sequence=2**63 - 1,
                     tag=2**64 - 1), RAW, "opens", 0)
    n = "valid-smallest-numbers"
    vector(n, "generation, sequence and id 1, tag and time 0",
           raw_store(n, slot=dict(id=1, created=0), generation=1, sequence=1, tag=0), RAW, "opens", 0)
    n = "valid-eight-slots"
    slots = [Slot(f"password {i}") if i % 2 else Slot(bytes([i] * 32)) for i in range(8)]
    vector(n, "all slots taken, the last one opens", Store(n, slots), "password 7", "opens", 7)
    n = "valid-gap-between-slots"
    vector(n, "slots 0 to 4 and 6 are empty", Store(n, [None] * 5 + [Slot(RAW), None, Slot(PASSWORD)]), RAW, "opens", 5)
    n = "valid-two-slots-one-key"
    vector(n, "two slots with one key: the first opens", Store(n, [Slot(OTHER), Slot(RAW), Slot(RAW)]), RAW, "opens", 1)
    n = "valid-other-slots-unreadable"
    vector(n, "a slot of zeros where the wrapped key would be does not keep the next from opening",
           Store(n, [Slot(RAW, wrapped=bytes(40)), Slot(RAW)]), RAW, "opens", 1)


def refused_keys():
    n = "wrong-key-raw"
    vector(n, "32 other bytes", raw_store(n), OTHER, "wrongKey")
    n = "wrong-key-one-bit"
    vector(n, "one bit of the key differs", raw_store(n), RAW[:31] + bytes([RAW[31] ^ 1]), "wrongKey")
    n = "wrong-key-password"
    vector(n, "another password", password_store(n), PASSWORD + " ", "wrongKey")
    n = "wrong-key-password-pbkdf2"
    vector(n, "another password", password_store(n, kdf=2), PASSWORD.upper(), "wrongKey")
    n = "wrong-key-bytes-of-the-password"
    vector(n, "32 bytes are not the password that is spelled with them", Store(n, [Slot("A" * 32)]), b"A" * 32, "wrongKey")
    n = "wrong-key-password-of-the-bytes"
    vector(n, "a password is not the 32 bytes that it is spelled with", Store(n, [Slot(b"A" * 32)]), "A" * 32, "wrongKey")
    n = "wrong-key-hex-of-the-bytes"
    vector(n, "hex digits are a password like any other", raw_store(n), RAW.hex(), "wrongKey")
    n = "wrong-key-slot-of-another-store"
    slot = Slot(RAW).encode(Store("another store", [Slot(RAW)]), 0)
    vector(n, "a slot moved here from another store with the same key", Store(n, [slot]), RAW, "wrongKey")
    n = "key-required"
    vector(n, "no key for an encrypted store", raw_store(n), None, "keyRequired")
    n = "not-encrypted-raw-key"
    vector(n, "a key for a store without encryption", Store(n), RAW, "notEncrypted")
    n = "not-encrypted-password"
    vector(n, "a password for a store without encryption", Store(n), PASSWORD, "notEncrypted")
    n = "empty-password"
    vector(n, "an empty password, refused before any slot is tried", password_store(n), "", "invalidKey")
    n = "empty-password-raw-slot"
    vector(n, "the same where no slot takes a password", raw_store(n), "", "invalidKey")


def unsupported():
    for version in (0, 2, 256, 65535):
        n = f"unsupported-version-{version}"
        vector(n, "another format version", raw_store(n, version=version), RAW, "unsupportedFormat")
    n = "unsupported-version-of-other-layout"
    body = MAGIC + struct.pack(">HH", 2, 1024) + b"".join(digest(n, i) for i in range(30))[:948]
    vector(n, "a later format that keeps bytes 0-11, the size and the checksum, and nothing else",
           body + hashlib.sha256(body).digest() + digest(n, "mac"), RAW, "unsupportedFormat")
    n = "unsupported-profile-2"
    vector(n, "the database profile reserved for SQLCipher 4", raw_store(n, profile=2), RAW, "unsupportedFormat")
    n = "unsupported-argon2id"
    vector(n, "the derivation reserved for Argon2id", Store(n, [Slot(RAW), Slot(PASSWORD, kdf=3, wrapped=bytes(40))]),
           RAW, "unsupportedFormat")
    n = "unsupported-before-no-key"
    vector(n, "a later format is said before a missing key is", raw_store(n, version=2), None, "unsupportedFormat")


def damaged_whole():
    def d(name, comment, data):
        vector("damaged-" + name, comment, data, RAW, "damaged")

    whole = raw_store("damaged").bytes()
    d("empty", "no byte", b"")
    d("truncated", "one byte short", whole[:-1])
    d("longer", "one byte more", whole + b"\0")
    d("zeros", "1,024 zeros", bytes(1024))
    d("magic-text-mode", "a line ending converted, as by a transfer in text mode", whole.replace(b"\r\n", b"\n") + b"\0")
    d("checksum", "one bit of the checksum", whole[:960] + bytes([whole[960] ^ 1]) + whole[961:])
    d("checksum-before-version", "a later version with a wrong checksum is damage",
      whole[:9] + b"\2" + whole[10:])
    d("code", "one bit of the authentication code", whole[:1023] + bytes([whole[1023] ^ 1]))
    d("code-zero", "no authentication code", whole[:992] + bytes(32))
    older = raw_store("damaged", sequence=16).bytes()
    d("code-of-another-sequence", "the code of the manifest before", whole[:992] + older[992:])
    other = Store("damaged", [Slot(RAW)], generation=4)
    d("code-of-another-generation", "a code under the subkey of another generation", whole[:992] + other.bytes()[992:])


def damaged_fields():
    def d(name, comment, slot=None, **fields):
        n = "damaged-" + name
        vector(n, comment, raw_store(n, slot=slot, **fields), RAW, "damaged")

    d("magic", "another magic", magic=MAGIC[:7] + b"\x0b")
    d("length-field", "another length inside", length=1023)
    d("flags-unknown", "a flag that has no meaning", flags=3)
    d("flags-not-encrypted", "a key slot and no encryption", flags=0)
    d("generation-0", "generation 0", generation=0)
    d("generation-large", "a generation of 64 bits", generation=2**63)
    d("sequence-0", "sequence 0", sequence=0)
    d("sequence-large", "a sequence of 64 bits", sequence=2**63)
    d("profile-0", "plain SQLite in an encrypted store", profile=0)
    d("profile-4", "a profile that nothing has", profile=4)
    d("attachments-0", "plain attachments in an encrypted store", attachments=0)
    d("attachments-2", "an attachment format that nothing has", attachments=2)
    d("names-0", "attachment names 0", names=0)
    d("names-3", "attachment names 3", names=3)
    d("suite-0", "no key derivation suite", suite=0)
    d("suite-2", "a key derivation suite that nothing has", suite=2)
    d("reserved", "a reserved byte set", reserved=b"\0\0\0\1")
    d("slot-id-0", "a slot without an id", slot=dict(id=0))
    d("slot-type-3", "a slot type that nothing has", slot=dict(type=3))
    d("slot-type-0", "an empty slot that is not zero", slot=dict(type=0))
    d("slot-raw-with-scrypt", "a slot for 32 bytes with password hashing", slot=dict(kdf=1, log2n=10, r=8, cost=1))
    d("slot-raw-with-cost", "a slot for 32 bytes with a cost", slot=dict(cost=1))
    d("slot-raw-with-encoding", "a slot for 32 bytes with a password encoding", slot=dict(encoding=1))
    d("slot-reserved-9", "the first reserved byte of a slot set", slot=dict(reserved1=b"\1" + bytes(6)))
    d("slot-reserved-104", "the second reserved bytes of a slot set", slot=dict(reserved2=b"\1" + bytes(7)))

    n = "damaged-no-slot"
    store = Store(n, flags=1, profile=1, attachments=1, suite=1)
    vector(n, "encrypted, and no slot", store, RAW, "damaged")
    n = "damaged-no-slot-before-no-key"
    store = Store(n, flags=1, profile=1, attachments=1, suite=1)
    vector(n, "damage is said before a missing key is", store, None, "damaged")
    n = "damaged-two-slots-one-id"
    vector(n, "two slots with one id", Store(n, [Slot(RAW, id=5), Slot(OTHER, id=5)]), RAW, "damaged")
    n = "damaged-unencrypted-with-slot"
    vector(n, "a slot in a store without encryption",
           Store(n, [Slot(RAW)], flags=0, profile=0, attachments=0, suite=0), None, "damaged")
    n = "damaged-unencrypted-with-code"
    vector(n, "an authentication code in a store without encryption", Store(n).bytes(mac=digest(n)), None, "damaged")
    for field in ("profile", "attachments", "suite"):
        n = f"damaged-unencrypted-{field}-1"
        vector(n, "a value for encrypted stores in one without", Store(n, **{field: 1}), None, "damaged")
    n = "damaged-unencrypted-profile-3"
    vector(n, "sealed pages without a key", Store(n, profile=3), None, "damaged")
    n = "damaged-unencrypted-keyed-names"
    vector(n, "keyed names without a key", Store(n, names=2), None, "damaged")


def damaged_costs():
    def d(name, comment, result="damaged", **slot):
        # Opened without a key: what is within bounds comes as far as asking for one.
        n = ("damaged-" if result == "damaged" else "in-bounds-") + name
        vector(n, comment, password_store(n, **slot), None, result)

    inside = "keyRequired"
    for log2n, p, result in [(9, 1, "damaged"), (10, 1, inside), (18, 1, inside), (19, 1, "damaged"), (10, 0, "damaged"),
                             (10, 4, inside), (10, 5, "damaged"), (16, 4, inside), (17, 2, inside), (17, 3, "damaged"),
                             (18, 2, "damaged"), (0, 1, "damaged"), (255, 1, "damaged"), (10, 2**32 - 1, "damaged")]:
        d(f"scrypt-{log2n}-8-{p}", f"scrypt N=2^{log2n} r=8 p={p}", result, log2n=log2n, cost=p, wrapped=digest(1) + bytes(8))
    for r in (0, 7, 9):
        d(f"scrypt-10-{r}-1", f"scrypt with r={r}", r=r)
    for iterations, result in [(0, "damaged"), (99_999, "damaged"), (100_000, inside), (2_000_000, inside),
                               (2_000_001, "damaged"), (2**32 - 1, "damaged")]:
        d(f"pbkdf2-{iterations}", f"PBKDF2 with {iterations} iterations", result, kdf=2, cost=iterations,
          wrapped=digest(2) + bytes(8))
    d("pbkdf2-with-n", "PBKDF2 with a cost of scrypt", kdf=2, log2n=10)
    d("pbkdf2-with-r", "PBKDF2 with a cost of scrypt", kdf=2, r=8)
    for encoding in (0, 2):
        d(f"password-encoding-{encoding}", f"password encoding {encoding}", encoding=encoding)
    d("password-without-derivation", "a password and no derivation", kdf=0)
    d("derivation-4", "a derivation that nothing has", kdf=4)


def main():
    for part in (valid, refused_keys, unsupported, damaged_whole, damaged_fields, damaged_costs):
        part()
    folder = pathlib.Path(__file__).resolve().parent
    if sys.argv[1:] == ["--check"]:
        there = {p.stem: p.read_text() for p in folder.glob("*.json")}
        different = sorted(n for n in there.keys() | VECTORS.keys() if there.get(n) != VECTORS.get(n))
        sys.exit(f"different: {', '.join(different)}" if different else 0)
    for name, text in VECTORS.items():
        (folder / f"{name}.json").write_text(text)
    print(f"{len(VECTORS)} vectors")


main()

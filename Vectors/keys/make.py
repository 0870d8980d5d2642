#!/usr/bin/env python3
"""Writes the vectors of how Coffer's format 1 makes keys, computed without Coffer.

    pip install cryptography                   (made with 48)
    python3 Vectors/keys/make.py             writes the files beside this one
    python3 Vectors/keys/make.py --check     fails when a file differs from what would be written

All inputs are fixed, so a second run changes nothing. README.md says what the files hold.
"""

import json
import pathlib
import sys
import unicodedata

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

FOLDER = pathlib.Path(__file__).resolve().parent

UUIDS = [bytes.fromhex("00112233445566778899aabbccddeeff"), bytes.fromhex("f47ac10b58cc4372a5670e02b2c3d479")]
SALTS = [bytes(range(32)), bytes(range(255, 223, -1))]
KEYS = [bytes(range(0x40, 0x60)), bytes([0]) * 32, bytes([0xFF]) * 32]

# Written as escapes: an editor that normalizes this file must not change what it says.
PASSWORDS = [
    ("ASCII", "password123456"),
    ("one character", "x"),
    ("spaces and a line end count", " pass word \r\n"),
    ("a control character does not end it", "pass\u0001word"),
    ("64 hex digits are a password, not a key", "00" * 32),
    ("longer than a hash block", "correct horse battery staple " * 10),
    ("composed", "caf\u00e9"),
    ("decomposed", "cafe\u0301"),
    ("Greek and an emoji with modifier", "\u03bb\u03cc\u03b3\u03bf\u03c2 \U0001f44d\U0001f3fd"),
]


def normalized(password):
    return unicodedata.normalize("NFC", password).encode("utf-8")


def label(text, uuid, rest):
    return text.encode("ascii") + b"\x00" + uuid + rest


def scrypt(password, salt, log2_n, p):
    return Scrypt(salt=salt, length=32, n=1 << log2_n, r=8, p=p).derive(normalized(password))


def pbkdf2(password, salt, iterations):
    return PBKDF2HMAC(hashes.SHA512(), 32, salt, iterations).derive(normalized(password))


def write(name, description, vectors):
    text = json.dumps({"description": description, "vectors": vectors}, indent=2, ensure_ascii=True)
    path = FOLDER / f"{name}.json"
    if sys.argv[1:] != ["--check"]:
        path.write_text(text + "\n", encoding="ascii")
    elif path.read_text(encoding="ascii") != text + "\n":
        sys.exit(f"{path.name} differs from what would be written")


def passwords_refused():
    cases = [
        ("no character", ""),
        ("HMAC fills keys up with zeros: this would be the same key as the one before them", "password123456\u0000"),
        ("in the middle", "pass\u0000word"),
        ("alone", "\u0000"),
    ]
    return [{"name": name, "password": password, "result": "invalidKey"} for name, password in cases]


def password_encoding():
    cases = PASSWORDS[:4] + PASSWORDS[6:] + [
        ("singleton: Angstrom sign", "\u212b"),
        ("singleton: Ohm sign", "\u2126"),
        ("composition exclusion: Devanagari qa", "\u0958"),
        ("Hangul syllable from letters", "\u1112\u1161\u11ab"),
        ("two marks in canonical order", "q\u0323\u0307"),
        ("two marks out of order", "q\u0307\u0323"),
        ("compatibility characters stay: superscript two, ligature fi", "\u00b2\ufb01"),
        ("case stays: dotted capital I", "\u0130"),
        ("full width digits stay", "\uff11\uff12"),
        ("zero-width joiner stays", "a\u200db"),
        ("ASCII first, a mark later", "pass" * 8 + "o\u0308"),
        ("a leading mark", "\u0301e"),
        ("a character outside the basic plane that decomposes", "\U0001d15e"),
    ]
    return [{"name": name, "password": password, "utf8": normalized(password).hex()} for name, password in cases]


def kek_scrypt():
    vectors = []
    costs = [(10, 1)] * len(PASSWORDS) + [(10, 2), (10, 4), (11, 3), (14, 1), (16, 2)]
    cases = PASSWORDS + [(f"cost {log2_n}, {p}", "password123456") for log2_n, p in costs[len(PASSWORDS):]]
    for index, ((name, password), (log2_n, p)) in enumerate(zip(cases, costs, strict=True)):
        uuid, salt = UUIDS[index // 2 % 2], SALTS[index // 4 % 2]
        full = label("coffer/v1/kek/scrypt", uuid, salt)
        vectors.append({
            "name": name, "password": password, "uuid": uuid.hex(), "slotSalt": salt.hex(),
            "log2N": log2_n, "r": 8, "p": p, "salt": full.hex(), "kek": scrypt(password, full, log2_n, p).hex(),
        })
    return vectors


def kek_pbkdf2():
    vectors = []
    cases = [PASSWORDS[6] + (100_000,), PASSWORDS[7] + (100_000,), PASSWORDS[0] + (100_000,),
             PASSWORDS[5] + (100_001,), ("600,000 iterations", "password123456", 600_000)]
    for index, (name, password, iterations) in enumerate(cases):
        uuid, salt = UUIDS[index // 2 % 2], SALTS[index // 4 % 2]
        full = label("coffer/v1/kek/pbkdf2-sha512", uuid, salt)
        vectors.append({
            "name": name, "password": password, "uuid": uuid.hex(), "slotSalt": salt.hex(),
            "iterations": iterations, "salt": full.hex(), "kek": pbkdf2(password, full, iterations).hex(),
        })
    return vectors


def kek_raw():
    vectors = []
    for key in KEYS:
        for uuid in UUIDS:
            for salt in SALTS:
                info = label("coffer/v1/kek/raw", uuid, b"")
                vectors.append({
                    "key": key.hex(), "uuid": uuid.hex(), "slotSalt": salt.hex(), "info": info.hex(),
                    "kek": HKDF(hashes.SHA256(), 32, salt, info).derive(key).hex(),
                })
    return vectors


def subkeys():
    vectors = []
    stores = [
        (KEYS[0], UUIDS[0], 1), (KEYS[0], UUIDS[0], 2), (KEYS[0], UUIDS[1], 1), (KEYS[1], UUIDS[0], 1),
        (KEYS[2], UUIDS[1], 0x0102030405060708), (KEYS[0], UUIDS[0], (1 << 64) - 1),
    ]
    for purposes in [["database", "attachments", "names", "manifest"], ["pages"]]:
        for (key, uuid, generation), purpose in [(store, purpose) for store in stores for purpose in purposes]:
            info = label("coffer/v1/" + purpose, uuid, generation.to_bytes(8, "big"))
            vectors.append({
                "masterKey": key.hex(), "purpose": purpose, "uuid": uuid.hex(),
                "generation": f"{generation:016x}", "info": info.hex(),
                "subkey": HKDFExpand(hashes.SHA256(), 32, info).derive(key).hex(),
            })
    return vectors


def key_wrap():
    def flipped(data, bit):
        changed = bytearray(data)
        changed[bit // 8] ^= 0x80 >> bit % 8
        return bytes(changed)

    vectors = []
    for number, kek in enumerate(KEYS):
        key = KEYS[(number + 1) % 3]
        vectors.append(("wrapped", kek, key, aes_key_wrap(kek, key), "valid"))
    kek, key = KEYS[0], KEYS[1]
    wrapped = aes_key_wrap(kek, key)
    vectors.append(("a key wrapped under itself", kek, kek, aes_key_wrap(kek, kek), "valid"))
    for bit in [0, 63, 64, 200, 319]:
        vectors.append((f"bit {bit} flipped", kek, None, flipped(wrapped, bit), "wrongKey"))
    vectors.append(("one bit of the wrapping key flipped", flipped(kek, 255), None, wrapped, "wrongKey"))
    vectors.append(("another wrapping key", KEYS[2], None, wrapped, "wrongKey"))
    vectors.append(("halves swapped", kek, None, wrapped[20:] + wrapped[:20], "wrongKey"))
    vectors.append(("all zero", kek, None, bytes(40), "wrongKey"))
    for _, kek, key, wrapped, result in vectors:  # what is written is what happens
        try:
            assert aes_key_unwrap(kek, wrapped) == key and result == "valid"
        except InvalidUnwrap:
            assert result == "wrongKey"
    return [
        {"name": name, "kek": kek.hex(), **({"key": key.hex()} if key else {}), "wrapped": wrapped.hex(), "result": result}
        for name, kek, key, wrapped, result in vectors
    ]


if __name__ == "__main__":
    write("password-encoding", "The bytes of a password: UTF-8 of Unicode's normalization form C.", password_encoding())
    write("passwords-refused", "What no password may be, since it would be none, or the same as another.",
          passwords_refused())
    write("kek-scrypt", "KEK = scrypt(password as UTF-8 in NFC, salt, N = 2^log2N, r, p, 32); "
          "salt = 'coffer/v1/kek/scrypt' | 00 | uuid | slotSalt", kek_scrypt())
    write("kek-pbkdf2", "KEK = PBKDF2-HMAC-SHA-512(password as UTF-8 in NFC, salt, iterations, 32); "
          "salt = 'coffer/v1/kek/pbkdf2-sha512' | 00 | uuid | slotSalt", kek_pbkdf2())
    write("kek-raw", "KEK = HKDF-SHA-256(key, slotSalt, info, 32); info = 'coffer/v1/kek/raw' | 00 | uuid", kek_raw())
    write("subkeys", "subkey = HKDF-Expand-SHA-256(masterKey, info, 32); "
          "info = 'coffer/v1/' | purpose | 00 | uuid | generation (8 bytes, big-endian)", subkeys())
    write("key-wrap", "AES-256 key wrap, RFC 3394, of a 32-byte key; wrongKey: the check value is wrong", key_wrap())

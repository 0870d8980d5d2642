#!/usr/bin/env python3
"""Writes the vectors of attachments' encryption, Cobblestone-256 (c2sp.org/chunked-encryption), without Coffer.

    pip install 'cryptography>=50'
    python3 Vectors/attachments/make.py             writes the files beside this one
    python3 Vectors/attachments/make.py --check     fails when a file differs from what would be written

`cryptography` takes no salt, so messages are put together here from its HKDF-Expand and its AES-GCM. That this is the
same is proven at every run: a message of its Cobblestone256Encryptor is made again here from its salt, byte for byte,
and its Cobblestone256Decryptor opens every valid vector and refuses every invalid one. All inputs are fixed, so a
second run changes nothing. README.md says what the files hold.
"""

import hashlib
import json
import pathlib
import re
import sys

from cryptography.cobblestone import Cobblestone256Decryptor, Cobblestone256Encryptor
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

FOLDER = pathlib.Path(__file__).resolve().parent
CHUNK, SEALED, HEADER = 16384, 16400, 56
SIZES = [0, 1, 15, 16, 16383, 16384, 16385, 2 * 16384 - 1, 2 * 16384, 2 * 16384 + 1]

KEY = bytes(range(0x40, 0x60))
OTHER_KEY = bytes(range(0x40, 0x5F)) + b"\x5e"
UUID = bytes.fromhex("f47ac10b58cc4372a5670e02b2c3d479")


def context(uuid=UUID, generation=1):
    return b"coffer/v1/attachment\0" + uuid + generation.to_bytes(8, "big")


def salt(name):
    return hashlib.sha256(name.encode()).digest()[:24]


def pattern(count):
    """Bytes in which no two chunks are alike."""
    return bytes((i ^ i >> 8 ^ i >> 16) & 0xFF for i in range(count))


class Keys:
    """What is derived for one message."""

    def __init__(self, key, salt, context):
        info = b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0" + salt + context
        derived = HKDFExpand(hashes.SHA512(), 76, info).derive(key)
        self.key, self.base_nonce, self.commitment = derived[:32], derived[32:44], derived[44:]
        self.header = salt + self.commitment

    def nonce(self, index):
        return (int.from_bytes(self.base_nonce, "big") ^ index).to_bytes(12, "big")

    def seal(self, index, plaintext):
        return AESGCM(self.key).encrypt(self.nonce(index), plaintext, None)

    def open(self, index, sealed):
        return AESGCM(self.key).decrypt(self.nonce(index), sealed, None)

    def plaintext_of(self, index, ciphertext):
        """What encrypts to `ciphertext`, so that a vector's long parts can be one byte repeated."""
        keystream = self.seal(index, bytes(len(ciphertext)))[: len(ciphertext)]
        return bytes(a ^ b for a, b in zip(keystream, ciphertext))


def chunks_of(plaintext):
    return [plaintext[i : i + CHUNK] for i in range(0, len(plaintext) + 1, CHUNK)]


def seal(key, salt, context, plaintext):
    keys = Keys(key, salt, context)
    return keys.header + b"".join(keys.seal(i, chunk) for i, chunk in enumerate(chunks_of(plaintext)))


def compressible(key, salt, context, count):
    """The plaintext of `count` bytes whose chunks encrypt to 01 01 01 …, 02 02 02 …, and so on, and its message."""
    keys = Keys(key, salt, context)
    chunks = [keys.plaintext_of(i, bytes([i + 1]) * len(c)) for i, c in enumerate(chunks_of(bytes(count)))]
    plaintext = b"".join(chunks)
    return plaintext, seal(key, salt, context, plaintext)


def read(key, context, message):
    """What a reader makes of a message that looks at its length first, then at its header, then at each chunk."""
    if len(message) < HEADER or (len(message) - HEADER) % SEALED < 16:
        return "wrongLength"
    keys = Keys(key, message[:24], context)
    if keys.header != message[:HEADER]:
        return "wrongHeader"
    plaintext = b""
    body = message[HEADER:]
    for index in range(len(body) // SEALED + 1):
        try:
            plaintext += keys.open(index, body[index * SEALED : (index + 1) * SEALED])
        except InvalidTag:
            return f"wrongChunk {index}"
    return plaintext


def read_elsewhere(key, context, message):
    decryptor = Cobblestone256Decryptor(key, context)
    try:
        return decryptor.update(message) + decryptor.finalize()
    except InvalidTag:
        return None


def plural(count):
    return f"{count} byte" if count == 1 else f"{count} bytes"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def parts(data):
    """Hex, with 32 or more of one byte in a row as `byte*count`."""
    found = []
    for run in re.finditer(rb"(?P<byte>(?s:.))(?P=byte){31,}|(?P<other>(?s:.)+?)(?=((?s:.))\3{31,}|\Z)", data):
        found.append(f"{run['byte'].hex()}*{len(run[0])}" if run["byte"] else run["other"].hex())
    assert b"".join(bytes.fromhex(p.split("*")[0]) * int((p.split("*") + [1])[1]) for p in found) == data
    return found


def prove_seal():
    for count in SIZES:
        encryptor = Cobblestone256Encryptor(KEY, context())
        message = encryptor.update(pattern(count)) + encryptor.finalize()
        assert seal(KEY, message[:24], context(), pattern(count)) == message, count


def seal_vectors():
    cases = [(plural(count), KEY, context(), count) for count in SIZES]
    cases += [
        ("no context", KEY, b"", 100),
        ("a context of one zero byte", KEY, b"\0", 100),
        ("the largest generation", KEY, context(generation=2**63 - 1), 100),
        ("a key of zeros", bytes(32), context(), 100),
        ("257 chunks: the index has two bytes", KEY, context(), 256 * CHUNK + 3),
    ]
    for name, key, ctx, count in cases:
        message = seal(key, salt(name), ctx, pattern(count))
        assert read(key, ctx, message) == pattern(count) == read_elsewhere(key, ctx, message)
        yield {
            "name": name, "key": key.hex(), "context": ctx.hex(), "salt": salt(name).hex(),
            "plaintextByteCount": count, "plaintextSHA256": sha256(pattern(count)),
            "commitment": message[24:HEADER].hex(), "lastTag": message[-16:].hex(),
            "messageByteCount": len(message), "messageSHA256": sha256(message),
        }


def valid_vectors():
    for count in SIZES:
        name = plural(count)
        plaintext, message = compressible(KEY, salt("valid " + name), context(), count)
        assert read(KEY, context(), message) == plaintext == read_elsewhere(KEY, context(), message)
        yield {
            "name": name, "key": KEY.hex(), "context": context().hex(), "message": parts(message),
            "plaintextByteCount": count, "plaintextSHA256": sha256(plaintext),
        }


def flipped(message, byte, bit=0):
    byte %= len(message)
    return message[:byte] + bytes([message[byte] ^ 1 << bit]) + message[byte + 1 :]


def invalid_messages():
    """Name, outcome, message, and what it is read with if not the key and context that it was sealed with."""
    ctx = context()
    empty = compressible(KEY, salt("invalid 0"), ctx, 0)[1]
    short = compressible(KEY, salt("invalid 100"), ctx, 100)[1]
    other = compressible(KEY, salt("another 100"), ctx, 100)[1]
    full = compressible(KEY, salt("invalid 16384"), ctx, CHUNK)[1]
    longest = compressible(KEY, salt("invalid 32767"), ctx, 2 * CHUNK - 1)[1]
    three = compressible(KEY, salt("invalid 32868"), ctx, 2 * CHUNK + 100)[1]
    other_three = compressible(KEY, salt("another 32868"), ctx, 2 * CHUNK + 100)[1]
    first, second, last = (three[HEADER + i * SEALED :][:SEALED] for i in range(3))
    header = three[:HEADER]
    keys = Keys(KEY, three[:24], ctx)

    yield "another key", "wrongHeader", short, OTHER_KEY, ctx
    yield "another store", "wrongHeader", short, KEY, context(uuid=flipped(UUID, 15))
    yield "another generation", "wrongHeader", short, KEY, context(generation=2)
    yield "no context", "wrongHeader", short, KEY, b""
    yield "a longer context", "wrongHeader", short, KEY, ctx + b"\0"
    yield "first bit of the salt flipped", "wrongHeader", flipped(short, 0, 7)
    yield "last bit of the salt flipped", "wrongHeader", flipped(short, 23)
    yield "first bit of the commitment flipped", "wrongHeader", flipped(short, 24, 7)
    yield "last bit of the commitment flipped", "wrongHeader", flipped(short, 55)
    yield "another message's salt", "wrongHeader", other[:24] + short[24:]
    yield "another message's commitment", "wrongHeader", short[:24] + other[24:HEADER] + short[HEADER:]
    yield "a commitment of zeros", "wrongHeader", short[:24] + bytes(32) + short[HEADER:]
    yield "another message's header", "wrongChunk 0", other[:HEADER] + short[HEADER:]

    yield "nothing", "wrongLength", b""
    yield "salt alone", "wrongLength", short[:24]
    yield "header without its last byte", "wrongLength", short[: HEADER - 1]
    yield "header alone", "wrongLength", short[:HEADER]
    yield "cut in the only tag", "wrongLength", empty[:-1]
    yield "cut before the only tag", "wrongLength", empty[:-16]
    yield "cut in the tag of the only chunk", "wrongChunk 0", short[:-1]
    yield "cut before the tag of the only chunk", "wrongChunk 0", short[:-16]
    yield "one byte of the only chunk missing", "wrongChunk 0", short[:-17] + short[-16:]
    yield "cut after the first chunk", "wrongLength", three[: HEADER + SEALED]
    yield "cut after the second chunk, the last dropped", "wrongLength", three[: HEADER + 2 * SEALED]
    yield "cut in the last tag, after a full chunk", "wrongLength", full[:-1]
    yield "cut in the last tag, of a message of three chunks", "wrongChunk 2", three[:-1]
    yield "cut in the second chunk", "wrongChunk 1", three[: HEADER + SEALED + 5000]
    yield "cut in the second chunk's tag", "wrongChunk 1", three[: HEADER + 2 * SEALED - 1]
    yield "cut 15 bytes into the second chunk", "wrongLength", three[: HEADER + SEALED + 15]

    yield "a byte appended to a bare tag", "wrongChunk 0", empty + b"\0"
    yield "a byte appended to a short chunk", "wrongChunk 2", three + b"\0"
    yield "a byte appended to a last chunk of 16383 bytes", "wrongLength", longest + b"\0"
    yield "a bare tag appended after a last chunk of 16383 bytes", "wrongChunk 1", longest + b"\0" + longest[-16:]
    yield "another chunk, rightly sealed, appended", "wrongChunk 2", three + keys.seal(3, b"more")
    yield "a whole message appended", "wrongChunk 0", short + other

    yield "first bit of the only chunk flipped", "wrongChunk 0", flipped(short, HEADER, 7)
    yield "last bit of the only chunk flipped", "wrongChunk 0", flipped(short, -17)
    yield "first bit of the only tag flipped", "wrongChunk 0", flipped(short, -16, 7)
    yield "last bit of the only tag flipped", "wrongChunk 0", flipped(short, -1)
    yield "a bit of a bare tag flipped", "wrongChunk 0", flipped(empty, -8, 3)
    yield "a bit of the bare tag after a full chunk flipped", "wrongChunk 1", flipped(full, -8, 3)
    yield "a bit of the first of three chunks flipped", "wrongChunk 0", flipped(three, HEADER + 9999, 4)
    yield "a bit of the second of three chunks flipped", "wrongChunk 1", flipped(three, HEADER + SEALED + 9999, 4)
    yield "a bit of the second of three tags flipped", "wrongChunk 1", flipped(three, HEADER + 2 * SEALED - 9, 4)
    yield "a bit of the last of three chunks flipped", "wrongChunk 2", flipped(three, -100, 4)
    yield "a tag of zeros", "wrongChunk 0", short[:-16] + bytes(16)

    yield "two chunks swapped", "wrongChunk 0", header + second + first + last
    yield "first chunk twice", "wrongChunk 1", header + first + first + last
    yield "first chunk dropped", "wrongChunk 0", header + second + last
    yield "second chunk dropped", "wrongChunk 1", header + first + last
    yield "last chunk first", "wrongChunk 0", header + last + first + second
    yield "another message's second chunk", "wrongChunk 1", (
        header + first + other_three[HEADER + SEALED :][:SEALED] + last)
    yield "another message's last chunk", "wrongChunk 2", header + first + second + other_three[HEADER + 2 * SEALED :]
    yield "every chunk sealed as the first", "wrongChunk 1", header + b"".join(
        keys.seal(0, keys.plaintext_of(0, bytes([i + 1]) * n)) for i, n in enumerate([CHUNK, CHUNK, 100]))
    yield "chunks numbered from 1", "wrongChunk 0", header + b"".join(
        keys.seal(i, keys.plaintext_of(i, bytes([i]) * n)) for i, n in [(1, CHUNK), (2, CHUNK), (3, 100)])
    yield "a chunk sealed with additional data", "wrongChunk 0", (
        header + AESGCM(keys.key).encrypt(keys.nonce(0), pattern(100), b"0"))


def invalid_vectors():
    names = set()
    for name, outcome, message, *read_with in invalid_messages():
        key, ctx = read_with or (KEY, context())
        assert read(key, ctx, message) == outcome, (name, read(key, ctx, message))
        assert read_elsewhere(key, ctx, message) is None, name
        assert name not in names, name
        names.add(name)
        yield {
            "name": name, "outcome": outcome, "key": key.hex(), "context": ctx.hex(), "messageByteCount": len(message),
            "message": parts(message),
        }


def chunk_vectors():
    keys = Keys(KEY, salt("chunks"), context())
    for index in [0, 1, 2, 255, 256, 65535, 65536, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**38 - 2, 2**38 - 1]:
        plaintext = f"chunk {index}".encode()
        yield {
            "name": f"chunk {index}", "key": KEY.hex(), "context": context().hex(), "header": keys.header.hex(),
            "index": index, "plaintext": plaintext.hex(), "sealed": keys.seal(index, plaintext).hex(),
        }


FILES = {
    "seal": (
        "The plaintext pattern of this length, sealed under this key, context and salt, gives the message whose "
        "commitment, last tag, length and SHA-256 these are. Byte i of the pattern is i XOR i/256 XOR i/65536, "
        "without remainders, modulo 256.", seal_vectors),
    "valid": (
        "This message opens under this key and context to a plaintext of this length and SHA-256. Sealed again under "
        "the same salt, it is this message.", valid_vectors),
    "invalid": (
        "This message doesn't open under this key and context, for this reason: wrongLength, no message has this "
        "length; wrongHeader, the commitment is another; wrongChunk k, chunks 0 to k - 1 open and chunk k does not.",
        invalid_vectors),
    "chunks": (
        "Chunk `index` of the message with this header, sealed under this key and context, is this if its plaintext "
        "is this and it is the last.", chunk_vectors),
}


def main():
    prove_seal()
    differing = []
    for name, (description, vectors) in FILES.items():
        text = json.dumps({"description": description, "vectors": list(vectors())}, indent=2) + "\n"
        path = FOLDER / f"{name}.json"
        if "--check" not in sys.argv:
            path.write_text(text, encoding="ascii")
        elif not path.exists() or path.read_text(encoding="ascii") != text:
            differing.append(path.name)
    if differing:
        sys.exit(f"not what would be written: {', '.join(differing)}")


if __name__ == "__main__":
    main()

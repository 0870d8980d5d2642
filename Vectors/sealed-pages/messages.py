"""The vectors of single messages: pages, frames and headers of logs, sealed by hand; and XAES-256-GCM's published ones."""

import hashlib
import re
import struct

import sealed
from sealed import FILE_PAGE, HEADER_OF_LOG, LOG_FRAME, SealedPages

KEY = bytes(range(0x40, 0x60))
UUID = bytes.fromhex("f47ac10b58cc4372a5670e02b2c3d479")
GENERATION, TAG = 3, 0x0123456789ABCDEF
KINDS = {FILE_PAGE: "page", LOG_FRAME: "frame", HEADER_OF_LOG: "logHeader"}
LENGTHS = {FILE_PAGE: 4056, LOG_FRAME: 4088, HEADER_OF_LOG: 32}


class Sealer:
    """Seals with nonces as a writer makes them: 12 bytes for a session, and a count from a start. Both come from a name."""

    def __init__(self, session, key=KEY, store=UUID, generation=GENERATION, tag=TAG):
        self.key, self.pages = key, SealedPages(key, store, generation, tag)
        digest = hashlib.sha256(session.encode()).digest()
        self.prefix, self.count = digest[:12], int.from_bytes(digest[12:24], "big")

    def seal(self, kind, number, plaintext):
        nonce = self.prefix + self.count.to_bytes(12, "big")
        self.count = (self.count + 1) % (1 << 96)
        return self.pages.seal(kind, number, plaintext, nonce)

    def page(self, number, plaintext):
        assert len(plaintext) == 4056
        return self.seal(FILE_PAGE, number, plaintext)

    def plaintext(self, kind, number, message):
        return self.pages.open(kind, number, message)


STRANGERS = {
    "under-another-key": Sealer("another key", key=KEY[:31] + b"\x5e"),
    "of-another-store": Sealer("another store", store=UUID[:15] + b"\x78"),
    "of-another-generation": Sealer("another generation", generation=GENERATION + 1),
    "of-another-tag": Sealer("another tag", tag=TAG ^ 1),
}


def fields(pages):
    binding = pages.binding[len(b"coffer/v1/page\0"):]
    return {"storeUUID": binding[:16].hex(), "generation": struct.unpack(">Q", binding[16:24])[0],
            "generationTag": binding[24:].hex()}


def parts(data):
    """Hex, with 32 or more of one byte in a row as `byte*count`."""
    found = []
    for run in re.finditer(rb"(?P<byte>(?s:.))(?P=byte){31,}|(?P<other>(?s:.)+?)(?=((?s:.))\3{31,}|\Z)", data):
        found.append(f"{run['byte'].hex()}*{len(run[0])}" if run["byte"] else run["other"].hex())
    return found


def short(text):
    """A text that is one piece over and over as `piece*times`."""
    for length in range(1, 10):
        times, rest = divmod(len(text), length)
        if rest == 0 and times > 9 and text[:length] * times == text:
            return f"{text[:length]}*{times}"
    return text


def opened(kind, plaintext):
    match kind:
        case sealed.FILE_PAGE:
            return {"plaintextSHA256": hashlib.sha256(plaintext).hexdigest()}
        case sealed.LOG_FRAME:
            sequence, synced = struct.unpack(">II", plaintext[24:32])
            return {"header": plaintext[:24].hex(), "checkpointSequence": sequence, "syncedFrameCount": synced,
                    "pageSHA256": hashlib.sha256(plaintext[32:]).hexdigest()}
        case _:
            return {"header": plaintext.hex()}


def message(sealer, kind, number, start=b""):
    """A message that begins with `start`, and the rest of which is encrypted to one byte over and over."""
    count, saved = LENGTHS[kind] - len(start), sealer.count
    keystream = sealer.seal(kind, number, bytes(LENGTHS[kind]))[len(start):LENGTHS[kind]]
    sealer.count = saved
    return sealer.seal(kind, number, start + bytes(byte ^ 0x5A for byte in keystream[:count]))


HEADER = sealed.log_header(0x377F0682, 7, bytes(range(8)))
FRAME_START = struct.pack(">II8sIIII", 3, 12, bytes(range(8)), 0x11223344, 0x55667788, 7, 40)


def vectors():
    home = Sealer("messages")
    largest = Sealer("largest", generation=2**63 - 1, tag=2**64 - 1)
    last = Sealer("the last count")
    last.count = (1 << 96) - 1
    zeros = Sealer("zeros", key=bytes(32), store=bytes(16), generation=1, tag=0)

    def vector(name, sealer, kind, number, data, opens=True):
        plaintext = sealer.pages.open(kind, number, data)
        assert (plaintext is not None) == opens, name
        return {"name": name, "kind": KINDS[kind], "number": number, "key": sealer.key.hex(), **fields(sealer.pages),
                "sealed": parts(data), "opens": opened(kind, plaintext) if opens else None}

    for number in (1, 2, 262_144, 2**32 - 2):
        yield vector(f"page {number}", home, FILE_PAGE, number, message(home, FILE_PAGE, number))
    yield vector("a page of zeros", home, FILE_PAGE, 5, home.page(5, bytes(4056)))
    for number in (1, 2, 2**32 - 1):
        yield vector(f"frame {number}", home, LOG_FRAME, number, message(home, LOG_FRAME, number, FRAME_START))
    yield vector("the header of a log", home, HEADER_OF_LOG, 0, home.seal(HEADER_OF_LOG, 0, HEADER))
    for name, sealer in [("the largest generation and tag", largest), ("the last count of a nonce", last),
                         ("a key and a store of zeros", zeros)]:
        yield vector(name, sealer, FILE_PAGE, 1, message(sealer, FILE_PAGE, 1))
    yield vector("the first count, after the last", last, FILE_PAGE, 1, message(last, FILE_PAGE, 1))

    page, frame, header = message(home, FILE_PAGE, 3), message(home, LOG_FRAME, 3, FRAME_START), home.seal(3, 0, HEADER)
    yield vector("page 3, to be changed", home, FILE_PAGE, 3, page)
    for what, kind, number, data in [("page", FILE_PAGE, 3, page), ("frame", LOG_FRAME, 3, frame),
                                     ("header", HEADER_OF_LOG, 0, header)]:
        length = LENGTHS[kind]
        for part, at in [("the first bit", 0), ("the last of the ciphertext", length - 1), ("the first of the nonce", length),
                         ("the last of the prefix", length + 11), ("the first of the count", length + 12),
                         ("the last of the nonce", length + 23), ("the first of the tag", length + 24),
                         ("the last bit", length + 39)]:
            mask = 1 if "last" in part else 0x80
            changed = data[:at] + bytes([data[at] ^ mask]) + data[at + 1:]
            yield vector(f"{what}: {part} changed", home, kind, number, changed, opens=False)
        yield vector(f"{what} of zeros", home, kind, number, bytes(length + 40), opens=False)
        for name, stranger in STRANGERS.items():
            name = f"{what} {name.replace('-', ' ')}"
            yield vector(name, home, kind, number, message(stranger, kind, number), opens=False)
    yield vector("page 4 in the place of 3", home, FILE_PAGE, 3, message(home, FILE_PAGE, 4), opens=False)
    yield vector("frame 4 in the place of 3", home, LOG_FRAME, 3, message(home, LOG_FRAME, 4, FRAME_START), opens=False)
    yield vector("page 3 as a frame", home, FILE_PAGE, 3, home.seal(LOG_FRAME, 3, bytes(4056)), opens=False)
    yield vector("frame 3 as a page", home, LOG_FRAME, 3, home.seal(FILE_PAGE, 3, bytes(4088)), opens=False)
    yield vector("header as a page", home, HEADER_OF_LOG, 0, home.seal(FILE_PAGE, 0, HEADER), opens=False)
    without = SealedPages(KEY, UUID, GENERATION, TAG)
    without.binding = b""
    nonce = home.prefix + bytes(12)
    yield vector("page 3 bound to nothing", home, FILE_PAGE, 3, without.seal(FILE_PAGE, 3, bytes(4056), nonce), opens=False)
    plain = sealed.AESGCM(KEY).encrypt(nonce[12:], bytes(4056), home.pages.associated_data(FILE_PAGE, 3))
    yield vector("page 3 by AES-256-GCM under the key itself", home, FILE_PAGE, 3, plain[:-16] + nonce + plain[-16:], opens=False)


def document():
    return {
        "description": "A page, frame or header of a log of this store, generation and tag, under this key: what it opens "
                       "to, or null where it doesn't open.",
        "vectors": list(vectors()),
    }


def check_xaes(file):
    for vector in file["vectors"]:
        key, nonce = bytes.fromhex(vector["key"]), vector["nonce"].encode()
        assert sealed.xaes_key(key, nonce[:12]).hex() == vector["derivedKey"]
        aead = sealed.AESGCM(sealed.xaes_key(key, nonce[:12]))
        made = aead.encrypt(nonce[12:], vector["plaintext"].encode(), vector["additionalData"].encode())
        assert made.hex() == vector["ciphertext"]
    stream, made, at = hashlib.shake_128().digest(4_000_000), hashlib.shake_128(), 0

    def take(count):
        nonlocal at
        at += count
        assert at <= len(stream)
        return stream[at - count:at]

    for _ in range(10_000):
        key, nonce = take(32), take(24)
        plaintext = take(take(1)[0])
        data = take(take(1)[0])
        made.update(sealed.AESGCM(sealed.xaes_key(key, nonce[:12])).encrypt(nonce[12:], plaintext, data))
    assert made.hexdigest(32) == file["accumulated"]["rounds10000"]

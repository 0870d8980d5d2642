#!/usr/bin/env python3
"""Opens sealed pages, the database files and logs of profile 3, from docs/FORMAT.md alone: nothing of Coffer is used.

    sealed.py FILE [LOG] --key HEX --store HEX --generation N --tag HEX --to PLAIN

writes the database in FILE, with what counts in LOG, as a plain SQLite database without a log. reader.py uses the same
functions for a whole store. Needs `cryptography` from PyPI.
"""

import argparse
import pathlib
import struct
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

PAGE, USABLE, RESERVE = 4096, 4056, 40
LOG_HEADER, FRAME = 72, 4128
FILE_PAGE, LOG_FRAME, HEADER_OF_LOG = 1, 2, 3  # the kinds of messages
EMPTIED = b"coffer: nothing counts in here.\n"
UNUSED_PAGE = 262_145  # it holds byte 2^30 of the file, and SQLite never uses it


class Damaged(Exception):
    """What FORMAT.md calls damaged."""


def need(holds, what):
    if not holds:
        raise Damaged(what)


# --- XAES-256-GCM: c2sp.org/XAES-256-GCM ---

def xaes_key(key, prefix):
    """The key of AES-256-GCM for the first 12 bytes of a nonce."""
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    first = int.from_bytes(encryptor.update(bytes(16)), "big")
    doubled = (first << 1 & (1 << 128) - 1) ^ (0x87 if first >> 127 else 0)
    derived = b""
    for counter in (1, 2):
        block = bytes([0, counter]) + b"X\0" + prefix
        derived += encryptor.update((int.from_bytes(block, "big") ^ doubled).to_bytes(16, "big"))
    return derived


class SealedPages:
    """Opens and seals the messages of one generation of one store."""

    def __init__(self, key, store, generation, tag):
        assert len(key) == 32 and len(store) == 16
        self.key = key
        self.binding = b"coffer/v1/page\0" + store + struct.pack(">QQ", generation, tag)
        self.derived = {}

    def aead(self, nonce):
        if nonce[:12] not in self.derived:
            self.derived[nonce[:12]] = AESGCM(xaes_key(self.key, nonce[:12]))
        return self.derived[nonce[:12]]

    def associated_data(self, kind, number):
        return self.binding + struct.pack(">BI", kind, number)

    def open(self, kind, number, sealed):
        """The plaintext of `ciphertext ‖ nonce(24) ‖ tag(16)`, or None where it isn't this message."""
        if len(sealed) < 40:
            return None
        ciphertext, nonce, tag = sealed[:-40], sealed[-40:-16], sealed[-16:]
        try:
            return self.aead(nonce).decrypt(nonce[12:], ciphertext + tag, self.associated_data(kind, number))
        except InvalidTag:
            return None

    def seal(self, kind, number, plaintext, nonce):
        sealed = self.aead(nonce).encrypt(nonce[12:], plaintext, self.associated_data(kind, number))
        return sealed[:-16] + nonce + sealed[-16:]


# --- The log ---

def log_checksum(data, sums, is_big_endian):
    """SQLite's checksum of its log: fileformat2.html, section 4.2."""
    a, b = sums
    words = struct.unpack(f"{'>' if is_big_endian else '<'}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        a = (a + words[index] + b) & 0xFFFFFFFF
        b = (b + words[index + 1] + a) & 0xFFFFFFFF
    return a, b


class Frame:
    """What the message of a frame says."""

    def __init__(self, plaintext):
        self.number, self.size, self.salts, first, second = struct.unpack(">II8sII", plaintext[:24])
        self.sums = (first, second)
        self.sequence, self.synced = struct.unpack(">II", plaintext[24:32])
        self.page = plaintext[32:]
        self.summed = plaintext[:8] + self.page + bytes(RESERVE)

    def continues(self, sums, is_big_endian):
        return log_checksum(self.summed, sums, is_big_endian) == self.sums


def frames_of(pages, log):
    """Each frame that the file has room for, or None where it doesn't open."""
    for index in range(1, (len(log) - LOG_HEADER) // FRAME + 1):
        at = LOG_HEADER + (index - 1) * FRAME
        plaintext = pages.open(LOG_FRAME, index, log[at:at + FRAME])
        yield plaintext and Frame(plaintext)


def log_header(magic, sequence, salts):
    """SQLite's header of a log, with its checksum."""
    start = struct.pack(">IIII8s", magic, 3_007_000, PAGE, sequence, salts)
    return start + struct.pack(">II", *log_checksum(start, (0, 0), magic == 0x377F0683))


def header_of(pages, log, frames):
    """The log's header; one that doesn't open is made again from frame 1. None: the log is empty."""
    header = pages.open(HEADER_OF_LOG, 0, log[:LOG_HEADER])
    if header is not None:
        magic, sequence, salts = struct.unpack(">I8xI8s8x", header)
        need(magic in (0x377F0682, 0x377F0683) and header == log_header(magic, sequence, salts), "the header of the log")
        return header
    first = frames[0] if frames else None
    if first is not None:
        for magic in (0x377F0682, 0x377F0683):
            header = log_header(magic, first.sequence, first.salts)
            if first.continues(struct.unpack(">II", header[24:]), magic == 0x377F0683):
                return header
    need(not any(frame and frame.synced >= 1 for frame in frames), "the header of the log, and its first frame")
    return None


def pages_of_log(pages, log):
    """The pages of the commits in a log, and how many the database has then; ({}, None) for an empty log."""
    if len(log) < LOG_HEADER or log.startswith(EMPTIED):
        return {}, None
    frames = list(frames_of(pages, log))
    header = header_of(pages, log, frames)
    if header is None:
        return {}, None
    is_big_endian, salts = header[:4] == b"\x37\x7f\x06\x83", header[16:24]
    sums = struct.unpack(">II", header[24:])

    committed, pending, count = {}, {}, None
    for index, frame in enumerate(frames, 1):
        if not (frame and frame.salts == salts and frame.continues(sums, is_big_endian)):
            later = [other for other in frames[index:] if other and other.salts == salts]
            need(not any(other.synced >= index for other in later), f"frame {index} of the log")
            break
        sums = frame.sums
        need(frame.number >= 1, f"frame {index} of the log")
        pending[frame.number] = frame.page
        if frame.size:
            committed.update(pending)
            pending, count = {}, frame.size
    return committed, count


# --- The file ---

def database(pages, file, log=b""):
    """The database in a file and its log, as a plain SQLite database that has no log."""
    logged, count = pages_of_log(pages, log)

    def page(number):
        if number in logged:
            return logged[number]
        sealed = file[(number - 1) * PAGE:number * PAGE]
        plaintext = pages.open(FILE_PAGE, number, sealed) if len(sealed) == PAGE else None
        need(plaintext is not None, f"page {number} of the database")
        return plaintext

    first = page(1)
    need(first[:16] == b"SQLite format 3\0" and first[16:18] == b"\x10\x00" and first[20] == RESERVE,
         "page 1 says another format, page size or reserve")
    if count is None:
        [count] = struct.unpack(">I", first[28:32])
    need(count >= 1, "page 1 says that there are no pages")
    need(all(number in logged or number * PAGE <= len(file) for number in range(1, count + 1) if number != UNUSED_PAGE),
         "the file is too short")
    plain = bytearray()
    for number in range(1, count + 1):
        plain += bytes(PAGE) if number == UNUSED_PAGE else page(number) + bytes(RESERVE)
    plain[18:20] = b"\1\1"  # of the copy: it has no log
    return bytes(plain)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("log", type=pathlib.Path, nargs="?")
    parser.add_argument("--key", required=True, type=bytes.fromhex)
    parser.add_argument("--store", required=True, type=bytes.fromhex)
    parser.add_argument("--generation", required=True, type=int)
    parser.add_argument("--tag", required=True, type=lambda text: int(text, 16))
    parser.add_argument("--to", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    pages = SealedPages(arguments.key, arguments.store, arguments.generation, arguments.tag)
    try:
        plain = database(pages, arguments.file.read_bytes(), arguments.log.read_bytes() if arguments.log else b"")
    except Damaged as error:
        sys.exit(f"error: {error}: damaged (500)")
    arguments.to.write_bytes(plain)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the vectors of sealed pages (docs/FORMAT.md, profile 3), computed without Coffer.

    python3 Vectors/sealed-pages/make.py             writes the files beside this one
    python3 Vectors/sealed-pages/make.py --check     fails when a file differs from what would be written

All inputs are fixed, so a second run changes nothing. At every run the published vectors of XAES-256-GCM are computed,
../sealed.py has to say of each vector what the vector says, and of every database file and log here, with each byte changed
and cut at each length that matters, what FORMAT.md says. README.md says what the files hold. Needs `cryptography` 50 or later and `sqlcipher3-wheels` from PyPI.
"""

import hashlib
import json
import pathlib
import sqlite3
import struct
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
sys.dont_write_bytecode = True

import messages  # noqa: E402
import sealed  # noqa: E402
import stores  # noqa: E402
import tinydatabase  # noqa: E402
from sealed import EMPTIED, FILE_PAGE, FRAME, HEADER_OF_LOG, LOG_FRAME, LOG_HEADER, PAGE, RESERVE  # noqa: E402

IS_CHECK = sys.argv[1:] == ["--check"]


def write(path, content):
    data = content if isinstance(content, bytes) else (json.dumps(content, ensure_ascii=True, indent=1) + "\n").encode()
    if not IS_CHECK:
        path.write_bytes(data)
    elif not path.exists() or path.read_bytes() != data:
        sys.exit(f"{path.relative_to(HERE)} differs from what would be written")


# --- Files and logs ---

PAGES = messages.Sealer("files")
LONG, OTHER_LONG = "long " * 1_800, "other" * 1_800
STATES = {
    "first": {1: "one", 2: "two", 3: LONG},
    "second": {1: "changed", 2: "two", 3: LONG},
    "third": {1: "changed", 2: "two", 3: OTHER_LONG, 4: "four"},
    "fourth": {1: "changed", 2: "two", 3: OTHER_LONG, 4: "four", 5: "y" * 5_000},
    "fifth": {1: "changed again", 2: "two", 3: OTHER_LONG, 4: "four", 5: "y" * 5_000},
}
DATABASES = {name: tinydatabase.pages_of(rows, changes) for changes, (name, rows) in enumerate(STATES.items(), 1)}
# A page of the first state, put back after the third: the middle of the text is of another time.
PAGE_4 = slice(896, 896 + 4052)  # the part of the text that stands there
assert DATABASES["third"][4][4:].decode() == OTHER_LONG[PAGE_4]
REPLAYED = {**STATES["third"], 3: OTHER_LONG[:896] + LONG[PAGE_4] + OTHER_LONG[896 + 4052:]}
STATES["third, with page 4 of the first"] = REPLAYED


def file_of(database, pages=PAGES):
    return b"".join(pages.page(number, database[number]) for number in sorted(database))


class Log:
    """A log as a writer makes it, frame by frame."""

    def __init__(self, sequence, salts, magic=0x377F0682, pages=PAGES):
        self.pages, self.sequence, self.salts, self.is_big_endian = pages, sequence, salts, magic == 0x377F0683
        self.header = sealed.log_header(magic, sequence, salts)
        self.sums = struct.unpack(">II", self.header[24:])
        self.sealed_header = pages.seal(HEADER_OF_LOG, 0, self.header)
        self.frames, self.synced = [], 0

    def frame(self, index, number, page, size=0, synced=0, sums=None, salts=None):
        start = struct.pack(">II", number, size)
        summed = start + page + bytes(RESERVE)
        sums = sealed.log_checksum(summed, self.sums if sums is None else sums, self.is_big_endian)
        plaintext = start + (salts or self.salts) + struct.pack(">IIII", *sums, self.sequence, synced) + page
        return self.pages.seal(LOG_FRAME, index, plaintext), sums

    def add(self, number, page, size=0):
        frame, self.sums = self.frame(len(self.frames) + 1, number, page, size, self.synced)
        self.frames.append(frame)

    def commit(self, database, *numbers, syncs=True):
        for number in numbers:
            self.add(number, database[number], len(database) if number == numbers[-1] else 0)
        if syncs:
            self.synced = len(self.frames)

    @property
    def data(self):
        return self.sealed_header + b"".join(self.frames)


SALTS = [hashlib.sha256(b"salts %d" % session).digest()[:8] for session in range(3)]


def three_commits(**more):
    log = Log(1, SALTS[0], **more)
    log.commit(DATABASES["second"], 1, 3)
    log.before_third = log.sums
    log.commit(DATABASES["third"], 1, 3, 4, 5)
    log.commit(DATABASES["fourth"], 2, 3, 6, 1)
    return log


def bases():
    """Each base: its file and its log (or None), and what they hold together."""
    yield "file", file_of(DATABASES["first"]), None, "first"
    log = three_commits()
    yield "logged", file_of(DATABASES["first"]), log.data, "fourth"
    log = three_commits(magic=0x377F0683)
    yield "logged-big-endian", file_of(DATABASES["first"]), log.data, "fourth"

    # As a crash leaves it in the middle of a transaction; the two frames before it are of one that was not synced.
    log = three_commits()
    log.commit(DATABASES["fifth"], 1, 3, syncs=False)
    log.add(4, DATABASES["first"][4])
    yield "uncommitted", file_of(DATABASES["first"]), log.data, "fifth"

    log = three_commits()
    file = file_of(DATABASES["fourth"])
    yield "emptied", file, EMPTIED + bytes(LOG_HEADER - len(EMPTIED)) + log.data[LOG_HEADER:], "fourth"
    again = Log(2, SALTS[1])
    again.commit(DATABASES["fifth"], 1, 3)
    yield "restarted", file, again.data + log.data[len(again.data):], "fifth"


BASES = {name: (file, log, holds) for name, file, log, holds in bases()}


def patch(file, offset, data):
    return {"do": "patch", "file": file, "offset": offset, "hex": data.hex()}


def cut(file, length):
    return {"do": "cut", "file": file, "length": length}


def flip(base, file, offset, mask=0x10):
    data = BASES[base][0 if file == "db" else 1]
    return patch(file, offset, bytes([data[offset] ^ mask]))


def page_at(number):
    return (number - 1) * PAGE


def frame_at(index):
    return LOG_HEADER + (index - 1) * FRAME


def applied(changes, file, log):
    files = {"db": bytearray(file), "log": bytearray(log or b"")}
    for change in changes:
        data = files[change["file"]]
        if change["do"] == "cut":
            del data[change["length"]:]
        else:
            new = bytes.fromhex(change["hex"])
            data += bytes(max(0, change["offset"] + len(new) - len(data)))
            data[change["offset"]:change["offset"] + len(new)] = new
    return bytes(files["db"]), bytes(files["log"])


def of_file():
    """Changes of a file that has no log: each is the vector's name, its changes and what it holds."""
    file, first = BASES["file"][0], DATABASES["first"]
    count = len(first)
    yield "intact", [], "first"
    for part, offset in [("first-byte", 0), ("ciphertext", 4055), ("nonce-prefix", 4056), ("nonce-counter", 4079),
                         ("tag", 4080), ("last-byte", 4095)]:
        yield f"page-1-{part}", [flip("file", "db", offset)], None
        yield f"page-3-{part}", [flip("file", "db", page_at(3) + offset)], None
    yield "page-2-changed", [flip("file", "db", page_at(2) + 9)], None
    yield "last-overflow-page-changed", [flip("file", "db", page_at(count) + 2000)], None
    yield "page-1-zeroed", [patch("db", 0, bytes(PAGE))], None
    yield "page-3-zeroed", [patch("db", page_at(3), bytes(PAGE))], None
    yield "pages-4-and-5-swapped", [patch("db", page_at(4), file[page_at(5):] + file[page_at(4):page_at(5)])], None
    yield "page-4-in-the-place-of-5", [patch("db", page_at(5), file[page_at(4):page_at(5)])], None
    for name, other in messages.STRANGERS.items():
        yield f"page-3-{name}", [patch("db", page_at(3), other.page(3, first[3]))], None
    yield "page-3-as-a-frame", [patch("db", page_at(3), PAGES.seal(LOG_FRAME, 3, first[3]))], None
    yield "page-3-as-it-was-sealed-before", [patch("db", page_at(3), PAGES.page(3, first[3]))], "first"
    for name, more in [("a-larger-page", {"page_size": 8192}), ("a-smaller-page", {"page_size": 2048}),
                       ("no-reserve", {"reserve": 0}), ("a-larger-reserve", {"reserve": 48})]:
        page = tinydatabase.pages_of(STATES["first"], **more)[1]
        yield f"page-1-says-{name}", [patch("db", 0, PAGES.page(1, page))], None
    yield "page-1-is-sealed-zeros", [patch("db", 0, PAGES.page(1, bytes(4056)))], None
    yield "page-1-says-one-page-more", [
        patch("db", 0, PAGES.page(1, first[1][:28] + struct.pack(">I", count + 1) + first[1][32:]))], None
    yield "zero-length", [cut("db", 0)], None
    for name, length in [("one-byte", 1), ("a-byte-of-page-1", PAGE - 1), ("page-1-alone", PAGE), ("half-a-page", PAGE + 2048),
                         ("the-last-page", page_at(count)), ("the-last-byte", count * PAGE - 1)]:
        yield f"cut-{'to' if length <= PAGE + 2048 else 'by'}-{name}", [cut("db", length)], None
    yield "one-byte-longer", [patch("db", count * PAGE, b"\0")], "first"
    yield "one-page-longer", [patch("db", count * PAGE, file[page_at(3):page_at(4)])], "first"


def of_log():
    """Changes of a file and the log of three synced commits: frames 1 to 2, 3 to 6 and 7 to 10."""
    data, database = BASES["logged"][1], DATABASES["fourth"]
    frame = {index: data[frame_at(index):frame_at(index + 1)] for index in range(1, 11)}
    after = {index: ("first", "second", "third", "fourth")[(index >= 2) + (index >= 6) + (index >= 10)] for index in range(11)}
    log = three_commits()

    yield "intact", [], "fourth"
    yield "removed", [cut("log", 0)], "first"
    for length in (1, LOG_HEADER - 1, LOG_HEADER):
        yield f"cut-to-{length}-bytes", [cut("log", length)], "first"
    for index in range(1, 11):
        yield f"cut-after-frame-{index:02}", [cut("log", frame_at(index + 1))], after[index]
    for index in (2, 6, 10):
        yield f"cut-before-the-end-of-frame-{index:02}", [cut("log", frame_at(index + 1) - 1)], after[index - 1]
        if index < 10:
            yield f"cut-behind-the-end-of-frame-{index:02}", [cut("log", frame_at(index + 1) + 1)], after[index]

    # Damage in frames of which a later one says that they were synced, and in those of the last commit, a torn tail.
    for index in range(1, 11):
        yield f"frame-{index:02}-changed", [flip("logged", "log", frame_at(index) + 2000)], None if index <= 6 else "third"
    for part, offset in [("first-byte", 0), ("synced-count", 31), ("nonce-prefix", 4088), ("nonce-counter", 4111), ("tag", 4127)]:
        yield f"frame-03-{part}", [flip("logged", "log", frame_at(3) + offset)], None
        yield f"frame-08-{part}", [flip("logged", "log", frame_at(8) + offset)], "third"
    yield "frame-02-zeroed", [patch("log", frame_at(2), bytes(FRAME))], None
    yield "frame-10-zeroed", [patch("log", frame_at(10), bytes(FRAME))], "third"
    yield "frames-03-and-04-swapped", [patch("log", frame_at(3), frame[4] + frame[3])], None
    yield "frames-07-and-08-swapped", [patch("log", frame_at(7), frame[8] + frame[7])], "third"
    yield "frame-01-in-the-place-of-03", [patch("log", frame_at(3), frame[1])], None
    yield "frame-03-left-out", [  # all behind it have other indexes then: it is as if the log was cut
        patch("log", frame_at(3), data[frame_at(4):]), cut("log", frame_at(10))], "second"
    yield "frame-10-twice", [patch("log", len(data), frame[10])], "fourth"
    yield "frame-01-appended", [patch("log", len(data), frame[1])], "fourth"
    yield "zeros-appended", [patch("log", len(data), bytes(FRAME))], "fourth"
    yield "half-a-frame-appended", [patch("log", len(data), frame[1][:2000])], "fourth"
    for name, other in messages.STRANGERS.items():
        stranger = three_commits(pages=other)
        yield f"frame-03-{name}", [patch("log", frame_at(3), stranger.frames[2])], None
        yield f"log-{name}", [patch("log", 0, stranger.data)], "first"
    yield "frame-03-as-a-page", [patch("log", frame_at(3), PAGES.seal(FILE_PAGE, 3, PAGES.plaintext(LOG_FRAME, 3, frame[3])))], None

    # What was written at the place of a frame before it, in the same session: it opens, and doesn't continue the sums.
    older, _ = log.frame(3, 3, DATABASES["first"][3], synced=2, sums=(1, 2))
    yield "frame-03-as-it-was-before", [patch("log", frame_at(3), older)], None
    older, _ = log.frame(8, 3, DATABASES["first"][3], synced=6, sums=(1, 2))
    yield "frame-08-as-it-was-before", [patch("log", frame_at(8), older)], "third"
    salted, _ = log.frame(11, 1, database[1], len(database), salts=SALTS[1])
    yield "frame-11-with-other-salts", [patch("log", len(data), salted)], "fourth"
    broken, _ = log.frame(11, 1, DATABASES["fifth"][1], len(database), synced=10, sums=(1, 2))
    yield "frame-11-of-a-transaction-that-was-taken-back", [patch("log", len(data), broken)], "fourth"
    other = Log(2, SALTS[1])
    other.commit(DATABASES["fifth"], 1, 3)
    yield "frames-01-and-02-of-another-session", [patch("log", LOG_HEADER, b"".join(other.frames))], None

    # The log's header: frame 1 says all that it does.
    for part, offset in [("first-byte", 0), ("salt", 16), ("checksum", 31), ("nonce-prefix", 32), ("nonce-counter", 55), ("tag", 71)]:
        yield f"header-{part}", [flip("logged", "log", offset)], "fourth"
    yield "header-zeroed", [patch("log", 0, bytes(LOG_HEADER))], "fourth"
    yield "header-as-a-page", [patch("log", 0, PAGES.seal(FILE_PAGE, 0, log.header))], "fourth"
    yield "header-of-another-session", [patch("log", 0, other.sealed_header)], "first"
    yield "header-and-frame-01-zeroed", [patch("log", 0, bytes(frame_at(2)))], None
    yield "header-zeroed-frame-02-changed", [patch("log", 0, bytes(LOG_HEADER)), flip("logged", "log", frame_at(2))], None
    yield "header-and-frame-01-of-one-commit-zeroed", [patch("log", 0, bytes(frame_at(2))), cut("log", frame_at(3))], "first"
    yield "header-emptied", [patch("log", 0, EMPTIED + bytes(40))], "first"
    yield "header-emptied-in-part", [patch("log", 0, EMPTIED[:16])], "fourth"
    for name, header in [("another-page-size", log.header[:8] + struct.pack(">I", 8192) + log.header[12:24]),
                         ("another-version", log.header[:4] + struct.pack(">I", 3_007_001) + log.header[8:24]),
                         ("another-magic", struct.pack(">I", 0x377F0684) + log.header[4:24])]:
        header += struct.pack(">II", *sealed.log_checksum(header, (0, 0), False))
        yield f"header-says-{name}", [patch("log", 0, PAGES.seal(HEADER_OF_LOG, 0, header))], None
    yield "header-with-a-wrong-checksum", [
        patch("log", 0, PAGES.seal(HEADER_OF_LOG, 0, log.header[:31] + bytes([log.header[31] ^ 1])))], None

    # The file beside a log: what the log has is not read from the file.
    yield "page-1-torn-and-in-the-log", [flip("logged", "db", 3000)], "fourth"
    yield "page-3-torn-and-in-the-log", [flip("logged", "db", page_at(3) + 3000)], "fourth"
    yield "file-cut-to-what-the-log-has-not", [cut("db", page_at(4))], "fourth"
    yield "page-1-torn-and-not-in-the-log", [flip("logged", "db", 3000), cut("log", LOG_HEADER)], None
    page = tinydatabase.pages_of(STATES["fourth"], reserve=0)[1]
    lying = three_commits()
    lying.frames[9], _ = lying.frame(10, 1, page, len(database), synced=6, sums=sums_before_last())
    yield "page-1-in-the-log-says-no-reserve", [patch("log", frame_at(10), lying.frames[9])], None


def sums_before_last():
    log = Log(1, SALTS[0])
    log.commit(DATABASES["second"], 1, 3)
    log.commit(DATABASES["third"], 1, 3, 4, 5)
    for number in (2, 3, 6):
        log.add(number, DATABASES["fourth"][number])
    return log.sums


def of_others():
    """Changes of the other bases."""
    yield "logged-big-endian", "intact", [], "fourth"
    yield "logged-big-endian", "header-zeroed", [patch("log", 0, bytes(LOG_HEADER))], "fourth"
    yield "logged-big-endian", "frame-03-changed", [flip("logged-big-endian", "log", frame_at(3))], None

    yield "uncommitted", "intact", [], "fifth"
    yield "uncommitted", "frame-13-changed", [flip("uncommitted", "log", frame_at(13))], "fifth"
    yield "uncommitted", "frame-12-changed", [flip("uncommitted", "log", frame_at(12))], "fourth"
    yield "uncommitted", "frame-11-changed", [flip("uncommitted", "log", frame_at(11))], "fourth"
    yield "uncommitted", "frame-10-changed", [flip("uncommitted", "log", frame_at(10))], None
    yield "uncommitted", "frame-10-changed-log-cut-after-11", [
        flip("uncommitted", "log", frame_at(10)), cut("log", frame_at(12))], None

    log = BASES["emptied"][1]
    yield "emptied", "intact", [], "fourth"
    yield "emptied", "cut-to-nothing", [cut("log", 0)], "fourth"
    yield "emptied", "old-frames-changed", [flip("emptied", "log", frame_at(1)), flip("emptied", "log", frame_at(5))], "fourth"
    yield "emptied", "text-changed", [flip("emptied", "log", 3)], "fourth"  # the old frames again, which the file has
    yield "emptied", "text-and-frame-01-changed", [flip("emptied", "log", 3), flip("emptied", "log", frame_at(1))], None
    assert log.startswith(EMPTIED)

    yield "restarted", "intact", [], "fifth"
    yield "restarted", "header-zeroed", [patch("log", 0, bytes(LOG_HEADER))], "fifth"
    yield "restarted", "header-of-the-session-before", [patch("log", 0, three_commits().sealed_header)], None
    yield "restarted", "frame-02-changed", [flip("restarted", "log", frame_at(2))], "fourth"
    yield "restarted", "frame-01-changed", [flip("restarted", "log", frame_at(1))], "fourth"
    yield "restarted", "frame-03-changed", [flip("restarted", "log", frame_at(3))], "fifth"
    yield "restarted", "header-and-frame-01-as-before", [  # as if the header's sync had not happened
        patch("log", 0, three_commits().data[:frame_at(2)])], None
    yield "restarted", "all-as-before", [patch("log", 0, three_commits().data)], "fourth"


def vectors():
    for name, changes, holds in of_file():
        yield "file", name, changes, holds
    for name, changes, holds in of_log():
        yield "logged", name, changes, holds
    yield from of_others()
    # What no reader can notice: each page is one that was written here, at another time.
    third = file_of(DATABASES["third"])
    old = PAGES.page(4, DATABASES["first"][4])
    yield "file", "third-state-with-page-4-of-the-first", [
        patch("db", 0, third[:page_at(4)] + old + third[page_at(5):])], "third, with page 4 of the first"
    # More than a checkpoint may make the file.
    page = DATABASES["fourth"][1]
    long, _ = three_commits().frame(10, 1, page[:28] + struct.pack(">I", 20_000) + page[32:], 20_000, 6, sums_before_last())
    yield "logged", "frame-10-says-20000-pages", [patch("log", frame_at(10), long)], None
    # The last page of the long text, which a log of one commit has not: SQLite doesn't look how long the file is then.
    one_commit = cut("log", frame_at(3))
    yield "logged", "file-cut-by-its-last-page-beside-one-commit", [cut("db", page_at(5)), one_commit], None
    yield "logged", "file-cut-by-a-byte-beside-one-commit", [cut("db", 5 * PAGE - 1), one_commit], None


# --- Trying them ---

def rows_of(file, log):
    """What a file and a log hold, or None where they are damaged."""
    try:
        plain = sealed.database(PAGES.pages, file, log or b"")
    except sealed.Damaged:
        return None
    with tempfile.NamedTemporaryFile() as target:
        target.write(plain)
        target.flush()
        connection = sqlite3.connect(target.name)
        try:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            return dict(connection.execute("SELECT number, text FROM notes"))
        finally:
            connection.close()


def name_of(rows):
    return next((name for name, state in STATES.items() if state == rows), "something else") if rows else None


def sweep(base):
    """One bit of each byte changed: the state before a commit, if the frame is in the last; else damage, or the truth."""
    file, log, holds = BASES[base]
    frames = (len(log or b"") - LOG_HEADER) // FRAME
    for at in range(0, len(file), 7):
        changed = bytearray(file)
        changed[at] ^= 1 << at % 8
        number = at // PAGE + 1
        assert PAGES.pages.open(FILE_PAGE, number, bytes(changed[page_at(number):page_at(number + 1)])) is None
    for at in range(0, len(log or b""), 61):
        changed = bytearray(log)
        changed[at] ^= 1 << at % 8
        outcome = name_of(rows_of(file, bytes(changed)))
        assert outcome in (None, holds, "third", "fourth"), (base, at, outcome)
        if base == "logged" and LOG_HEADER <= at:
            assert outcome == (None if at < frame_at(7) else "third"), (at, outcome)
        if base == "logged" and at < LOG_HEADER:
            assert outcome == holds
    return len(file) // 7 + frames


def main():
    messages.check_xaes(json.loads((HERE / "xaes.json").read_text()))
    write(HERE / "messages.json", messages.document())
    write(HERE / "states.json", {
        "description": "What a vector in files/ can hold: the rows of the table notes, by number. a*9 stands for 9 times a.",
        "key": PAGES.key.hex(), **messages.fields(PAGES.pages),
        "states": {name: {str(number): messages.short(text) for number, text in rows.items()}
                   for name, rows in STATES.items()},
    })
    for name, (file, log, holds) in BASES.items():
        assert name_of(rows_of(file, log)) == holds, name
        write(HERE / "bases" / f"{name}.db", file)
        if log is not None:
            write(HERE / "bases" / f"{name}.log", log)
        sweep(name)
    names, failures = set(), []
    for base, name, changes, holds in vectors():
        file, log, _ = BASES[base]
        outcome = name_of(rows_of(*applied(changes, file, log)))
        if outcome != holds:
            failures.append(f"{base}-{name}: {outcome} and not {holds}")
        write(HERE / "files" / f"{base}-{name}.json", {
            "base": base, "changes": changes, "outcome": "damaged" if holds is None else "holds",
            **({} if holds is None else {"state": holds})})
        assert f"{base}-{name}" not in names, name
        names.add(f"{base}-{name}")
    stale = {file.stem for file in (HERE / "files").glob("*.json")} - names
    if failures or stale:
        sys.exit("\n".join(failures + [f"files/{name}.json is not written by this" for name in sorted(stale)]))
    print(f"{len(names)} files and logs, as their vectors say")

    if not IS_CHECK:
        stores.write()
    failures, count = stores.check()
    print(f"{count} readings of stores, {len(failures)} not as their vectors say")
    if failures or count == 0:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()

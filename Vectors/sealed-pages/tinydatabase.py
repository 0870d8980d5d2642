"""Writes a SQLite database with one table, page by page (sqlite.org/fileformat2.html), so that each byte of it is known.

Pages have 4,056 bytes, without the reserve. Page 1 has the schema, page 2 is the map of pointers that `auto_vacuum` needs,
page 3 is the leaf of the table `notes (number INTEGER PRIMARY KEY, text TEXT NOT NULL)`, and overflow pages follow.
"""

import struct

USABLE = 4056
SCHEMA = "CREATE TABLE notes (number INTEGER PRIMARY KEY, text TEXT NOT NULL)"


def varint(value):
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F | 0x80)
    return bytes(reversed(groups))


def record(values):
    header, body = b"", b""
    for value in values:
        if value is None:
            header += varint(0)
        elif isinstance(value, int):
            header, body = header + varint(1), body + struct.pack(">b", value)
        else:
            header, body = header + varint(13 + 2 * len(value.encode())), body + value.encode()
    assert len(header) < 127
    return bytes([len(header) + 1]) + header + body


def leaf(cells, start=0):
    """The leaf of a table whose header stands at `start`."""
    pointers, content, at = b"", b"", USABLE
    for cell in cells:
        at -= len(cell)
        pointers, content = pointers + struct.pack(">H", at), cell + content
    header = struct.pack(">BHHHB", 13, 0, len(cells), at, 0)
    room = at - start - len(header) - len(pointers)
    assert room >= 0
    return header + pointers + bytes(room) + content


def header(changes, count, largest_root, page_size=4096, reserve=40):
    """The first 100 bytes of page 1."""
    start = b"SQLite format 3\0" + struct.pack(">HBBBBBB", page_size, 2, 2, reserve, 64, 32, 32)
    start += struct.pack(">IIIIIIIIIIII", changes, count, 0, 0, 1, 4, 0, largest_root, 1, 0, 1, 0) + bytes(20)
    return start + struct.pack(">II", changes, 3_015_002)


def empty():
    """Page 1 of a database without a table."""
    return header(1, 1, 1) + leaf([], start=100)


def pages_of(rows, changes=1, page_size=4096, reserve=40):
    """The pages of a database with these rows, by number, from 1."""
    overflow, owners = [], []
    cells = []
    for number, text in sorted(rows.items()):
        payload = record([None, text])
        local = len(payload)
        if local > USABLE - 35:
            least = (USABLE - 12) * 32 // 255 - 23
            local = least + (len(payload) - least) % (USABLE - 4)
            if local > USABLE - 35:
                local = least
        cell = varint(len(payload)) + varint(number) + payload[:local]
        rest = [payload[at:at + USABLE - 4] for at in range(local, len(payload), USABLE - 4)]
        if rest:
            cell += struct.pack(">I", 4 + len(overflow))
        for index, part in enumerate(rest):
            page = 4 + len(overflow)
            owners.append((3, 3) if index == 0 else (4, page - 1))
            following = page + 1 if index + 1 < len(rest) else 0
            overflow.append((struct.pack(">I", following) + part).ljust(USABLE, b"\0"))
        cells.append(cell)
    count = 3 + len(overflow)

    first = header(changes, count, 3, page_size, reserve)
    schema = record(["table", "notes", "notes", 3, SCHEMA])
    first += leaf([varint(len(schema)) + varint(1) + schema], start=100)
    map = b"".join(struct.pack(">BI", *entry) for entry in [(1, 0)] + owners)
    pages = [first, map.ljust(USABLE, b"\0"), leaf(cells)] + overflow
    assert all(len(page) == USABLE for page in pages)
    return dict(enumerate(pages, 1))

#!/usr/bin/env python3
"""Makes the vectors of revision ids with nothing but Python's standard library.

    python3 Vectors/revisions/make.py          writes revisions.json beside it
    python3 Vectors/revisions/make.py --check  fails where it differs from what it would write
"""

import hashlib
import json
import sys
from pathlib import Path

FILE = Path(__file__).parent / "revisions.json"


def revision_id(parent: str | None, is_deletion: bool, canonical: str) -> str:
    generation = int(parent.split("-", 1)[0]) + 1 if parent else 1
    parent_bytes = parent.encode() if parent else b""
    message = len(parent_bytes).to_bytes(2, "big") + parent_bytes + bytes([is_deletion]) + canonical.encode()
    return f"{generation}-{hashlib.sha256(message).hexdigest()[:32]}"


def vectors():
    # One document's life: three revisions and a deletion, each on the one before.
    parent = None
    for name, is_deletion, canonical in [
        ("the first revision", False, '{"property":"value"}'),
        ("the second revision", False, '{"property":"newvalue"}'),
        ("a deletion", True, "{}"),
        ("a revision after the deletion", False, '{"age":31,"name":"Robin","tags":["a","b"]}'),
    ]:
        yield name, parent, is_deletion, canonical
        parent = revision_id(parent, is_deletion, canonical)
    yield "a first revision without members", None, False, "{}"
    yield "a first revision that is a deletion", None, True, "{}"
    yield "a deletion with a body", "1-0f9219c8f699b156f1f86242b0c8e350", True, '{"reason":"moved"}'
    yield "a body beyond ASCII", None, False, '{"e\u0301":"\u20ac","\u00e9":"\U0001f600"}'
    yield "a body with attachments", None, False, (
        '{"_attachments":{"a.txt":{"content_type":"text/plain","digest":"sha1-gOHUOBmIMoDCrMuGyaLWzf1hQTE=",'
        '"length":24,"revpos":1,"stub":true}},"a":1}'
    )
    yield "another database's parent", "3-fff64159f36e69ecaf4395e153efe969", False, '{"a":1}'
    yield "a parent that is no digest", "12-local", False, '{"a":1}'
    yield "a parent in upper case", "2-ABCDEF0123456789ABCDEF0123456789", False, '{"a":1}'
    yield "a parent beyond ASCII", "2-\u00e9\U0001f600", False, '{"a":1}'
    yield "the longest parent", "1-" + "x" * 198, False, '{"a":1}'
    yield "a generation with more digits", "9-x", False, "{}"
    yield "the last generation but one", f"{2**63 - 2}-x", False, "{}"
    yield "a large body", None, False, '{"text":"' + "0123456789abcdef" * 1000 + '"}'


def main():
    lines = [
        json.dumps(
            {
                "name": name,
                "parent": parent,
                "isDeletion": is_deletion,
                "canonical": canonical,
                "revision": revision_id(parent, is_deletion, canonical),
            }
        )
        for name, parent, is_deletion, canonical in vectors()
    ]
    text = "[\n" + ",\n".join(lines) + "\n]\n"
    if sys.argv[1:] == ["--check"]:
        if FILE.read_text() != text:
            raise SystemExit("revisions.json is not what this script makes")
    else:
        FILE.write_text(text)


if __name__ == "__main__":
    main()

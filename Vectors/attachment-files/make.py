#!/usr/bin/env python3
"""Makes the vectors of attachment files: what lies in `attachments/` of a store, and what its row says (docs/FORMAT.md).

Independent of Coffer. The stores are those of Vectors/manifest, with their master keys' subkeys; the encryption itself
has its own vectors. Everything "random" is a digest of the vector's comment.

    pip install cryptography
    python3 Vectors/attachment-files/make.py            writes the file beside this one
    python3 Vectors/attachment-files/make.py --check    fails when it differs from what would be written
"""

import hashlib
import hmac
import json
import pathlib
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

FOLDER = pathlib.Path(__file__).resolve().parent
CHUNK = 16384
LABEL = b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0"


def opened(manifest):
    return json.loads((FOLDER.parent / "manifest" / f"{manifest}.json").read_text())["opened"]


def seal(key, context, content, salt):
    info = LABEL + salt + context
    okm = HKDFExpand(algorithm=hashes.SHA512(), length=76, info=info).derive(key)
    file = salt + okm[44:]
    base = int.from_bytes(okm[32:44], "big")
    for index in range(len(content) // CHUNK + 1):
        nonce = (base ^ index).to_bytes(12, "big")
        file += AESGCM(okm[:32]).encrypt(nonce, content[index * CHUNK:(index + 1) * CHUNK], None)
    return file


def vector(comment, manifest, content, result="opens", purpose="attachments", generation=0, uuid=None, label=None):
    """`generation` is added to the store's; `uuid` and `label` take the place of the right ones in the context."""
    store = opened(manifest)
    sha1 = hashlib.sha1(content).digest()
    keys = store["subkeys"]
    if keys is None:
        file, header = content, b""
    else:
        context = (label or b"coffer/v1/attachment") + b"\0" + (uuid or bytes.fromhex(store["storeUUID"]))
        context += (store["generation"] + generation).to_bytes(8, "big")
        salt = hashlib.sha256(b"salt\0" + comment.encode()).digest()[:24]
        file = seal(bytes.fromhex(keys[purpose]), context, content, salt)
        header = file[:56]
    name = sha1.hex()
    if store["keyedNames"]:
        name = hmac.new(bytes.fromhex(keys["names"]), sha1, hashlib.sha256).hexdigest()
    return {
        "comment": comment, "manifest": manifest, "result": result, "name": name + ".blob", "sha1": sha1.hex(),
        "sha256": hashlib.sha256(content).hexdigest(), "byteCount": len(content), "header": header.hex(),
        "file": file.hex(),
    }


def vectors():
    attach1 = b"This is the body of attach1"
    long = bytes(index % 251 for index in range(CHUNK + 1))
    raw, keyed, plain, large = "valid-raw-key", "valid-keyed-names", "valid-unencrypted", "valid-largest-numbers"
    for manifest in (raw, keyed, plain):
        yield vector(f"{manifest}: no bytes", manifest, b"")
        yield vector(f"{manifest}: a few bytes", manifest, attach1)
    yield vector("two chunks", raw, long)
    yield vector("not encrypted, longer than a chunk", plain, long)
    yield vector("the largest generation there is", large, attach1)
    for comment, fields in {
        "another generation in its context": dict(generation=1),
        "another store in its context": dict(uuid=bytes(16)),
        "the purpose's label as its context": dict(label=b"coffer/v1/attachments"),
        "the key of the names": dict(purpose="names"),
        "the key of the database": dict(purpose="database"),
    }.items():
        yield vector("sealed for this store, but with " + comment, raw, attach1, "damaged", **fields)


def main():
    text = json.dumps({
        "description": "Files of the store whose MANIFEST is in Vectors/manifest: each lies in attachments/ under its "
                       "name, its row has sha1, sha256, byteCount and header, and it opens or is damaged.",
        "vectors": list(vectors()),
    }, indent=1) + "\n"
    path = FOLDER / "files.json"
    if "--check" in sys.argv:
        sys.exit(0 if path.read_text() == text else f"{path} is not what would be written")
    path.write_text(text)


main()

// A store of Couchbase Lite 1.x, by hand on SQLCipher's C API: what an import reads.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct couchbase_lite couchbase_lite;

// A new database file of schema 102 under a key of 64 hex digits, with SQLCipher 3's settings. NULL when that fails.
couchbase_lite *couchbase_lite_new(const char *path, const char *hex_key);

// Adds a document with one revision, whose body this is. All of them are one transaction, which `couchbase_lite_close` commits.
bool couchbase_lite_insert(couchbase_lite *, const char *id, const void *body, size_t count);
bool couchbase_lite_close(couchbase_lite *);

// The SHA-1 of a content, by which its file and its attachment name it.
bool couchbase_lite_digest(const void *content, size_t count, uint8_t digest[20]);

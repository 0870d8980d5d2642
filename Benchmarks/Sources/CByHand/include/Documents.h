// Documents and an index over them as somebody keeps them by hand on SQLCipher's C API: Coffer's rows, indexes and digests,
// statements prepared once, nothing else. One thread at a time.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct documents documents;

// A new database under a key of 64 hex digits, which writes ahead. `is_durable` syncs every commit. NULL when that fails.
documents *documents_new(const char *path, const char *hex_key, int cache_kilobytes, bool is_durable);
// The same with nothing but a table of keys and values, in which documents are the values of their ids: they have no
// revisions, digests or index. Less than Coffer keeps: the scale that other engines' figures are compared on.
documents *documents_new_pairs(const char *path, const char *hex_key, int cache_kilobytes, bool is_durable);
// Opens a database of documents that is there, with its key and settings. Nothing of it is read yet.
documents *documents_open(const char *path, const char *hex_key, int cache_kilobytes, bool is_durable);
void documents_free(documents *);

bool documents_begin(documents *);
bool documents_commit(documents *);

// Inserts a new document with its first revision: SHA-256 makes its id.
bool documents_insert(documents *, const char *id, size_t id_count, const void *body, size_t count);

// Inserts the next revision of a document that is there.
bool documents_update(documents *, const char *id, size_t id_count, const void *body, size_t count);

// Calls `visit` with the winning revision's body, or with all documents' in the order of their ids.
typedef void visit_body(void *context, const char *id, size_t id_count, const void *body, size_t count);
bool documents_read(documents *, const char *id, size_t id_count, visit_body *visit, void *context);
bool documents_read_all(documents *, visit_body *visit, void *context);

// An index: a table of entries with an index over their keys and one over their documents.
// `make_key` writes the key that belongs to a body, and returns its length, 0 for none.
typedef size_t make_key(void *context, const void *body, size_t count, uint8_t *key, size_t limit);

// Makes an entry for each document, in transactions of `batch` documents.
bool documents_index(documents *, size_t batch, make_key *make, void *context);
bool documents_drop_index(documents *);

// Calls `visit` with the key, in place of the id, and the id, in place of the body, of up to `limit` entries from a key on.
bool documents_range(documents *, const void *key, size_t key_count, int limit, visit_body *visit, void *context);

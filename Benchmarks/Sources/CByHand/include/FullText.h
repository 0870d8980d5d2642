// Full text by hand on SQLCipher's C API: SQLite's FTS4 over texts that are kept elsewhere, ranked by BM25 from matchinfo.
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct full_text full_text;

// A new database under a key of 64 hex digits, which writes ahead and syncs every commit. NULL when that fails.
full_text *full_text_new(const char *path, const char *hex_key, int cache_kilobytes);
void full_text_free(full_text *);

bool full_text_begin(full_text *);
bool full_text_commit(full_text *);
bool full_text_insert(full_text *, const char *text, size_t count);

// The number of the documents that a query finds; `best` gets those of the `limit` best, 0 behind the last. -1 when it fails.
long full_text_search(full_text *, const char *query, long long *best, int limit);

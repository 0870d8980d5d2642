// Keys with a value each, as somebody keeps them by hand on SQLCipher's C API: one table, statements prepared once, nothing
// else. Less than documents with revisions: what other engines' figures are compared with. One thread at a time.
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct key_values key_values;

// A new database under a key of 64 hex digits, which writes ahead and syncs every commit. NULL when that fails.
key_values *key_values_new(const char *path, const char *hex_key, int cache_kilobytes);
void key_values_free(key_values *);

bool key_values_begin(key_values *);
bool key_values_commit(key_values *);

bool key_values_insert(key_values *, const char *key, size_t key_count, const void *value, size_t count);
bool key_values_update(key_values *, const char *key, size_t key_count, const void *value, size_t count);

// Calls `visit` with the value of a key, or with all in the order of their keys.
typedef void visit_value(void *context, const char *key, size_t key_count, const void *value, size_t count);
bool key_values_read(key_values *, const char *key, size_t key_count, visit_value *visit, void *context);
bool key_values_read_all(key_values *, visit_value *visit, void *context);

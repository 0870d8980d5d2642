#define SQLITE_HAS_CODEC 1
#include "KeyValues.h"

#include <sqlcipher/sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { BEGIN, COMMIT, INSERT, UPDATE, FIND, ALL, STATEMENT_COUNT };

static const char *const SQL[STATEMENT_COUNT] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [INSERT] = "INSERT INTO pairs (key, value) VALUES (?1, ?2)",
    [UPDATE] = "UPDATE pairs SET value = ?2 WHERE key = ?1",
    [FIND] = "SELECT key, value FROM pairs WHERE key = ?1",
    [ALL] = "SELECT key, value FROM pairs ORDER BY key",
};

struct key_values {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENT_COUNT];
};

key_values *key_values_new(const char *path, const char *hex_key, int cache_kilobytes) {
    key_values *store = calloc(1, sizeof *store);
    if (!store) return NULL;
    char key[80], sql[512];
    int count = snprintf(key, sizeof key, "x'%s'", hex_key);
    snprintf(sql, sizeof sql,
             "PRAGMA cipher_page_size = 4096; PRAGMA cipher_hmac_algorithm = HMAC_SHA1; "
             "PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_SHA1; PRAGMA temp_store = MEMORY; PRAGMA journal_mode = WAL; "
             "PRAGMA wal_autocheckpoint = 4096; PRAGMA synchronous = FULL; PRAGMA cache_size = -%d; "
             "CREATE TABLE pairs (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID",
             cache_kilobytes);
    bool fine =
        sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) ==
            SQLITE_OK &&
        sqlite3_key_v2(store->db, "main", key, count) == SQLITE_OK &&
        sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK;
    for (int which = 0; fine && which < STATEMENT_COUNT; which++)
        fine = sqlite3_prepare_v2(store->db, SQL[which], -1, &store->statements[which], NULL) == SQLITE_OK;
    if (fine) return store;
    key_values_free(store);
    return NULL;
}

void key_values_free(key_values *store) {
    if (!store) return;
    for (int which = 0; which < STATEMENT_COUNT; which++) sqlite3_finalize(store->statements[which]);
    sqlite3_close(store->db);
    free(store);
}

static bool run(key_values *store, int which) {
    bool fine = sqlite3_step(store->statements[which]) == SQLITE_DONE;
    sqlite3_reset(store->statements[which]);
    return fine;
}

bool key_values_begin(key_values *store) { return run(store, BEGIN); }
bool key_values_commit(key_values *store) { return run(store, COMMIT); }

static bool write_pair(key_values *store, int which, const char *key, size_t key_count, const void *value, size_t count) {
    sqlite3_bind_text(store->statements[which], 1, key, (int)key_count, SQLITE_STATIC);
    sqlite3_bind_blob(store->statements[which], 2, value, (int)count, SQLITE_STATIC);
    return run(store, which);
}

bool key_values_insert(key_values *store, const char *key, size_t key_count, const void *value, size_t count) {
    return write_pair(store, INSERT, key, key_count, value, count);
}

bool key_values_update(key_values *store, const char *key, size_t key_count, const void *value, size_t count) {
    return write_pair(store, UPDATE, key, key_count, value, count);
}

static bool visit_all(sqlite3_stmt *rows, visit_value *visit, void *context) {
    int code;
    while ((code = sqlite3_step(rows)) == SQLITE_ROW) {
        // SQLite has a column's bytes before it has their number.
        const char *key = sqlite3_column_blob(rows, 0);
        const void *value = sqlite3_column_blob(rows, 1);
        visit(context, key, (size_t)sqlite3_column_bytes(rows, 0), value, (size_t)sqlite3_column_bytes(rows, 1));
    }
    sqlite3_reset(rows);
    return code == SQLITE_DONE;
}

bool key_values_read(key_values *store, const char *key, size_t key_count, visit_value *visit, void *context) {
    sqlite3_bind_text(store->statements[FIND], 1, key, (int)key_count, SQLITE_STATIC);
    return visit_all(store->statements[FIND], visit, context);
}

bool key_values_read_all(key_values *store, visit_value *visit, void *context) {
    return visit_all(store->statements[ALL], visit, context);
}

#define _GNU_SOURCE
#define SQLITE_HAS_CODEC 1
#include "Documents.h"

#include <openssl/evp.h>
#include <sqlcipher/sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BEGIN, COMMIT, INSERT_DOCUMENT, INSERT_REVISION, UPDATE_DOCUMENT, FIND, FIND_ROW, ALL, NEXT, INSERT_ENTRY, RANGE,
    STATEMENT_COUNT
};

static const char *const SQL[STATEMENT_COUNT] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [INSERT_DOCUMENT] = "INSERT INTO documents (id, number, winner, flags) VALUES (?1, ?2, ?2, 0)",
    [INSERT_REVISION] = "INSERT INTO revisions (sequence, document, parent, flags, generation, suffix, digest, id, body) "
                        "VALUES (?1, ?2, ?3, 0, ?4, ?5, NULL, ?6, ?7)",
    [UPDATE_DOCUMENT] = "UPDATE documents SET winner = ?2 WHERE id = ?1",
    [FIND] = "SELECT r.id, r.body FROM documents AS d JOIN revisions AS r ON r.sequence = d.winner WHERE d.id = ?1",
    [FIND_ROW] = "SELECT d.number, d.winner, r.generation, r.suffix FROM documents AS d "
                 "JOIN revisions AS r ON r.sequence = d.winner WHERE d.id = ?1",
    [ALL] = "SELECT d.id, r.body FROM documents AS d JOIN revisions AS r ON r.sequence = d.winner ORDER BY d.id",
    [NEXT] = "SELECT sequence, document, id, body FROM revisions WHERE sequence > ?1 ORDER BY sequence LIMIT ?2",
    [INSERT_ENTRY] = "INSERT INTO entries (document, key, id, value) VALUES (?1, ?2, ?3, ?4)",
    [RANGE] = "SELECT key, id, value FROM entries WHERE key >= ?1 ORDER BY key, id LIMIT ?2",
};

// Those of keys and values, which have no more than these.
static const char *const PAIRS_SQL[STATEMENT_COUNT] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [INSERT_DOCUMENT] = "INSERT INTO pairs (key, value) VALUES (?1, ?2)",
    [UPDATE_DOCUMENT] = "UPDATE pairs SET value = ?2 WHERE key = ?1",
    [FIND] = "SELECT key, value FROM pairs WHERE key = ?1",
    [ALL] = "SELECT key, value FROM pairs ORDER BY key",
};

struct documents {
    sqlite3 *db;
    const char *const *sql;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    EVP_MD_CTX *digest;
    sqlite3_int64 sequence;
};

static bool execute(documents *store, const char *sql) {
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

// The statement, prepared when it is first needed.
static sqlite3_stmt *statement(documents *store, int which) {
    if (!store->statements[which])
        sqlite3_prepare_v2(store->db, store->sql[which], -1, &store->statements[which], NULL);
    return store->statements[which];
}

static bool run(documents *store, int which) {
    sqlite3_stmt *prepared = statement(store, which);
    bool fine = prepared && sqlite3_step(prepared) == SQLITE_DONE;
    sqlite3_reset(prepared);
    return fine;
}

documents *documents_open(const char *path, const char *hex_key, int cache_kilobytes, bool is_durable) {
    documents *store = calloc(1, sizeof *store);
    if (!store) return NULL;
    store->sql = SQL;
    char text[256];
    int count = snprintf(text, sizeof text, "x'%s'", hex_key);
    bool fine =
        (store->digest = EVP_MD_CTX_new()) &&
        sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) ==
            SQLITE_OK &&
        sqlite3_key_v2(store->db, "main", text, count) == SQLITE_OK &&
        execute(store, "PRAGMA cipher_page_size = 4096; PRAGMA cipher_hmac_algorithm = HMAC_SHA1; "
                       "PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_SHA1; PRAGMA temp_store = MEMORY; "
                       "PRAGMA wal_autocheckpoint = 4096");
    snprintf(text, sizeof text, "PRAGMA cache_size = -%d; PRAGMA synchronous = %s", cache_kilobytes,
             is_durable ? "FULL" : "NORMAL");
    if (fine && execute(store, text)) return store;
    documents_free(store);
    return NULL;
}

documents *documents_new_pairs(const char *path, const char *hex_key, int cache_kilobytes, bool is_durable) {
    documents *store = documents_open(path, hex_key, cache_kilobytes, is_durable);
    if (!store) return NULL;
    store->sql = PAIRS_SQL;
    if (execute(store, "PRAGMA journal_mode = WAL; CREATE TABLE pairs (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID"))
        return store;
    documents_free(store);
    return NULL;
}

documents *documents_new(const char *path, const char *hex_key, int cache_kilobytes, bool is_durable) {
    documents *store = documents_open(path, hex_key, cache_kilobytes, is_durable);
    if (!store) return NULL;
    if (execute(store, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"
                       "CREATE TABLE documents (id TEXT PRIMARY KEY, number INTEGER NOT NULL, winner INTEGER NOT NULL, "
                       "flags INTEGER NOT NULL) WITHOUT ROWID;"
                       "CREATE TABLE revisions (sequence INTEGER PRIMARY KEY, document INTEGER NOT NULL, parent INTEGER, "
                       "flags INTEGER NOT NULL, generation INTEGER NOT NULL, suffix NOT NULL, digest BLOB, "
                       "id TEXT NOT NULL, body BLOB);"
                       "CREATE UNIQUE INDEX later_revisions ON revisions (document, generation, suffix) "
                       "WHERE document <> sequence"))
        return store;
    documents_free(store);
    return NULL;
}

void documents_free(documents *store) {
    if (!store) return;
    for (int which = 0; which < STATEMENT_COUNT; which++) sqlite3_finalize(store->statements[which]);
    sqlite3_close(store->db);
    EVP_MD_CTX_free(store->digest);
    free(store);
}

bool documents_begin(documents *store) { return run(store, BEGIN); }
bool documents_commit(documents *store) { return run(store, COMMIT); }

// A revision's id: SHA-256 of the parent's and of the body.
static bool digest(documents *store, const void *parent, size_t parent_count, const void *body, size_t count,
                   uint8_t id[32]) {
    uint8_t head[3] = {0, (uint8_t)parent_count, 0};
    return EVP_DigestInit_ex(store->digest, EVP_sha256(), NULL) && EVP_DigestUpdate(store->digest, head, 2) &&
           EVP_DigestUpdate(store->digest, parent, parent_count) && EVP_DigestUpdate(store->digest, head, 1) &&
           EVP_DigestUpdate(store->digest, body, count) && EVP_DigestFinal_ex(store->digest, id, NULL);
}

static bool insert_revision(documents *store, sqlite3_int64 document, sqlite3_int64 parent, int generation,
                            const uint8_t *suffix, const char *id, size_t id_count, const void *body, size_t count) {
    sqlite3_stmt *insert = statement(store, INSERT_REVISION);
    sqlite3_bind_int64(insert, 1, store->sequence + 1);
    sqlite3_bind_int64(insert, 2, document);
    if (parent) sqlite3_bind_int64(insert, 3, parent);
    else sqlite3_bind_null(insert, 3);
    sqlite3_bind_int(insert, 4, generation);
    sqlite3_bind_blob(insert, 5, suffix, 16, SQLITE_STATIC);
    sqlite3_bind_text(insert, 6, id, (int)id_count, SQLITE_STATIC);
    sqlite3_bind_blob(insert, 7, body, (int)count, SQLITE_STATIC);
    if (!run(store, INSERT_REVISION)) return false;
    store->sequence++;
    return true;
}

static bool write_pair(documents *store, int which, const char *key, size_t key_count, const void *value, size_t count) {
    sqlite3_stmt *write = statement(store, which);
    sqlite3_bind_text(write, 1, key, (int)key_count, SQLITE_STATIC);
    sqlite3_bind_blob(write, 2, value, (int)count, SQLITE_STATIC);
    return run(store, which);
}

bool documents_insert(documents *store, const char *id, size_t id_count, const void *body, size_t count) {
    if (store->sql == PAIRS_SQL) return write_pair(store, INSERT_DOCUMENT, id, id_count, body, count);
    uint8_t suffix[32];
    sqlite3_stmt *insert = statement(store, INSERT_DOCUMENT);
    sqlite3_bind_text(insert, 1, id, (int)id_count, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 2, store->sequence + 1);
    return digest(store, "", 0, body, count, suffix) && run(store, INSERT_DOCUMENT) &&
           insert_revision(store, store->sequence + 1, 0, 1, suffix, id, id_count, body, count);
}

bool documents_update(documents *store, const char *id, size_t id_count, const void *body, size_t count) {
    if (store->sql == PAIRS_SQL) return write_pair(store, UPDATE_DOCUMENT, id, id_count, body, count);
    uint8_t suffix[32], parent_id[24];
    sqlite3_stmt *find = statement(store, FIND_ROW);
    sqlite3_bind_text(find, 1, id, (int)id_count, SQLITE_STATIC);
    if (sqlite3_step(find) != SQLITE_ROW) return sqlite3_reset(find), false;
    sqlite3_int64 number = sqlite3_column_int64(find, 0), winner = sqlite3_column_int64(find, 1);
    int generation = sqlite3_column_int(find, 2);
    memcpy(parent_id, sqlite3_column_blob(find, 3), 16);
    sqlite3_reset(find);
    sqlite3_stmt *update = statement(store, UPDATE_DOCUMENT);
    sqlite3_bind_text(update, 1, id, (int)id_count, SQLITE_STATIC);
    sqlite3_bind_int64(update, 2, store->sequence + 1);
    return digest(store, parent_id, 16, body, count, suffix) && run(store, UPDATE_DOCUMENT) &&
           insert_revision(store, number, winner, generation + 1, suffix, id, id_count, body, count);
}

static bool visit_all(sqlite3_stmt *rows, visit_body *visit, void *context) {
    int code;
    while ((code = sqlite3_step(rows)) == SQLITE_ROW) {
        // SQLite has a column's bytes before it has their number.
        const char *id = sqlite3_column_blob(rows, 0);
        const void *body = sqlite3_column_blob(rows, 1);
        visit(context, id, (size_t)sqlite3_column_bytes(rows, 0), body, (size_t)sqlite3_column_bytes(rows, 1));
    }
    sqlite3_reset(rows);
    return code == SQLITE_DONE;
}

bool documents_read(documents *store, const char *id, size_t id_count, visit_body *visit, void *context) {
    sqlite3_stmt *find = statement(store, FIND);
    sqlite3_bind_text(find, 1, id, (int)id_count, SQLITE_STATIC);
    return visit_all(find, visit, context);
}

bool documents_read_all(documents *store, visit_body *visit, void *context) {
    return visit_all(statement(store, ALL), visit, context);
}

bool documents_index(documents *store, size_t batch, make_key *make, void *context) {
    bool fine = execute(store, "CREATE TABLE entries (number INTEGER PRIMARY KEY, document INTEGER NOT NULL, "
                               "key BLOB NOT NULL, id TEXT NOT NULL, value BLOB);"
                               "CREATE INDEX entries_by_key ON entries (key, id);"
                               "CREATE INDEX entries_of_document ON entries (document)");
    sqlite3_int64 position = 0;
    bool is_over = false;
    while (fine && !is_over) {
        is_over = true;
        sqlite3_stmt *next = statement(store, NEXT), *insert = statement(store, INSERT_ENTRY);
        fine = documents_begin(store);
        sqlite3_bind_int64(next, 1, position);
        sqlite3_bind_int64(next, 2, (sqlite3_int64)batch);
        while (fine && sqlite3_step(next) == SQLITE_ROW) {
            uint8_t key[512];
            position = sqlite3_column_int64(next, 0);
            is_over = false;
            const void *body = sqlite3_column_blob(next, 3);
            size_t count = make(context, body, (size_t)sqlite3_column_bytes(next, 3), key, sizeof key);
            if (!count) continue;
            sqlite3_bind_int64(insert, 1, sqlite3_column_int64(next, 1));
            sqlite3_bind_blob(insert, 2, key, (int)count, SQLITE_STATIC);
            sqlite3_bind_value(insert, 3, sqlite3_column_value(next, 2));
            sqlite3_bind_null(insert, 4);
            fine = run(store, INSERT_ENTRY);
        }
        sqlite3_reset(next);
        fine = documents_commit(store) && fine;
    }
    return fine;
}

bool documents_drop_index(documents *store) {
    for (int which = INSERT_ENTRY; which <= RANGE; which++) {
        sqlite3_finalize(store->statements[which]);
        store->statements[which] = NULL;
    }
    return execute(store, "DROP TABLE entries");
}

bool documents_range(documents *store, const void *key, size_t key_count, int limit, visit_body *visit, void *context) {
    sqlite3_stmt *range = statement(store, RANGE);
    sqlite3_bind_blob(range, 1, key, (int)key_count, SQLITE_STATIC);
    sqlite3_bind_int(range, 2, limit);
    return visit_all(range, visit, context);
}

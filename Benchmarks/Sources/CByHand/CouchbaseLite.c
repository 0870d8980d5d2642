#define SQLITE_HAS_CODEC 1
#include "CouchbaseLite.h"

#include <openssl/evp.h>
#include <sqlcipher/sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct couchbase_lite {
    sqlite3 *db;
    sqlite3_stmt *document, *revision;
    sqlite3_int64 number;
};

static bool run(sqlite3 *db, const char *sql) { return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK; }

couchbase_lite *couchbase_lite_new(const char *path, const char *hex_key) {
    couchbase_lite *store = calloc(1, sizeof *store);
    char key[70];
    int count = snprintf(key, sizeof key, "x'%s'", hex_key);
    if (store && sqlite3_open(path, &store->db) == SQLITE_OK &&
        sqlite3_key_v2(store->db, "main", key, count) == SQLITE_OK &&
        run(store->db,
            "PRAGMA cipher_page_size = 1024; PRAGMA cipher_hmac_algorithm = HMAC_SHA1; "
            "PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_SHA1; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
            "PRAGMA user_version = 102; BEGIN; "
            "CREATE TABLE docs (doc_id INTEGER PRIMARY KEY, docid TEXT UNIQUE NOT NULL, expiry_timestamp INTEGER); "
            "CREATE TABLE revs (sequence INTEGER PRIMARY KEY AUTOINCREMENT, doc_id INTEGER NOT NULL, revid TEXT NOT NULL, "
            "parent INTEGER, current BOOLEAN, deleted BOOLEAN DEFAULT 0, json BLOB, no_attachments BOOLEAN, doc_type TEXT); "
            "CREATE INDEX revs_parent ON revs (parent); "
            "CREATE INDEX revs_current ON revs (doc_id, current DESC, deleted, revid DESC); "
            "CREATE TABLE localdocs (docid TEXT UNIQUE NOT NULL, revid TEXT NOT NULL, json BLOB); "
            "CREATE TABLE views (view_id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, version TEXT); "
            "CREATE TABLE info (key TEXT PRIMARY KEY, value TEXT)") &&
        sqlite3_prepare_v2(store->db, "INSERT INTO docs (doc_id, docid) VALUES (?1, ?2)", -1, &store->document, NULL) ==
            SQLITE_OK &&
        sqlite3_prepare_v2(store->db,
                           "INSERT INTO revs (doc_id, revid, current, deleted, json) "
                           "VALUES (?1, '1-' || lower(hex(randomblob(16))), 1, 0, ?2)",
                           -1, &store->revision, NULL) == SQLITE_OK)
        return store;
    if (store) sqlite3_close(store->db);
    free(store);
    return NULL;
}

static bool step(sqlite3_stmt *statement) {
    int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    return code == SQLITE_DONE;
}

bool couchbase_lite_insert(couchbase_lite *store, const char *id, const void *body, size_t count) {
    store->number++;
    return sqlite3_bind_int64(store->document, 1, store->number) == SQLITE_OK &&
           sqlite3_bind_text(store->document, 2, id, -1, SQLITE_STATIC) == SQLITE_OK && step(store->document) &&
           sqlite3_bind_int64(store->revision, 1, store->number) == SQLITE_OK &&
           sqlite3_bind_blob(store->revision, 2, body, (int)count, SQLITE_STATIC) == SQLITE_OK && step(store->revision);
}

bool couchbase_lite_close(couchbase_lite *store) {
    bool fine = run(store->db, "COMMIT");
    sqlite3_finalize(store->document);
    sqlite3_finalize(store->revision);
    fine = sqlite3_close(store->db) == SQLITE_OK && fine;
    free(store);
    return fine;
}

bool couchbase_lite_digest(const void *content, size_t count, uint8_t digest[20]) {
    return EVP_Digest(content, count, digest, NULL, EVP_sha1(), NULL) == 1;
}

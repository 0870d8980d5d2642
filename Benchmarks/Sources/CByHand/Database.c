#define _GNU_SOURCE
#define SQLITE_HAS_CODEC 1
#include "Database.h"

#include <sqlcipher/sqlite3.h>
#include <stdio.h>
#include <string.h>

static bool run(sqlite3 *db, const char *sql) { return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK; }

static bool attach(sqlite3 *db, const char *path, const char *hex_key) {
    sqlite3_stmt *statement = NULL;
    char key[70];
    int count = hex_key ? snprintf(key, sizeof key, "x'%s'", hex_key) : 0;
    bool fine = sqlite3_prepare_v2(db, "ATTACH ?1 AS copy KEY ?2", -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_bind_blob(statement, 2, key, count, SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_finalize(statement);
    return fine;
}

static bool use_portable_profile(sqlite3 *db, const char *schema) {
    char sql[256];
    snprintf(sql, sizeof sql,
             "PRAGMA %s.cipher_page_size = 4096; PRAGMA %s.cipher_hmac_algorithm = HMAC_SHA1; "
             "PRAGMA %s.cipher_kdf_algorithm = PBKDF2_HMAC_SHA1;",
             schema, schema, schema);
    return run(db, sql);
}

bool by_hand_export(const char *path, const char *hex_key, const char *copy, const char *copy_hex_key) {
    sqlite3 *db = NULL;
    bool fine = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) == SQLITE_OK;
    if (fine && hex_key) {
        char key[70];
        int count = snprintf(key, sizeof key, "x'%s'", hex_key);
        fine = sqlite3_key_v2(db, "main", key, count) == SQLITE_OK && use_portable_profile(db, "main");
    }
    fine = fine && run(db, "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384") && attach(db, copy, copy_hex_key) &&
           (!copy_hex_key || use_portable_profile(db, "copy")) &&
           run(db, "PRAGMA copy.journal_mode = OFF; PRAGMA copy.synchronous = OFF; PRAGMA copy.cache_size = -16384") &&
           run(db, "BEGIN; SELECT sqlcipher_export('copy'); COMMIT; DETACH copy");
    return sqlite3_close(db) == SQLITE_OK && fine;
}

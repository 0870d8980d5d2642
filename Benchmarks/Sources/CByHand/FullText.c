#define SQLITE_HAS_CODEC 1
#include "FullText.h"

#include <math.h>
#include <sqlcipher/sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct full_text {
    sqlite3 *db;
    sqlite3_stmt *insert, *find;
};

static bool run(sqlite3 *db, const char *sql) { return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK; }

full_text *full_text_new(const char *path, const char *hex_key, int cache_kilobytes) {
    full_text *store = calloc(1, sizeof *store);
    char key[70], cache[64];
    int count = snprintf(key, sizeof key, "x'%s'", hex_key);
    snprintf(cache, sizeof cache, "PRAGMA cache_size = -%d", cache_kilobytes);
    if (store && sqlite3_open(path, &store->db) == SQLITE_OK &&
        sqlite3_key_v2(store->db, "main", key, count) == SQLITE_OK &&
        run(store->db, "PRAGMA cipher_page_size = 4096; PRAGMA cipher_hmac_algorithm = HMAC_SHA1; "
                       "PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_SHA1") &&
        run(store->db, cache) && run(store->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL") &&
        run(store->db, "CREATE VIRTUAL TABLE texts USING fts4(content=\"\", text, tokenize=unicode61)") &&
        sqlite3_prepare_v2(store->db, "INSERT INTO texts (docid, text) SELECT coalesce(?1, 0), ?2", -1, &store->insert,
                           NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(store->db, "SELECT docid, matchinfo(texts, 'pcnalx') FROM texts WHERE texts MATCH ?1", -1,
                           &store->find, NULL) == SQLITE_OK)
        return store;
    full_text_free(store);
    return NULL;
}

void full_text_free(full_text *store) {
    if (!store) return;
    sqlite3_finalize(store->insert);
    sqlite3_finalize(store->find);
    sqlite3_close(store->db);
    free(store);
}

bool full_text_begin(full_text *store) { return run(store->db, "BEGIN IMMEDIATE"); }
bool full_text_commit(full_text *store) { return run(store->db, "COMMIT"); }

bool full_text_insert(full_text *store, const char *text, size_t count) {
    // Contentless tables are told the number.
    bool fine = sqlite3_bind_int64(store->insert, 1, sqlite3_last_insert_rowid(store->db) + 1) == SQLITE_OK &&
                sqlite3_bind_text(store->insert, 2, text, (int)count, SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_step(store->insert) == SQLITE_DONE;
    sqlite3_reset(store->insert);
    return fine;
}

// BM25 of a row by what matchinfo says: phrases, columns, rows, average lengths, lengths, and three numbers a phrase.
static double score(const uint32_t *info) {
    uint32_t phrases = info[0];
    double rows = info[2], average = info[3], length = info[4], sum = 0;
    for (uint32_t phrase = 0; phrase < phrases; phrase++) {
        double frequency = info[5 + 3 * phrase], documents = info[5 + 3 * phrase + 2];
        sum += log(1 + (rows - documents + 0.5) / (documents + 0.5)) * frequency * 2.2 /
               (frequency + 1.2 * (0.25 + 0.75 * length / average));
    }
    return sum;
}

long full_text_search(full_text *store, const char *query, long long *best, int limit) {
    double scores[64];
    long count = 0;
    if (limit > 64) return -1;
    memset(best, 0, sizeof *best * (size_t)limit);
    for (int place = 0; place < limit; place++) scores[place] = -1;
    sqlite3_bind_text(store->find, 1, query, -1, SQLITE_STATIC);
    int code;
    while ((code = sqlite3_step(store->find)) == SQLITE_ROW) {
        double value = score(sqlite3_column_blob(store->find, 1));
        count++;
        if (value <= scores[limit - 1]) continue;
        int place = limit - 1;
        for (; place > 0 && scores[place - 1] < value; place--) {
            scores[place] = scores[place - 1];
            best[place] = best[place - 1];
        }
        scores[place] = value;
        best[place] = sqlite3_column_int64(store->find, 0);
    }
    sqlite3_reset(store->find);
    return code == SQLITE_DONE ? count : -1;
}

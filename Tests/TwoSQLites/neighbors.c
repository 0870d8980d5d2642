// A process that has SQLCipher by way of CSQLCipher and SQLite by another: each must do its own work, or SQLCipher be
// refused before it does any. scripts/two-sqlites builds this in every way in which the two can meet, and runs it.
//
//     neighbors FOLDER first|last loads|refuses
//
// FOLDER is for files. "first" has SQLite do something before SQLCipher is loaded, "last" only after it. With
// -DNEIGHBOR_LINKED it is the SQLite that the program is linked with; otherwise libsqlite3.so.0 is opened for everybody
// in the process, as a plug-in does it.
#define _GNU_SOURCE  // memmem
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CSQLCipher.h"

static const char canary[] = "a canary that either library writes";

static void expect(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "this does not hold: %s\n", what);
    exit(1);
}

// MARK: The neighbor

#ifdef NEIGHBOR_LINKED
int sqlite3_open(const char *, sqlite3 **);
int sqlite3_exec(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
int sqlite3_close(sqlite3 *);
#define neighbor_open sqlite3_open
#define neighbor_exec sqlite3_exec
#define neighbor_close sqlite3_close
static void find_neighbor(void) {}
#else
static int (*neighbor_open)(const char *, sqlite3 **);
static int (*neighbor_exec)(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
static int (*neighbor_close)(sqlite3 *);

static void find_neighbor(void) {
    void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_GLOBAL);
    expect(library != NULL, "there is a libsqlite3");
    *(void **)&neighbor_open = dlsym(library, "sqlite3_open");
    *(void **)&neighbor_exec = dlsym(library, "sqlite3_exec");
    *(void **)&neighbor_close = dlsym(library, "sqlite3_close");
}
#endif

static sqlite3 *neighbor;

static void open_neighbor(const char *path) {
    find_neighbor();
    expect(neighbor_open(path, &neighbor) == 0, "SQLite opens a database");
    expect(neighbor_exec(neighbor, "CREATE TABLE visit (text)", NULL, NULL, NULL) == 0, "SQLite makes a table");
}

static void use_neighbor(void) {
    char sql[200];
    snprintf(sql, sizeof sql, "INSERT INTO visit VALUES ('%s')", canary);
    expect(neighbor_exec(neighbor, sql, NULL, NULL, NULL) == 0, "SQLite writes");
}

// MARK: What is in a file

static int contains(const char *path, const char *text) {
    static char bytes[1 << 20];
    FILE *file = fopen(path, "rb");
    expect(file != NULL, "the file is there");
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return count > 0 && memmem(bytes, count, text, strlen(text)) != NULL;
}

// MARK: SQLCipher

static int is_canary(void *found, int count, char **columns, char **names) {
    (void)names;
    *(int *)found = count == 1 && columns[0] != NULL && strcmp(columns[0], canary) == 0;
    return 0;
}

static int is_anything(void *found, int count, char **columns, char **names) {
    (void)names;
    *(int *)found = count == 1 && columns[0] != NULL;
    return 0;
}

static sqlite3 *open_keyed(const char *path) {
    static const char key[] = "x'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f'";
    sqlite3 *db = NULL;
    int flags = SQLCIPHER_OPEN_READWRITE | SQLCIPHER_OPEN_CREATE;
    expect(sqlcipher_open_v2(path, &db, flags, NULL) == 0, "SQLCipher opens a database");
    expect(sqlcipher_key_v2(db, "main", key, (int)strlen(key)) == 0, "SQLCipher takes a key");
    return db;
}

static void use_sqlcipher(const char *path) {
    sqlite3 *db = open_keyed(path);
    int found = 0;
    expect(sqlcipher_exec(db, "PRAGMA cipher_version", is_anything, &found, NULL) == 0 && found, "it is SQLCipher");
    char sql[200];
    snprintf(sql, sizeof sql, "CREATE TABLE note (text); INSERT INTO note VALUES ('%s')", canary);
    expect(sqlcipher_exec(db, sql, NULL, NULL, NULL) == 0, "SQLCipher writes");
    expect(sqlcipher_close(db) == 0, "SQLCipher closes");
    db = open_keyed(path);
    found = 0;
    expect(sqlcipher_exec(db, "SELECT text FROM note", is_canary, &found, NULL) == 0 && found, "SQLCipher reads back");
    expect(sqlcipher_close(db) == 0, "SQLCipher closes again");
    expect(!contains(path, canary) && !contains(path, "SQLite format 3"), "nothing of it can be read");
}

int main(int count, char **arguments) {
    expect(count == 4, "neighbors FOLDER first|last loads|refuses");
    char keyed[4096], plain[4096];
    snprintf(keyed, sizeof keyed, "%s/keyed", arguments[1]);
    snprintf(plain, sizeof plain, "%s/plain", arguments[1]);
    int is_first = strcmp(arguments[2], "first") == 0, loads = strcmp(arguments[3], "loads") == 0;

    if (is_first) open_neighbor(plain);
    const char *failure = sqlcipher_load();
    if (failure != NULL) fprintf(stderr, "refused: %s\n", failure);
    expect((failure == NULL) == loads, loads ? "SQLCipher is loaded" : "SQLCipher is refused");
    if (loads) use_sqlcipher(keyed);
    if (!is_first) open_neighbor(plain);
    use_neighbor();
    if (loads) {
        remove(keyed);
        use_sqlcipher(keyed);
    }
    use_neighbor();
    expect(neighbor_close(neighbor) == 0, "SQLite closes");
    expect(contains(plain, canary) && contains(plain, "SQLite format 3"), "SQLite's own file can be read");
    printf("%s", loads ? "each did its own work" : "refused, and SQLite did its work");
    return 0;
}

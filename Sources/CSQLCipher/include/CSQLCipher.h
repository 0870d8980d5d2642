// SQLCipher, loaded privately at run time.
//
// Linked as usual, a process that also uses libsqlite3 has two libraries with the same symbols: whichever the loader
// finds first answers both, and encryption silently ends. So nothing is linked here. sqlcipher_load() opens the library
// with its own symbols bound first, and fills one table of function pointers; the functions below call through it.
//
// The header needs no <sqlcipher/sqlite3.h>, so that no other SQLite's declarations can meet these in one compilation.
// CSQLCipher.c includes it and has the compiler compare every signature and constant.
#ifndef COFFER_CSQLCIPHER_H
#define COFFER_CSQLCIPHER_H

#include <stddef.h>

#include "SealedPages.h"

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
typedef struct sqlite3_vfs sqlite3_vfs;

// X(result, name, parameters, arguments): sqlite3_name as sqlcipher_name.
#define SQLCIPHER_FUNCTIONS(X) \
    X(int, open_v2, (const char *path, sqlite3 **db, int flags, const char *vfs), (path, db, flags, vfs)) \
    X(int, close, (sqlite3 * db), (db)) \
    X(int, key_v2, (sqlite3 * db, const char *name, const void *key, int count), (db, name, key, count)) \
    X(int, extended_result_codes, (sqlite3 * db, int on), (db, on)) \
    X(int, extended_errcode, (sqlite3 * db), (db)) \
    X(const char *, errmsg, (sqlite3 * db), (db)) \
    X(const char *, errstr, (int code), (code)) \
    X(int, system_errno, (sqlite3 * db), (db)) \
    X(int, exec, (sqlite3 * db, const char *sql, int (*row)(void *, int, char **, char **), void *context, char **message), \
      (db, sql, row, context, message)) \
    X(int, prepare_v2, (sqlite3 * db, const char *sql, int count, sqlite3_stmt **statement, const char **tail), \
      (db, sql, count, statement, tail)) \
    X(int, finalize, (sqlite3_stmt * statement), (statement)) \
    X(int, step, (sqlite3_stmt * statement), (statement)) \
    X(int, reset, (sqlite3_stmt * statement), (statement)) \
    X(int, bind_null, (sqlite3_stmt * statement, int index), (statement, index)) \
    X(int, bind_int64, (sqlite3_stmt * statement, int index, long long value), (statement, index, value)) \
    X(int, bind_double, (sqlite3_stmt * statement, int index, double value), (statement, index, value)) \
    X(int, bind_text, (sqlite3_stmt * statement, int index, const char *text, int count, void (*destroy)(void *)), \
      (statement, index, text, count, destroy)) \
    X(int, bind_blob, (sqlite3_stmt * statement, int index, const void *bytes, int count, void (*destroy)(void *)), \
      (statement, index, bytes, count, destroy)) \
    X(int, bind_zeroblob, (sqlite3_stmt * statement, int index, int count), (statement, index, count)) \
    X(int, clear_bindings, (sqlite3_stmt * statement), (statement)) \
    X(int, column_count, (sqlite3_stmt * statement), (statement)) \
    X(int, column_type, (sqlite3_stmt * statement, int column), (statement, column)) \
    X(long long, column_int64, (sqlite3_stmt * statement, int column), (statement, column)) \
    X(double, column_double, (sqlite3_stmt * statement, int column), (statement, column)) \
    X(const void *, column_blob, (sqlite3_stmt * statement, int column), (statement, column)) \
    X(int, column_bytes, (sqlite3_stmt * statement, int column), (statement, column)) \
    X(int, changes, (sqlite3 * db), (db)) \
    X(long long, last_insert_rowid, (sqlite3 * db), (db)) \
    X(int, get_autocommit, (sqlite3 * db), (db)) \
    X(int, busy_timeout, (sqlite3 * db, int milliseconds), (db, milliseconds)) \
    X(void *, wal_hook, (sqlite3 * db, int (*committed)(void *, sqlite3 *, const char *, int), void *context), \
      (db, committed, context)) \
    X(int, wal_checkpoint_v2, (sqlite3 * db, const char *name, int mode, int *frames, int *moved), \
      (db, name, mode, frames, moved)) \
    X(void, progress_handler, (sqlite3 * db, int steps, int (*asked)(void *), void *context), (db, steps, asked, context)) \
    X(int, file_control, (sqlite3 * db, const char *name, int operation, void *argument), (db, name, operation, argument)) \
    X(sqlite3_vfs *, vfs_find, (const char *name), (name)) \
    X(int, vfs_register, (sqlite3_vfs * vfs, int is_default), (vfs, is_default)) \
    X(int, limit, (sqlite3 * db, int which, int value), (db, which, value)) \
    X(const char *, libversion, (void), ()) \
    X(int, threadsafe, (void), ()) \
    X(int, compileoption_used, (const char *name), (name))

struct sqlcipher_table {
#define X(result, name, parameters, arguments) result(*name) parameters;
    SQLCIPHER_FUNCTIONS(X)
#undef X
};

extern struct sqlcipher_table sqlcipher_table;

#define X(result, name, parameters, arguments) \
    static inline result sqlcipher_##name parameters { return sqlcipher_table.name arguments; }
SQLCIPHER_FUNCTIONS(X)
#undef X

// Loads the library once per process: SQLCipher, or SQLite where there is none, which has no key_v2. Returns NULL, or why it
// could not be loaded; the text lives as long as the process. Safe from any thread. Must have returned NULL before any
// function above is called.
const char *sqlcipher_load(void);

// The longest log whose length is kept when it is emptied, in bytes: one that a large transaction made longer is cut.
#define SQLCIPHER_KEPT_LOG (1 << 25)

// Whether checkpoints by this connection that empty the log keep its length. They cut it to no bytes at first. Returns
// SQLCIPHER_OK, also where the file system is another than the first such connection's, and logs are cut all the same.
//
// A log begins with 32 bytes that say which frames behind them count (sqlite.org/fileformat2.html, section 4.1). With
// other ones there it is as empty for SQLite as one of no bytes, and the next commits write over what is there, which
// takes a disk less than a file that grows. Nothing else is different: SQLite syncs new ones before it writes frames again.
// (A connection that can't write, beside an old -shm that can't be written either, takes it for damaged; such files are
// opened as immutable here.)
int sqlcipher_keep_log(sqlite3 *db, int keeps);

// Those of a log that was emptied this way: for people to read, and not what damage makes of a log.
#define SQLCIPHER_EMPTIED_LOG "coffer: nothing counts in here.\n"

// What a destructor argument may be besides a function: the bytes stay where they are, or SQLite copies them.
static inline void (*sqlcipher_static(void))(void *) { return (void (*)(void *))0; }
static inline void (*sqlcipher_transient(void))(void *) { return (void (*)(void *))-1; }

// X(name, value): SQLITE_name as SQLCIPHER_name.
#define SQLCIPHER_CONSTANTS(X) \
    X(OK, 0) X(ERROR, 1) X(PERM, 3) X(BUSY, 5) X(LOCKED, 6) X(NOMEM, 7) X(READONLY, 8) X(INTERRUPT, 9) X(IOERR, 10) \
    X(IOERR_FSYNC, 1034) X(IOERR_DIR_FSYNC, 1290) \
    X(CORRUPT, 11) X(FULL, 13) X(CANTOPEN, 14) X(TOOBIG, 18) X(CONSTRAINT, 19) X(MISMATCH, 20) X(AUTH, 23) X(NOTADB, 26) \
    X(ROW, 100) X(DONE, 101) \
    X(INTEGER, 1) X(FLOAT, 2) X(BLOB, 4) X(NULL, 5) \
    X(OPEN_READONLY, 0x1) X(OPEN_READWRITE, 0x2) X(OPEN_CREATE, 0x4) X(OPEN_URI, 0x40) X(OPEN_NOMUTEX, 0x8000) \
    X(CHECKPOINT_TRUNCATE, 3) \
    X(LIMIT_ATTACHED, 7)

enum {
#define X(name, value) SQLCIPHER_##name = value,
    SQLCIPHER_CONSTANTS(X)
#undef X
};

#endif

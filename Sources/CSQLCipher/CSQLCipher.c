#define _GNU_SOURCE  // RTLD_DEEPBIND
#define SQLITE_HAS_CODEC 1  // declares sqlite3_key_v2

#include "Sealed.h"

#include <dlfcn.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct sqlcipher_table sqlcipher_table;

// The declarations in CSQLCipher.h are SQLCipher's own, or this file does not compile.
#define X(result, name, parameters, arguments) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&sqlite3_##name), __typeof__(sqlcipher_table.name)), \
                   "sqlite3_" #name " is declared otherwise");
SQLCIPHER_FUNCTIONS(X)
#undef X
#define X(name, value) _Static_assert(SQLITE_##name == SQLCIPHER_##name, "SQLITE_" #name " has another value");
SQLCIPHER_CONSTANTS(X)
#undef X

static const char *failure;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#ifdef __APPLE__

// Two-level namespaces bind each image to the library that it was linked with, so linking is private enough.
static void load(void) {
#define X(result, name, parameters, arguments) sqlcipher_table.name = sqlite3_##name;
    SQLCIPHER_FUNCTIONS(X)
#undef X
}

#else

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COFFER_SANITIZED 1
#endif
#endif

#ifdef COFFER_SANITIZED
#define FLAGS (RTLD_NOW | RTLD_LOCAL)  // the sanitizers' run-time refuses RTLD_DEEPBIND
#else
#define FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)
#endif

static char message[256];

static void load(void) {
    // The newest ABI first: .so.2 and .so.1 are SQLCipher 4, .so.0 is SQLCipher 3; .so is what a -dev package adds. Where
    // there is none, the system's SQLite has all that sealed pages and files without encryption need.
    static const char *const names[] = {"libsqlcipher.so.2", "libsqlcipher.so.1", "libsqlcipher.so.0", "libsqlcipher.so",
                                        "libsqlite3.so.0"};
#ifdef COFFER_SANITIZED
    // What SQLCipher calls in itself would be answered by the other library, and files would be plaintext.
    if (dlsym(RTLD_DEFAULT, "sqlite3_open_v2") != NULL) {
        failure = "another SQLite is in this process, and a sanitizer keeps SQLCipher from being loaded apart from it";
        return;
    }
#endif
    void *library = NULL;
    const char *found = NULL;
    for (size_t i = 0; library == NULL && i < sizeof names / sizeof names[0]; i++) {
        library = dlopen(found = names[i], FLAGS);
    }
    if (library == NULL) {
        failure = "neither libsqlcipher nor libsqlite3 was found";
        return;
    }
    // The library stays loaded until the process ends: statements of other threads may still run in it.
#define X(result, name, parameters, arguments) \
    if ((*(void **)&sqlcipher_table.name = dlsym(library, "sqlite3_" #name)) == NULL && strcmp(#name, "key_v2") != 0) { \
        snprintf(message, sizeof message, "%s has no function sqlite3_" #name, found); \
        failure = message; \
        return; \
    }
    SQLCIPHER_FUNCTIONS(X)
#undef X
}

#endif

// How the file system handles a log: its own methods, and those with another way to empty it.
static const sqlite3_io_methods *system_methods;
static sqlite3_io_methods keeping_methods;
static pthread_mutex_t methods_lock = PTHREAD_MUTEX_INITIALIZER;

static int empty_log(sqlite3_file *log, sqlite3_int64 length) {
    static const char emptied[] = SQLCIPHER_EMPTIED_LOG;
    enum { count = sizeof emptied - 1 };
    _Static_assert(count == 32, "not the length of a log's header");
    sqlite3_int64 present;
    if (length == 0 && system_methods->xFileSize(log, &present) == SQLITE_OK && present >= count &&
        present <= SQLCIPHER_KEPT_LOG) {
        return system_methods->xWrite(log, emptied, count, 0);
    }
    return system_methods->xTruncate(log, length);
}

int sqlcipher_keep_log(sqlite3 *db, int keeps) {
    sqlite3_file *log = NULL;
    int code = sqlcipher_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (code != SQLITE_OK || log == NULL || log->pMethods == NULL) {
        return code;
    }
    if (log->pMethods == &sealed_log_methods) {
        sealed(log)->log->keeps_length = keeps;
        return SQLITE_OK;
    }
    if (!keeps) {
        if (log->pMethods == &keeping_methods) {
            log->pMethods = system_methods;
        }
        return SQLITE_OK;
    }
    pthread_mutex_lock(&methods_lock);
    if (system_methods == NULL) {
        keeping_methods = *log->pMethods;
        // What a later version has behind these members is not here.
        if (keeping_methods.iVersion > 3) {
            keeping_methods.iVersion = 3;
        }
        keeping_methods.xTruncate = empty_log;
        system_methods = log->pMethods;
    }
    if (log->pMethods == system_methods) {
        log->pMethods = &keeping_methods;
    }
    pthread_mutex_unlock(&methods_lock);
    return SQLITE_OK;
}

// OpenSSL frees all that it has as a process exits, unless the first call into it says that it must not. Threads go on
// until the very end, and one that was in SQLCipher crashed, or would go on with errors that SQLCipher ignores. What
// OpenSSL holds ends with the process anyway. The first call has to be this one, so it comes as the process is loaded.
__attribute__((constructor)) static void keep_openssl(void) { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); }

const char *sqlcipher_load(void) {
    pthread_once(&once, load);
    return failure;
}

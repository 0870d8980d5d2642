// The VFS that SQLite knows: it opens the files of registered pages, and no others.
#include "Sealed.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

static sqlite3_vfs *system_vfs;

static const char log_suffix[] = "-wal";

// How many bytes of the path of a log are that of its database file; 0 for any other path.
static size_t count_without_suffix(const char *path) {
    size_t count = strlen(path), suffix = sizeof log_suffix - 1;
    return count > suffix && strcmp(path + count - suffix, log_suffix) == 0 ? count - suffix : 0;
}

// The log that this thread closed last. SQLite deletes a log as soon as it has closed it.
static _Thread_local struct file_identity closed_log;

// --- Files

int sealed_file_open(sealed_pages *pages, const char *name, struct sealed_file *file, int flags, int *out_flags) {
    memset(file, 0, sizeof *file);
    if ((file->beneath = calloc(1, (size_t)pages->beneath->szOsFile)) == NULL ||
        ((flags & SQLITE_OPEN_WAL) && (file->log = calloc(1, sizeof *file->log)) == NULL)) {
        free(file->beneath);
        return SQLITE_NOMEM;
    }
    int code = pages->beneath->xOpen(pages->beneath, name, file->beneath, flags, out_flags);
    if (code == SQLITE_OK && file->log == NULL && (code = registry_identify(pages)) != SQLITE_OK) {
        file->beneath->pMethods->xClose(file->beneath);
    }
    if (code != SQLITE_OK) {
        free(file->beneath);
        free(file->log);
        return code;
    }
    if (file->log != NULL) {
        file->log->identity = identity_of(name);
    } else {
        atomic_store_explicit(&pages->length, 0, memory_order_relaxed);
    }
    file->pages = pages;
    file->file.pMethods = flags & SQLITE_OPEN_WAL ? &sealed_log_methods : &sealed_file_methods;
    return SQLITE_OK;
}

int sealed_read(struct sealed_file *file, unsigned char *out, int count, sqlite3_int64 offset) {
    int code = file->beneath->pMethods->xRead(file->beneath, out, count, offset);
    if (code == SQLITE_IOERR_SHORT_READ) {
        sqlite3_int64 size;
        int sized = file->beneath->pMethods->xFileSize(file->beneath, &size);
        if (sized == SQLITE_OK && size - offset >= count) {
            errno = EIO;
            return SQLITE_IOERR_READ;
        }
        code = sized != SQLITE_OK ? sized : code;
    }
    return code;
}

int sealed_close(sqlite3_file *base) {
    struct sealed_file *file = sealed(base);
    int is_log = file->log != NULL;
    if (is_log) {
        closed_log = file->log->identity;
        OPENSSL_cleanse(file->log, sizeof *file->log);
        free(file->log);
    } else {
        sealed_shm_unmap(base, 0);  // what a connection that closes has given back already
    }
    sealed_ciphers_free(&file->ciphers);
    int code = file->beneath->pMethods->xClose(file->beneath);
    free(file->beneath);
    registry_give(file->pages, !is_log);
    file->file.pMethods = NULL;
    return code;
}

int sealed_lock(sqlite3_file *file, int level) {
    return sealed(file)->beneath->pMethods->xLock(sealed(file)->beneath, level);
}

int sealed_unlock(sqlite3_file *file, int level) {
    return sealed(file)->beneath->pMethods->xUnlock(sealed(file)->beneath, level);
}

int sealed_check_reserved(sqlite3_file *file, int *result) {
    return sealed(file)->beneath->pMethods->xCheckReservedLock(sealed(file)->beneath, result);
}

// What sealed_pages_are_of asks. SQLite's own operations have small numbers.
enum { CONTROL_PAGES = 0x436f6672 };

int sealed_control(sqlite3_file *file, int operation, void *argument) {
    if (operation == CONTROL_PAGES) {
        *(sealed_pages **)argument = sealed(file)->pages;
        return SQLITE_OK;
    }
    // Pages are lent from the cache, whatever their number. The file itself, mapped, would be ciphertext.
    // Nor may the system's VFS lengthen it, in pieces or before a checkpoint that SQLite says the size of: every page opens.
    if (operation == SQLITE_FCNTL_MMAP_SIZE || operation == SQLITE_FCNTL_SIZE_HINT ||
        operation == SQLITE_FCNTL_CHUNK_SIZE) {
        return SQLITE_OK;
    }
    return sealed(file)->beneath->pMethods->xFileControl(sealed(file)->beneath, operation, argument);
}

int sealed_sector_size(sqlite3_file *file) {
    return sealed(file)->beneath->pMethods->xSectorSize(sealed(file)->beneath);
}

int sealed_characteristics(sqlite3_file *file) {
    int beneath = sealed(file)->beneath->pMethods->xDeviceCharacteristics(sealed(file)->beneath);
    // SQLite must not fill sectors up, since it would write frames in pieces then. Of the rest only what is true of sealed
    // pages too.
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE |
           (beneath & (SQLITE_IOCAP_IMMUTABLE | SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN));
}

// --- The VFS

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags) {
    (void)vfs;
    file->pMethods = NULL;
    int is_log = (flags & SQLITE_OPEN_WAL) != 0;
    // Journals and temporary files would hold plaintext.
    if (name == NULL || !(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL))) {
        errno = 0;
        return SQLITE_CANTOPEN;
    }
    sealed_pages *pages = registry_take(name, is_log ? count_without_suffix(name) : strlen(name), !is_log);
    if (pages == NULL) {
        errno = 0;
        return SQLITE_CANTOPEN;
    }
    int code = sealed_file_open(pages, name, sealed(file), flags, out_flags);
    if (code != SQLITE_OK) {
        registry_give(pages, !is_log);
    }
    return code;
}

// Deletes a log, if it is the one that was closed just now: by then the path may mean that of another file, which has commits
// in it.
static int vfs_delete(sqlite3_vfs *vfs, const char *name, int syncs) {
    (void)vfs;
    sealed_pages *pages = registry_take(name, count_without_suffix(name), 0);
    if (pages == NULL) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    struct file_identity identity = identity_of(name);
    int is_another = identity.inode != 0 && !is_same_file(identity, closed_log);
    int code = is_another ? SQLITE_OK : pages->beneath->xDelete(pages->beneath, name, syncs);
    registry_give(pages, 0);
    return code;
}

// Of a file's journal it says that there is none: a file of that name can't be one.
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
    (void)vfs;
    size_t count = count_without_suffix(name);
    sealed_pages *pages = registry_take(name, count > 0 ? count : strlen(name), 0);
    *result = 0;
    if (pages == NULL) {
        return SQLITE_OK;
    }
    int code = pages->beneath->xAccess(pages->beneath, name, flags, result);
    registry_give(pages, 0);
    return code;
}

static int vfs_full_pathname(sqlite3_vfs *vfs, const char *name, int count, char *out) {
    (void)vfs;
    return system_vfs->xFullPathname(system_vfs, name, count, out);
}

static int vfs_randomness(sqlite3_vfs *vfs, int count, char *out) {
    (void)vfs;
    return system_vfs->xRandomness(system_vfs, count, out);
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds) {
    (void)vfs;
    return system_vfs->xSleep(system_vfs, microseconds);
}

static int vfs_current_time(sqlite3_vfs *vfs, double *time) {
    (void)vfs;
    return system_vfs->xCurrentTime(system_vfs, time);
}

// errno, on the systems that there are: of the last call of this thread that failed.
static int vfs_last_error(sqlite3_vfs *vfs, int count, char *out) {
    (void)vfs;
    return system_vfs->xGetLastError != NULL ? system_vfs->xGetLastError(system_vfs, count, out) : 0;
}

static sqlite3_vfs sealed_vfs = {
    .iVersion = 1,
    .szOsFile = sizeof(struct sealed_file),
    .zName = SEALED_VFS,
    .xOpen = vfs_open,
    .xDelete = vfs_delete,
    .xAccess = vfs_access,
    .xFullPathname = vfs_full_pathname,
    .xRandomness = vfs_randomness,
    .xSleep = vfs_sleep,
    .xCurrentTime = vfs_current_time,
    .xGetLastError = vfs_last_error,
};

static int registered;

static void register_once(void) {
    system_vfs = sqlcipher_vfs_find(NULL);
    if (system_vfs == NULL) {
        registered = SQLITE_ERROR;
        return;
    }
    sealed_vfs.mxPathname = system_vfs->mxPathname;
    registered = registry_watch_forks();
    if (registered == SQLITE_OK) {
        registered = sqlcipher_vfs_register(&sealed_vfs, 0);
    }
}

int sealed_vfs_register(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
    return registered;
}

const char *sealed_vfs_of_others(void) { return sealed_vfs_register() == SQLITE_OK ? system_vfs->zName : NULL; }

int sealed_pages_are_of(sealed_pages *pages, sqlite3 *db) {
    sealed_pages *own = NULL;
    return sqlcipher_file_control(db, "main", CONTROL_PAGES, &own) == SQLITE_OK && own == pages;
}

// --- A new file

// Page 1 of an empty database (sqlite.org/fileformat2.html, sections 1.3 and 1.6).
void sealed_template(unsigned char *page) {
    memset(page, 0, PAGE);
    memcpy(page, "SQLite format 3", 16);
    page[16] = PAGE >> 8;
    page[18] = page[19] = 1;  // no log yet
    page[20] = RESERVE;
    page[21] = 64;
    page[22] = page[23] = 32;
    put_u32(page + 24, 1);    // changes, and below the changes when the size in pages was right
    put_u32(page + 28, 1);
    put_u32(page + 44, 4);    // schema format
    put_u32(page + 52, 1);    // auto_vacuum,
    put_u32(page + 56, 1);    // UTF-8
    put_u32(page + 64, 1);    // incremental
    put_u32(page + 92, 1);
    put_u32(page + 96, 3015002);
    page[100] = 13;           // a leaf of a table, without cells
    page[105] = USABLE >> 8;
    page[106] = USABLE & 0xff;
}

int sealed_pages_write_empty(sealed_pages *pages) {
    // SQLite gives names to a VFS with zeros on both sides, where it looks for parameters of a URI.
    enum { zeros = 4 };
    size_t count = strlen(pages->path);
    char *name = calloc(1, count + 2 * zeros);
    struct sealed_file *file = calloc(1, sizeof *file);
    sealed_pages *held = registry_take(pages->path, count, 1);
    int code = name == NULL || file == NULL ? SQLITE_NOMEM : held != pages ? SQLITE_CANTOPEN : SQLITE_OK;
    int ignored;
    if (code == SQLITE_OK) {
        memcpy(name + zeros, pages->path, count);
        code = sealed_file_open(pages, name + zeros, file, SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READWRITE, &ignored);
    }
    if (code != SQLITE_OK) {
        if (held != NULL) {
            registry_give(held, 1);
        }
    } else {
        unsigned char page[PAGE];
        sqlite3_int64 size;
        sealed_template(page);
        code = sealed_file_methods.xFileSize(&file->file, &size);
        if (code == SQLITE_OK) {
            code = size > 0 ? SQLITE_MISUSE : sealed_file_methods.xWrite(&file->file, page, PAGE, 0);
        }
        int closed = sealed_close(&file->file);
        code = code == SQLITE_OK ? closed : code;
    }
    free(name);
    free(file);
    return code;
}

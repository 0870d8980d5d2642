#include "CFaultyFiles.h"

#include "CSQLCipher.h"

#include <errno.h>
#include <pthread.h>
#include <sqlcipher/sqlite3.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls, armed;
static enum faulty_kind armed_kind;
static int armed_goes_on, records, sync_fails;
static struct faulty_operation *operations;
static long operation_count, operation_room;

struct faulty_file {
    sqlite3_file file;
    sqlite3_file *system;
    int is_log;
};

static sqlite3_vfs *system_vfs;

static sqlite3_file *beneath(sqlite3_file *file) { return ((struct faulty_file *)file)->system; }

// Counts a call, and says whether it fails, and how.
static int fails(enum faulty_kind *kind) {
    pthread_mutex_lock(&lock);
    calls++;
    int result = armed > 0 && (calls == armed || (armed_goes_on && calls > armed));
    *kind = armed_kind;
    pthread_mutex_unlock(&lock);
    if (result) {
        errno = EIO;
    }
    return result;
}

static void note(sqlite3_file *file, enum faulty_operation_kind kind, long long offset, const void *bytes, int count) {
    pthread_mutex_lock(&lock);
    if (records) {
        if (operation_count == operation_room) {
            operation_room = 2 * operation_room + 64;
            operations = realloc(operations, sizeof *operations * (size_t)operation_room);
        }
        unsigned char *copy = malloc((size_t)count + 1);
        if (count > 0) {
            memcpy(copy, bytes, (size_t)count);
        }
        int is_log = file == NULL || ((struct faulty_file *)file)->is_log;
        operations[operation_count++] = (struct faulty_operation){kind, is_log, offset, count, copy};
    }
    pthread_mutex_unlock(&lock);
}

static int faulty_close(sqlite3_file *file) {
    int code = beneath(file)->pMethods->xClose(beneath(file));
    free(beneath(file));
    return code;
}

static int faulty_read(sqlite3_file *file, void *out, int count, sqlite3_int64 offset) {
    enum faulty_kind kind;
    if (!fails(&kind)) {
        return beneath(file)->pMethods->xRead(beneath(file), out, count, offset);
    }
    if (kind != FAULTY_SHORT) {
        return SQLITE_IOERR_READ;
    }
    int code = beneath(file)->pMethods->xRead(beneath(file), out, count, offset);
    memset((char *)out + count / 2, 0, (size_t)(count - count / 2));
    return code == SQLITE_OK ? SQLITE_IOERR_SHORT_READ : code;
}

static int faulty_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    enum faulty_kind kind;
    if (!fails(&kind)) {
        int code = beneath(file)->pMethods->xWrite(beneath(file), bytes, count, offset);
        if (code == SQLITE_OK) {
            note(file, FAULTY_WRITE, offset, bytes, count);
        }
        return code;
    }
    if (kind == FAULTY_IO) {
        return SQLITE_IOERR_WRITE;
    }
    if (kind == FAULTY_SHORT) {
        beneath(file)->pMethods->xWrite(beneath(file), bytes, count / 2, offset);
        note(file, FAULTY_WRITE, offset, bytes, count / 2);
    }
    errno = ENOSPC;
    return SQLITE_FULL;
}

static int faulty_truncate(sqlite3_file *file, sqlite3_int64 size) {
    enum faulty_kind kind;
    if (fails(&kind)) {
        return SQLITE_IOERR_TRUNCATE;
    }
    int code = beneath(file)->pMethods->xTruncate(beneath(file), size);
    if (code == SQLITE_OK) {
        note(file, FAULTY_TRUNCATE, size, NULL, 0);
    }
    return code;
}

static int faulty_sync(sqlite3_file *file, int flags) {
    enum faulty_kind kind;
    pthread_mutex_lock(&lock);
    int fails_once = sync_fails;
    sync_fails = 0;
    pthread_mutex_unlock(&lock);
    if (fails_once) {
        errno = EIO;
        return SQLITE_IOERR_FSYNC;
    }
    if (fails(&kind)) {
        errno = kind == FAULTY_FULL ? ENOSPC : EIO;
        return SQLITE_IOERR_FSYNC;
    }
    // The disk needn't have it: what a power cut leaves is worked out from what is noted here.
    (void)flags;
    note(file, FAULTY_SYNC, 0, NULL, 0);
    return SQLITE_OK;
}

static int faulty_size(sqlite3_file *file, sqlite3_int64 *size) {
    enum faulty_kind kind;
    return fails(&kind) ? SQLITE_IOERR_FSTAT : beneath(file)->pMethods->xFileSize(beneath(file), size);
}

static int faulty_lock(sqlite3_file *file, int level) { return beneath(file)->pMethods->xLock(beneath(file), level); }

static int faulty_unlock(sqlite3_file *file, int level) {
    return beneath(file)->pMethods->xUnlock(beneath(file), level);
}

static int faulty_check_lock(sqlite3_file *file, int *result) {
    return beneath(file)->pMethods->xCheckReservedLock(beneath(file), result);
}

static int faulty_control(sqlite3_file *file, int operation, void *argument) {
    return beneath(file)->pMethods->xFileControl(beneath(file), operation, argument);
}

static int faulty_sector(sqlite3_file *file) { return beneath(file)->pMethods->xSectorSize(beneath(file)); }

static int faulty_characteristics(sqlite3_file *file) {
    return beneath(file)->pMethods->xDeviceCharacteristics(beneath(file));
}

static const sqlite3_io_methods methods = {
    1,           faulty_close,       faulty_read,    faulty_write,  faulty_truncate,       faulty_sync, faulty_size, faulty_lock,
    faulty_unlock, faulty_check_lock, faulty_control, faulty_sector, faulty_characteristics,
    NULL, NULL, NULL, NULL, NULL, NULL,
};

static int faulty_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
    (void)vfs;
    enum faulty_kind kind;
    struct faulty_file *own = (struct faulty_file *)file;
    file->pMethods = NULL;
    if (fails(&kind)) {
        return SQLITE_CANTOPEN;
    }
    own->is_log = (flags & SQLITE_OPEN_WAL) != 0;
    own->system = calloc(1, (size_t)system_vfs->szOsFile);
    int code = system_vfs->xOpen(system_vfs, name, own->system, flags, out);
    if (code != SQLITE_OK) {
        free(own->system);
        return code;
    }
    file->pMethods = &methods;
    return SQLITE_OK;
}

static int faulty_delete(sqlite3_vfs *vfs, const char *name, int syncs) {
    (void)vfs;
    enum faulty_kind kind;
    if (fails(&kind)) {
        return SQLITE_IOERR_DELETE;
    }
    int code = system_vfs->xDelete(system_vfs, name, syncs);
    if (code == SQLITE_OK) {
        note(NULL, FAULTY_DELETE, 0, NULL, 0);
    }
    return code;
}

static int faulty_access(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
    (void)vfs;
    enum faulty_kind kind;
    return fails(&kind) ? SQLITE_IOERR_ACCESS : system_vfs->xAccess(system_vfs, name, flags, result);
}

static int faulty_full_pathname(sqlite3_vfs *vfs, const char *name, int count, char *out) {
    (void)vfs;
    return system_vfs->xFullPathname(system_vfs, name, count, out);
}

static sqlite3_vfs faulty_vfs = {
    .iVersion = 1,
    .szOsFile = sizeof(struct faulty_file),
    .zName = FAULTY_VFS,
    .xOpen = faulty_open,
    .xDelete = faulty_delete,
    .xAccess = faulty_access,
    .xFullPathname = faulty_full_pathname,
};

static int registered;

static void register_once(void) {
    system_vfs = sqlcipher_vfs_find(NULL);
    faulty_vfs.mxPathname = system_vfs->mxPathname;
    registered = sqlcipher_vfs_register(&faulty_vfs, 0);
}

int faulty_register(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
    return registered;
}

void faulty_reset(void) {
    pthread_mutex_lock(&lock);
    calls = armed = 0;
    records = sync_fails = 0;
    for (long i = 0; i < operation_count; i++) {
        free((void *)operations[i].bytes);
    }
    operation_count = 0;
    pthread_mutex_unlock(&lock);
}

void faulty_arm(long call, enum faulty_kind kind, int goes_on) {
    pthread_mutex_lock(&lock);
    calls = 0;
    armed = call;
    armed_kind = kind;
    armed_goes_on = goes_on;
    pthread_mutex_unlock(&lock);
}

void faulty_arm_sync(void) {
    pthread_mutex_lock(&lock);
    sync_fails = 1;
    pthread_mutex_unlock(&lock);
}

long faulty_calls(void) {
    pthread_mutex_lock(&lock);
    long count = calls;
    pthread_mutex_unlock(&lock);
    return count;
}

void faulty_record(void) {
    pthread_mutex_lock(&lock);
    records = 1;
    pthread_mutex_unlock(&lock);
}

long faulty_operation_count(void) {
    pthread_mutex_lock(&lock);
    long count = operation_count;
    pthread_mutex_unlock(&lock);
    return count;
}

struct faulty_operation faulty_operation_at(long index) {
    pthread_mutex_lock(&lock);
    struct faulty_operation operation = operations[index];
    pthread_mutex_unlock(&lock);
    return operation;
}

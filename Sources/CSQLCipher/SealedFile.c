// The database file: page n is the message at (n - 1) * PAGE.
//
// Whatever range SQLite reads is cut from whole pages, and whole pages are all that it writes. Every page of a file opens:
// pages that SQLite skips (such as the one at its lock bytes) are sealed zeros.
#include "Sealed.h"

#include <errno.h>
#include <string.h>

static int file_size(struct sealed_file *file, sqlite3_int64 *size) {
    return file->beneath->pMethods->xFileSize(file->beneath, size);
}

static sqlite3_int64 length_known(struct sealed_file *file) {
    return atomic_load_explicit(&file->pages->length, memory_order_relaxed);
}

// Notes how long the file is now. Under SQLite's lock for writing, or that of a checkpoint, whoever may change it.
static void note_length(struct sealed_file *file, sqlite3_int64 length) {
    atomic_store_explicit(&file->pages->length, length, memory_order_relaxed);
}

// Reads and opens a page. One that is wholly behind the end is SHORT_READ, one that isn't whole is SEALED_FOREIGN.
static int try_page(struct sealed_file *file, uint32_t number, unsigned char *usable) {
    unsigned char stored[PAGE];
    sqlite3_int64 offset = (sqlite3_int64)(number - 1) * PAGE;
    int code = sealed_read(file, stored, PAGE, offset);
    if (code == SQLITE_IOERR_SHORT_READ) {
        sqlite3_int64 size;
        code = file_size(file, &size);
        return code != SQLITE_OK ? code : size <= offset ? SQLITE_IOERR_SHORT_READ : SEALED_FOREIGN;
    }
    if (code == SQLITE_OK) {
        code = sealed_open(&file->pages->keys, &file->ciphers, SEALED_PAGE, number, stored, USABLE, usable);
    }
    return code == SQLITE_OK && number == 1 && !says_our_sizes(usable) ? SQLITE_CORRUPT : code;
}

static int open_page(struct sealed_file *file, uint32_t number, unsigned char *usable) {
    int code = try_page(file, number, usable);
    if (code == SEALED_FOREIGN) {
        // A connection that opens reads the header without a lock, and a checkpoint may be writing it just then.
        pthread_mutex_lock(&file->pages->writing);
        code = try_page(file, number, usable);
        pthread_mutex_unlock(&file->pages->writing);
    }
    return code == SEALED_FOREIGN ? SQLITE_CORRUPT : code;
}

// The page, opened, to be given back.
static int take_page(struct sealed_file *file, uint32_t number, struct cached_page **page) {
    struct sealed_cache *cache = &file->pages->cache;
    uint64_t version;
    *page = cache_take(cache, SEALED_PAGE, number, &version);
    if (*page != NULL) {
        return SQLITE_OK;
    }
    struct cached_page *made = cache_new(cache, SEALED_PAGE, number);
    if (made == NULL) {
        return SQLITE_NOMEM;
    }
    int code = open_page(file, number, made->bytes);
    if (code == SQLITE_OK) {
        *page = cache_insert(cache, made, version);
    } else {
        cache_give(cache, made);
    }
    return code;
}

// Whether a page behind the end of the file should be there. SQLite takes it for zeros, and those for the end of a long value;
// but a reader of a database with a log asks only for pages that are in the log or in the file. A writer may ask for others:
// pages that a transaction took and gave back are of the database, and nobody has ever written them.
static int is_missing(struct sealed_file *file) { return file->maps_memory && !sealed_shm_writes(file); }

// Reads part of a page, or the whole of it.
static int read_part(struct sealed_file *file, uint32_t number, int within, int count, unsigned char *out) {
    struct sealed_cache *cache = &file->pages->cache;
    struct cached_page *page;
    int code = SQLITE_OK;
    if (count == PAGE && sealed_shm_writes(file)) {
        // A writer has a copy of its own, which it changes most often: what is not in the cache it doesn't bring there.
        uint64_t ignored;
        page = cache_take(cache, SEALED_PAGE, number, &ignored);
        if (page == NULL) {
            memset(out + USABLE, 0, RESERVE);
            return open_page(file, number, out);
        }
    } else {
        code = take_page(file, number, &page);
    }
    if (code == SQLITE_OK) {
        memcpy(out, page->bytes + within, (size_t)count);
        cache_give(cache, page);
    }
    return code;
}

static int file_read(sqlite3_file *base, void *out, int count, sqlite3_int64 offset) {
    struct sealed_file *file = sealed(base);
    unsigned char *next = out;
    while (count > 0) {
        int within = (int)(offset % PAGE);
        int part = count < PAGE - within ? count : PAGE - within;
        int code = read_part(file, (uint32_t)(offset / PAGE) + 1, within, part, next);
        if (code == SQLITE_CORRUPT && offset == 0 && count == FILE_HEADER) {
            // SQLite asks for page size and reserve before it reads the log. Where a crash tore page 1 in a checkpoint, the
            // log has it, and where the log has none, SQLite will read the page itself, and fail.
            unsigned char template[PAGE];
            sealed_template(template);
            memcpy(out, template, FILE_HEADER);
            return SQLITE_OK;
        }
        if (code == SQLITE_IOERR_SHORT_READ && is_missing(file)) {
            code = SQLITE_CORRUPT;
        }
        if (code != SQLITE_OK) {
            memset(next, 0, (size_t)count);
            return code;
        }
        next += part;
        offset += part;
        count -= part;
    }
    return SQLITE_OK;
}

static int write_page(struct sealed_file *file, uint32_t number, const unsigned char *usable) {
    unsigned char stored[PAGE];
    int code = sealed_seal(&file->pages->keys, &file->ciphers, SEALED_PAGE, number, usable, USABLE, stored);
    if (code == SQLITE_OK) {
        pthread_mutex_lock(&file->pages->writing);
        code = file->beneath->pMethods->xWrite(file->beneath, stored, PAGE, (sqlite3_int64)(number - 1) * PAGE);
        pthread_mutex_unlock(&file->pages->writing);
        // After the write, and whether it failed or not: who read the page before it can't insert the old one now. What was
        // kept is likely to be read again.
        int was_kept = cache_drop(&file->pages->cache, SEALED_PAGE, number);
        if (was_kept && code == SQLITE_OK) {
            cache_put(&file->pages->cache, SEALED_PAGE, number, usable);
        }
    }
    return code;
}

// Makes the file, which has `present` bytes, at least `size` long.
static int fill(struct sealed_file *file, sqlite3_int64 present, sqlite3_int64 size) {
    static const unsigned char zeros[USABLE];
    int code = SQLITE_OK;
    for (sqlite3_int64 offset = present - present % PAGE; code == SQLITE_OK && offset < size; offset += PAGE) {
        code = write_page(file, (uint32_t)(offset / PAGE) + 1, zeros);
    }
    return code;
}

// How far a checkpoint may lengthen the file, whose size the last commit says. Pages that a transaction took and gave back are
// not written, but for those of the list of free pages, each of which has room for 1,012. A commit that says more is not
// SQLite's, and would fill the disk.
static sqlite3_int64 longest(struct sealed_file *file, sqlite3_int64 present) {
    struct log_state *log = &file->pages->log;
    pthread_mutex_lock(&log->lock);
    sqlite3_int64 pages = ((sqlite3_int64)log->committed + 1) * 1024;
    pthread_mutex_unlock(&log->lock);
    return present + pages * PAGE;
}

static int file_write(sqlite3_file *base, const void *bytes, int count, sqlite3_int64 offset) {
    static const unsigned char zeros[RESERVE];
    const unsigned char *page = bytes;
    // Checksums of the log were counted over a reserve of zeros, so others would be lost, and frames with them. Another
    // page size or reserve can come only from a file that isn't ours.
    if (count != PAGE || offset % PAGE != 0 || memcmp(page + USABLE, zeros, RESERVE) != 0 ||
        (offset == 0 && !says_our_sizes(page))) {
        errno = 0;
        return SQLITE_IOERR_WRITE;
    }
    struct sealed_file *file = sealed(base);
    int code = SQLITE_OK;
    // Most pages are there already, and the file system needn't be asked for each.
    if (offset >= length_known(file)) {
        sqlite3_int64 present;
        code = file_size(file, &present);
        if (code == SQLITE_OK && file->maps_memory && offset >= longest(file, present)) {
            return SQLITE_CORRUPT;
        }
        code = code == SQLITE_OK ? fill(file, present, offset) : code;
        if (code == SQLITE_OK) {
            note_length(file, present > offset ? present : offset);
        }
    }
    code = code == SQLITE_OK ? write_page(file, (uint32_t)(offset / PAGE) + 1, page) : code;
    if (code == SQLITE_OK && offset == length_known(file)) {
        note_length(file, offset + PAGE);
    }
    return code;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size) {
    struct sealed_file *file = sealed(base);
    sqlite3_int64 present;
    if (size % PAGE != 0) {
        return SQLITE_IOERR_TRUNCATE;
    }
    int code = file_size(file, &present);
    if (code == SQLITE_OK && size > longest(file, present)) {
        return SQLITE_CORRUPT;
    }
    if (code != SQLITE_OK || size > present) {
        return code != SQLITE_OK ? code : fill(file, present, size);
    }
    note_length(file, 0);
    code = file->beneath->pMethods->xTruncate(file->beneath, size);
    cache_drop_from(&file->pages->cache, SEALED_PAGE, (uint32_t)(size / PAGE) + 1);
    return code;
}

static int file_sync(sqlite3_file *file, int flags) {
    return sealed(file)->beneath->pMethods->xSync(sealed(file)->beneath, flags);
}

static int file_size_method(sqlite3_file *file, sqlite3_int64 *size) { return file_size(sealed(file), size); }

// Lends a page of the cache, so that no connection has a copy of its own: but for those that lead to others. They are few
// and read again and again, and what SQLite keeps itself it finds without a lock, and has looked through already. A number
// that no longer leads anywhere is only a page that SQLite reads once more than it had to.
static int file_fetch(sqlite3_file *base, sqlite3_int64 offset, int count, void **out) {
    struct sealed_file *file = sealed(base);
    struct cached_page *page;
    *out = NULL;
    if (count != PAGE || offset % PAGE != 0 || !cache_is_on(&file->pages->cache)) {
        return SQLITE_OK;  // SQLite reads it then
    }
    uint32_t number = (uint32_t)(offset / PAGE) + 1;
    uint32_t *interior = &file->interior[number % (sizeof file->interior / sizeof file->interior[0])];
    if (*interior == number) {
        return SQLITE_OK;
    }
    int code = take_page(file, number, &page);
    if (code != SQLITE_OK) {
        return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
    }
    // sqlite.org/fileformat2.html, section 1.6.
    if (page->bytes[0] == 2 || page->bytes[0] == 5) {
        *interior = number;
        cache_give(&file->pages->cache, page);
    } else {
        *out = page->bytes;
    }
    return SQLITE_OK;
}

static int file_unfetch(sqlite3_file *base, sqlite3_int64 offset, void *bytes) {
    (void)offset;
    if (bytes != NULL) {
        void *page = (unsigned char *)bytes - offsetof(struct cached_page, bytes);
        cache_give(&sealed(base)->pages->cache, page);
    }
    return SQLITE_OK;
}

const sqlite3_io_methods sealed_file_methods = {
    .iVersion = 3,
    .xClose = sealed_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size_method,
    .xLock = sealed_lock,
    .xUnlock = sealed_unlock,
    .xCheckReservedLock = sealed_check_reserved,
    .xFileControl = sealed_control,
    .xSectorSize = sealed_sector_size,
    .xDeviceCharacteristics = sealed_characteristics,
    .xShmMap = sealed_shm_map,
    .xShmLock = sealed_shm_lock,
    .xShmBarrier = sealed_shm_barrier,
    .xShmUnmap = sealed_shm_unmap,
    .xFetch = file_fetch,
    .xUnfetch = file_unfetch,
};

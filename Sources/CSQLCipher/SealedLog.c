// The log: its header is the message at 0, frame i the one at LOG_START + (i - 1) * FRAME_SEALED.
//
// SQLite writes a frame as 24 bytes of header and then a page; here both are one message, with the checksums, which are sums
// of what is to stay secret. It also changes frames of the transaction under way: pages alone, and in the end their headers,
// each after it has read the frame whole. Nothing else comes, or it would be refused.
#include "Sealed.h"

#include <string.h>

static sqlite3_int64 place(uint32_t index) { return LOG_START + (sqlite3_int64)(index - 1) * FRAME_SEALED; }

int log_frame_count(struct sealed_file *file, uint32_t *count) {
    sqlite3_int64 size;
    int code = file->beneath->pMethods->xFileSize(file->beneath, &size);
    *count = code != SQLITE_OK || size < LOG_START ? 0 : (uint32_t)((size - LOG_START) / FRAME_SEALED);
    return code;
}

int log_read_frame(struct sealed_file *file, uint32_t index, unsigned char *frame) {
    unsigned char stored[FRAME_SEALED];
    int code = sealed_read(file, stored, FRAME_SEALED, place(index));
    if (code != SQLITE_OK) {
        return code == SQLITE_IOERR_SHORT_READ ? SEALED_FOREIGN : code;
    }
    return sealed_open(&file->pages->keys, &file->ciphers, SEALED_FRAME, index, stored, FRAME_OPEN, frame);
}

void log_begin(struct sealed_file *file, const unsigned char *salts, uint32_t sequence) {
    struct log_state *log = &file->pages->log;
    pthread_mutex_lock(&log->lock);
    log->epoch++;
    log->sequence = sequence;
    log->committed = log->synced = 0;
    memcpy(log->salts, salts, sizeof log->salts);
    pthread_mutex_unlock(&log->lock);
    cache_drop_from(&file->pages->cache, SEALED_FRAME, 0);
}

// A frame of the log as it is now, into log->frame: this log's, or one of the transaction under way, whose salts are zeros
// until it ends.
static int read_current(struct sealed_file *file, uint32_t index) {
    static const unsigned char zeros[8];
    unsigned char *frame = file->log->frame;
    int code = log_read_frame(file, index, frame);
    if (code == SQLITE_OK) {
        struct log_state *log = &file->pages->log;
        pthread_mutex_lock(&log->lock);
        if (get_u32(frame) == 0 || (memcmp(frame + 8, log->salts, 8) != 0 &&
                                    (index <= log->committed || memcmp(frame + 8, zeros, 8) != 0))) {
            code = SEALED_FOREIGN;
        }
        pthread_mutex_unlock(&log->lock);
    }
    return code == SEALED_FOREIGN ? SQLITE_CORRUPT : code;
}

void log_copy_frame(unsigned char *out, const unsigned char *frame) {
    memcpy(out, frame, FRAME_HEADER);
    memcpy(out + FRAME_HEADER, frame + FRAME_PAGE, USABLE);
    memset(out + FRAME_HEADER + USABLE, 0, RESERVE);
}

static int read_page(struct sealed_file *file, uint32_t index, void *out, int within, int count) {
    struct sealed_cache *cache = &file->pages->cache;
    uint64_t version;
    struct cached_page *page = cache_take(cache, SEALED_FRAME, index, &version);
    if (page == NULL) {
        struct cached_page *made = cache_new(cache, SEALED_FRAME, index);
        if (made == NULL) {
            return SQLITE_NOMEM;
        }
        int code = read_current(file, index);
        if (code != SQLITE_OK) {
            cache_give(cache, made);
            return code;
        }
        memcpy(made->bytes, file->log->frame + FRAME_PAGE, USABLE);
        page = cache_insert(cache, made, version);
    }
    memcpy(out, page->bytes + within, (size_t)count);
    cache_give(cache, page);
    return SQLITE_OK;
}

static int log_read(sqlite3_file *base, void *out, int count, sqlite3_int64 offset) {
    struct sealed_file *file = sealed(base);
    struct sealed_log *own = file->log;
    own->whole = 0;
    if (offset == 0 && count == LOG_HEADER) {
        return recovery_begin(file, out);
    }
    if (offset + count <= LOG_HEADER) {
        unsigned char stored[LOG_START], header[LOG_HEADER] = {0};
        int code = sealed_read(file, stored, LOG_START, 0);
        if (code == SQLITE_OK) {
            code = sealed_open(&file->pages->keys, &file->ciphers, SEALED_LOG_HEADER, 0, stored, LOG_HEADER, header);
        }
        memcpy(out, header + offset, (size_t)count);
        return code == SEALED_FOREIGN || code == SQLITE_IOERR_SHORT_READ ? SQLITE_CORRUPT : code;
    }
    uint32_t index = (uint32_t)((offset - LOG_HEADER) / FRAME) + 1;
    int within = (int)((offset - LOG_HEADER) % FRAME);
    if (offset < LOG_HEADER || within + count > FRAME) {
        return SQLITE_IOERR_READ;
    }
    if (count == FRAME && own->recovering == index) {
        return recovery_read(file, index, out);
    }
    own->recovering = 0;
    if (within >= FRAME_HEADER) {
        return read_page(file, index, out, within - FRAME_HEADER, count);
    }
    // A whole frame, or something of its header.
    int code = within + count <= FRAME_HEADER || count == FRAME ? read_current(file, index) : SQLITE_IOERR_READ;
    if (code == SQLITE_OK && count == FRAME) {
        log_copy_frame(out, own->frame);
        own->whole = index;
    } else if (code == SQLITE_OK) {
        memcpy(out, own->frame + within, (size_t)count);
    }
    return code;
}

// Seals log->frame, with what is to be said of the log, and writes it.
static int write_frame(struct sealed_file *file, uint32_t index) {
    unsigned char stored[FRAME_SEALED], *frame = file->log->frame;
    struct log_state *log = &file->pages->log;
    pthread_mutex_lock(&log->lock);
    if (log->committed >= index) {
        // SQLite gave up a transaction although its last frame was written, as when the sync behind it failed.
        log->committed = index - 1;
        log->synced = log->synced < log->committed ? log->synced : log->committed;
    }
    put_u32(frame + FRAME_HEADER, log->sequence);
    put_u32(frame + FRAME_HEADER + 4, log->synced);
    int ends = get_u32(frame + 4) != 0 && memcmp(frame + 8, log->salts, 8) == 0;
    pthread_mutex_unlock(&log->lock);

    int code = sealed_seal(&file->pages->keys, &file->ciphers, SEALED_FRAME, index, frame, FRAME_OPEN, stored);
    if (code == SQLITE_OK) {
        code = file->beneath->pMethods->xWrite(file->beneath, stored, FRAME_SEALED, place(index));
    }
    cache_drop(&file->pages->cache, SEALED_FRAME, index);
    if (code != SQLITE_OK) {
        return code;
    }
    cache_put(&file->pages->cache, SEALED_FRAME, index, frame + FRAME_PAGE);
    if (ends) {
        pthread_mutex_lock(&log->lock);
        log->committed = index;
        pthread_mutex_unlock(&log->lock);
    }
    return SQLITE_OK;
}

static int write_header(struct sealed_file *file, const unsigned char *header) {
    unsigned char stored[LOG_START];
    int code = sealed_seal(&file->pages->keys, &file->ciphers, SEALED_LOG_HEADER, 0, header, LOG_HEADER, stored);
    if (code == SQLITE_OK) {
        code = file->beneath->pMethods->xWrite(file->beneath, stored, LOG_START, 0);
    }
    log_begin(file, header + 16, get_u32(header + 12));
    return code;
}

static int log_write(sqlite3_file *base, const void *bytes, int count, sqlite3_int64 offset) {
    static const unsigned char zeros[RESERVE];
    struct sealed_file *file = sealed(base);
    struct sealed_log *own = file->log;
    uint32_t waiting = own->waiting, whole = own->whole;
    own->waiting = own->whole = own->recovering = 0;
    if (offset == 0 && count == LOG_HEADER) {
        return write_header(file, bytes);
    }
    uint32_t index = (uint32_t)((offset - LOG_HEADER) / FRAME) + 1;
    int within = (int)((offset - LOG_HEADER) % FRAME);
    if (offset < LOG_HEADER) {
        return SQLITE_IOERR_WRITE;
    }
    if (within == 0 && count == FRAME_HEADER) {
        if (whole != index) {
            own->waiting = index;
            memcpy(own->header, bytes, FRAME_HEADER);
            return SQLITE_OK;
        }
        memcpy(own->frame, bytes, FRAME_HEADER);
        return write_frame(file, index);
    }
    if (within != FRAME_HEADER || count != PAGE || memcmp((const unsigned char *)bytes + USABLE, zeros, RESERVE) != 0) {
        return SQLITE_IOERR_WRITE;
    }
    if (waiting == index) {
        memcpy(own->frame, own->header, FRAME_HEADER);
    } else {
        int code = read_current(file, index);
        if (code != SQLITE_OK) {
            return code;
        }
    }
    memcpy(own->frame + FRAME_PAGE, bytes, USABLE);
    return write_frame(file, index);
}

// Empties the log without giving its bytes back, if sqlcipher_keep_log says so: see there.
static int log_truncate(sqlite3_file *base, sqlite3_int64 size) {
    static const unsigned char emptied[LOG_START + 1] = SQLCIPHER_EMPTIED_LOG;
    static const unsigned char no_salts[8];
    struct sealed_file *file = sealed(base);
    sqlite3_int64 present = 0;
    file->log->waiting = file->log->whole = file->log->recovering = 0;
    if (size >= LOG_HEADER) {
        uint32_t count = (uint32_t)((size - LOG_HEADER) / FRAME);
        int code = file->beneath->pMethods->xTruncate(file->beneath, place(count + 1));
        cache_drop_from(&file->pages->cache, SEALED_FRAME, count + 1);
        return code;
    }
    int code = SQLITE_OK;
    if (file->log->keeps_length) {
        code = file->beneath->pMethods->xFileSize(file->beneath, &present);
    }
    if (code == SQLITE_OK && present >= LOG_START && present <= SQLCIPHER_KEPT_LOG) {
        code = file->beneath->pMethods->xWrite(file->beneath, emptied, LOG_START, 0);
    } else if (code == SQLITE_OK) {
        code = file->beneath->pMethods->xTruncate(file->beneath, 0);
    }
    log_begin(file, no_salts, 0);
    return code;
}

static int log_sync(sqlite3_file *base, int flags) {
    struct sealed_file *file = sealed(base);
    struct log_state *log = &file->pages->log;
    pthread_mutex_lock(&log->lock);
    uint64_t epoch = log->epoch;
    uint32_t committed = log->committed;
    pthread_mutex_unlock(&log->lock);
    int code = file->beneath->pMethods->xSync(file->beneath, flags);
    if (code == SQLITE_OK) {
        // Only what was written before it began is on the disk; a checkpoint syncs while others write.
        pthread_mutex_lock(&log->lock);
        committed = committed < log->committed ? committed : log->committed;
        if (log->epoch == epoch && log->synced < committed) {
            log->synced = committed;
        }
        pthread_mutex_unlock(&log->lock);
    }
    return code;
}

static int log_size(sqlite3_file *base, sqlite3_int64 *size) {
    sqlite3_int64 present;
    int code = sealed(base)->beneath->pMethods->xFileSize(sealed(base)->beneath, &present);
    *size = code != SQLITE_OK || present < LOG_START ? 0 : LOG_HEADER + (present - LOG_START) / FRAME_SEALED * FRAME;
    return code;
}

const sqlite3_io_methods sealed_log_methods = {
    .iVersion = 1,
    .xClose = sealed_close,
    .xRead = log_read,
    .xWrite = log_write,
    .xTruncate = log_truncate,
    .xSync = log_sync,
    .xFileSize = log_size,
    .xLock = sealed_lock,
    .xUnlock = sealed_unlock,
    .xCheckReservedLock = sealed_check_reserved,
    .xFileControl = sealed_control,
    .xSectorSize = sealed_sector_size,
    .xDeviceCharacteristics = sealed_characteristics,
};

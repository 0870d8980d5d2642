// The log as SQLite reads it when it doesn't know it yet: the header, then every frame in order, until one isn't valid.
//
// A crash leaves a log that ends in the middle, and behind its end frames of before. Damage leaves one that goes on behind
// what is damaged. They differ in that each frame says how many frames had been put on the disk when it was sealed: what had
// been once can't be missing after a crash. Only the last transaction to be synced has no witness, and ends the log.
#include "Sealed.h"

#include <string.h>

// SQLite's checksum (sqlite.org/fileformat2.html, section 4.2), continued over `count` bytes, a multiple of 8.
static void add(uint32_t sum[2], const unsigned char *bytes, int count, int is_big_endian) {
    for (int i = 0; i < count; i += 8) {
        uint32_t word[2];
        for (int j = 0; j < 2; j++) {
            const unsigned char *at = bytes + i + 4 * j;
            word[j] = is_big_endian ? get_u32(at)
                                    : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
        }
        sum[0] += word[0] + sum[1];
        sum[1] += word[1] + sum[0];
    }
}

// Whether an opened frame goes on where log->checksum is, which then moves on.
static int continues(struct sealed_log *log, const unsigned char *frame) {
    static const unsigned char zeros[RESERVE];
    uint32_t sum[2] = {log->checksum[0], log->checksum[1]};
    add(sum, frame, 8, log->is_big_endian);
    add(sum, frame + FRAME_PAGE, USABLE, log->is_big_endian);
    add(sum, zeros, RESERVE, log->is_big_endian);
    if (get_u32(frame) == 0 || memcmp(frame + 8, log->salts, 8) != 0 || get_u32(frame + 16) != sum[0] ||
        get_u32(frame + 20) != sum[1]) {
        return 0;
    }
    log->checksum[0] = sum[0];
    log->checksum[1] = sum[1];
    return 1;
}

// CORRUPT if a frame from `index` on, of this log or (without salts) of any, says that `synced` frames had been on the disk.
static int find_witness(struct sealed_file *file, uint32_t index, const unsigned char *salts, uint32_t synced) {
    uint32_t count;
    int code = log_frame_count(file, &count);
    for (; code == SQLITE_OK && index <= count; index++) {
        unsigned char *frame = file->log->frame;
        code = log_read_frame(file, index, frame);
        if (code == SEALED_FOREIGN) {
            code = SQLITE_OK;
        } else if (code == SQLITE_OK && get_u32(frame + FRAME_HEADER + 4) >= synced &&
                   (salts == NULL || memcmp(frame + 8, salts, 8) == 0)) {
            return SQLITE_CORRUPT;
        }
    }
    return code;
}

// The header that a log with this sequence and these salts has, where log->checksum and log->salts begin.
static void make_header(struct sealed_log *log, int is_big_endian, const unsigned char *sequence, const unsigned char *salts,
                        unsigned char *header) {
    log->is_big_endian = is_big_endian;
    put_u32(header, 0x377f0682 | (uint32_t)is_big_endian);
    put_u32(header + 4, 3007000);
    put_u32(header + 8, PAGE);
    memcpy(header + 12, sequence, 4);
    memcpy(header + 16, salts, 8);
    memcpy(log->salts, salts, 8);
    log->checksum[0] = log->checksum[1] = 0;
    add(log->checksum, header, 24, is_big_endian);
    put_u32(header + 24, log->checksum[0]);
    put_u32(header + 28, log->checksum[1]);
}

// A header that doesn't open, made again from the first frame, if the log begins with that. Otherwise zeros, or CORRUPT.
static int rebuild(struct sealed_file *file, unsigned char *header) {
    struct sealed_log *log = file->log;
    int code = log_read_frame(file, 1, log->frame);
    // The frame doesn't say in which order its writer's machine has bytes, but its checksum does.
    for (int is_big_endian = 0; code == SQLITE_OK && is_big_endian <= 1; is_big_endian++) {
        make_header(log, is_big_endian, log->frame + FRAME_HEADER, log->frame + 8, header);
        if (continues(log, log->frame)) {
            return SQLITE_OK;
        }
    }
    code = code == SQLITE_OK ? SEALED_FOREIGN : code;
    memset(header, 0, LOG_HEADER);
    return code == SEALED_FOREIGN ? find_witness(file, 1, NULL, 1) : code;
}

int recovery_begin(struct sealed_file *file, unsigned char *out) {
    struct sealed_log *log = file->log;
    unsigned char stored[LOG_START];
    log->recovering = 0;
    memset(out, 0, LOG_HEADER);
    int code = sealed_read(file, stored, LOG_START, 0);
    if (code != SQLITE_OK) {
        return code;
    }
    if (memcmp(stored, SQLCIPHER_EMPTIED_LOG, LOG_HEADER) == 0) {
        memcpy(out, stored, LOG_HEADER);
        log_begin(file, stored, 0);
        return SQLITE_OK;
    }
    code = sealed_open(&file->pages->keys, &file->ciphers, SEALED_LOG_HEADER, 0, stored, LOG_HEADER, out);
    if (code == SQLITE_OK) {
        // SQLite would take a header that isn't right for the end of the log.
        unsigned char right[LOG_HEADER];
        make_header(log, out[3] & 1, out + 12, out + 16, right);
        code = memcmp(out, right, LOG_HEADER) == 0 ? SQLITE_OK : SQLITE_CORRUPT;
    } else if (code == SEALED_FOREIGN) {
        code = rebuild(file, out);
        log->checksum[0] = get_u32(out + 24);
        log->checksum[1] = get_u32(out + 28);
    }
    if (code == SQLITE_OK) {
        memcpy(log->salts, out + 16, 8);
        log_begin(file, log->salts, get_u32(out + 12));
        log->recovering = 1;
    }
    return code;
}

int recovery_read(struct sealed_file *file, uint32_t index, unsigned char *out) {
    struct sealed_log *log = file->log;
    memset(out, 0, FRAME);
    int code = log_read_frame(file, index, log->frame);
    if (code == SQLITE_OK && continues(log, log->frame)) {
        if (get_u32(log->frame) == 1 && !says_our_sizes(log->frame + FRAME_PAGE)) {
            return SQLITE_CORRUPT;
        }
        log_copy_frame(out, log->frame);
        log->recovering = index + 1;
        if (get_u32(log->frame + 4) != 0) {
            // On the disk, for all that is known; a sync will say so.
            pthread_mutex_lock(&file->pages->log.lock);
            file->pages->log.committed = index;
            pthread_mutex_unlock(&file->pages->log.lock);
        }
        return SQLITE_OK;
    }
    log->recovering = 0;
    // Zeros are a frame that ends the log.
    return code == SQLITE_OK || code == SEALED_FOREIGN ? find_witness(file, index, log->salts, index) : code;
}

// What the files of the sealed pages' VFS share. Each has one concept; this is the order to read them in:
//   SealedCrypto.c    one message: keys, nonces, sealing and opening
//   SealedCache.c     pages that are open, shared by all connections
//   SealedMemory.c    the log's index, and its locks
//   SealedFile.c      the database file
//   SealedLog.c       the log
//   SealedRecovery.c  the log as a crash left it
//   SealedRegistry.c  which file has which key
//   SealedVFS.c       what SQLite calls
//
// Locks, in the order in which a thread may take them: the registry's; a file's `writing`; a cache's `dropping`; then one of a
// cache shard's, the log state's and the shared memory's, which are held for a few instructions and never two at a time.
#ifndef COFFER_SEALED_H
#define COFFER_SEALED_H

#include "CSQLCipher.h"

#if !__has_include(<sqlcipher/sqlite3.h>)
#error "SQLCipher's header is missing: install libsqlcipher-dev (apt) or sqlcipher (brew)"
#endif
#include <openssl/evp.h>
#include <pthread.h>
#include <sqlcipher/sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>

enum {
    PAGE = 4096,                       // a page, as it is stored and as SQLite sees it
    NONCE = 24,
    TAG = 16,
    RESERVE = NONCE + TAG,             // what SQLite leaves free at the end of a page
    USABLE = PAGE - RESERVE,
    FILE_HEADER = 100,                 // what SQLite reads of page 1 first
    LOG_HEADER = 32,                   // SQLite's
    LOG_START = LOG_HEADER + RESERVE,  // as it is stored
    FRAME_HEADER = 24,                 // SQLite's
    FRAME = FRAME_HEADER + PAGE,       // as SQLite sees it
    FRAME_PAGE = FRAME_HEADER + 8,     // where the page begins in an opened frame: behind sequence and synced frames
    FRAME_OPEN = FRAME_PAGE + USABLE,  // an opened frame
    FRAME_SEALED = FRAME_OPEN + RESERVE,
};

// The byte of the authenticated data that says what a message is.
enum sealed_kind { SEALED_PAGE = 1, SEALED_FRAME = 2, SEALED_LOG_HEADER = 3 };

// A message that is not one of ours: never leaves these files, where it becomes CORRUPT, or the end of a log.
enum { SEALED_FOREIGN = -1 };

static inline uint32_t get_u32(const unsigned char *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static inline void put_u32(unsigned char *bytes, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        bytes[i] = (unsigned char)(value >> (24 - 8 * i));
    }
}

// --- SealedCrypto.c

enum { SEALED_PREFIX = 12, SEALED_AAD = 15 + SEALED_BINDING + 1 + 4 };

// The key of a file, and the nonces of this session. Never changes but for the count.
struct sealed_keys {
    unsigned char key[SEALED_KEY];
    unsigned char subkey[16];            // K1 of XAES-256-GCM
    unsigned char aad[SEALED_AAD];       // without kind and number
    unsigned char prefix[SEALED_PREFIX]; // the first half of every nonce that is made here
    uint32_t start_high;                 // where the second half begins to count
    uint64_t start_low;
    atomic_uint_least64_t count;
    atomic_int is_inherited;             // by a forked process, whose count would go on where that of the other does
};

// Contexts of OpenSSL with derived keys in them, for one thread at a time: one to seal with, and those of the last few
// prefixes that pages were sealed under.
struct sealed_ciphers {
    EVP_CIPHER_CTX *sealing;
    struct {
        unsigned char prefix[SEALED_PREFIX];
        EVP_CIPHER_CTX *context;
        unsigned used;
    } opening[4];
    unsigned clock;
};

// In a process that inherited the keys, sealing with them fails from now on.
void sealed_keys_inherit(struct sealed_keys *keys);
int sealed_keys_init(struct sealed_keys *keys, const unsigned char *key, const unsigned char *binding);
// `out` takes `count` + RESERVE bytes.
int sealed_seal(struct sealed_keys *keys, struct sealed_ciphers *ciphers, enum sealed_kind kind, uint32_t number,
                const unsigned char *plain, int count, unsigned char *out);
// `sealed` has `count` + RESERVE bytes. SEALED_FOREIGN: it doesn't authenticate, and `out` is zeros.
int sealed_open(struct sealed_keys *keys, struct sealed_ciphers *ciphers, enum sealed_kind kind, uint32_t number,
                const unsigned char *sealed, int count, unsigned char *out);
void sealed_ciphers_free(struct sealed_ciphers *ciphers);

// --- SealedCache.c

// An opened page, of the file or of a frame of the log.
struct cached_page {
    struct cached_page *chain;            // the next of its bucket
    struct cached_page *previous, *next;  // in its ring
    uint32_t number;
    unsigned char kind;
    unsigned char ring;
    unsigned char was_used;               // since the clock came by
    unsigned char shard;
    atomic_uint references;               // of users, and one of the shard that keeps it; whose is the last frees it
    _Alignas(16) unsigned char bytes[PAGE];  // the reserve is zeros
};

enum { SEALED_SHARDS = 16 };

// A clock: pages in a ring, and a hand that goes round.
struct cache_ring {
    struct cached_page *hand;
    size_t count;
};

// Which ring a page is in: those of indexes, by which others are found, and all others.
enum { RING_INDEX, RING_OTHER, RING_COUNT };

struct cache_shard {
    pthread_mutex_t lock;
    struct cached_page **buckets;
    struct cache_ring rings[RING_COUNT];
    unsigned turn;         // counts what was given up
    size_t bucket_count, count, limit;
    uint32_t ends[SEALED_LOG_HEADER];  // by kind: all that are kept have lower numbers
    uint64_t version;      // counts what was dropped: what was read before is not inserted after
    atomic_int is_too_full;  // whether the limit was lowered while pages were lent
};

struct sealed_cache {
    atomic_int is_on;
    pthread_mutex_t dropping;  // held while many pages are dropped: who drops the same ones next finds them gone
    struct cache_shard shards[SEALED_SHARDS];
};

int cache_init(struct sealed_cache *cache, size_t size);
void cache_free(struct sealed_cache *cache);
void cache_set_size(struct sealed_cache *cache, size_t size);
size_t cache_size(struct sealed_cache *cache);
// Whether it keeps anything at all.
int cache_is_on(struct sealed_cache *cache);
// A page that is kept, to be given back; or NULL, and the version to insert it with later.
struct cached_page *cache_take(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number, uint64_t *version);
// A page without content that nobody else sees; NULL if there is no memory.
struct cached_page *cache_new(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number);
// Keeps a new page, unless something of its shard was dropped since `version`, or all others there are in use. Returns the
// page to use, and to give back, in its place.
struct cached_page *cache_insert(struct sealed_cache *cache, struct cached_page *page, uint64_t version);
void cache_give(struct sealed_cache *cache, struct cached_page *page);
// Returns whether the page was there.
int cache_drop(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number);
// Drops the pages of a kind with this number and higher ones.
void cache_drop_from(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number);
// Keeps a page with this content, whose old one was dropped.
void cache_put(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number, const unsigned char *usable);

// --- SealedMemory.c

struct sealed_file;

struct sealed_memory {
    pthread_mutex_t lock;
    int users;
    int region_count;
    size_t region_size;
    void **regions;
    int readers[SQLITE_SHM_NLOCK];
    unsigned char writers[SQLITE_SHM_NLOCK];
};

extern const sqlite3_io_methods sealed_file_methods, sealed_log_methods;
int sealed_shm_map(sqlite3_file *file, int region, int size, int extends, void volatile **out);
int sealed_shm_lock(sqlite3_file *file, int offset, int count, int flags);
void sealed_shm_barrier(sqlite3_file *file);
int sealed_shm_unmap(sqlite3_file *file, int deletes);
// Whether this connection has a transaction that writes.
int sealed_shm_writes(struct sealed_file *file);

// --- What all connections to a file share

// The log as it is now. Written under SQLite's lock for writing, but also by a checkpoint's sync: hence the lock.
struct log_state {
    pthread_mutex_t lock;
    uint64_t epoch;          // counts beginnings
    unsigned char salts[8];
    uint32_t sequence;
    uint32_t committed;      // frames up to the last one that ends a transaction
    uint32_t synced;         // of those, how many a sync has put on the disk
};

// Which file it is, whatever its path. Zeros: not known.
struct file_identity {
    uint64_t device, inode;
};

struct sealed_pages {
    struct sealed_pages *next;
    char *path;
    sqlite3_vfs *beneath;
    struct file_identity identity;  // of the file that is open, while one is
    atomic_int_least64_t length; // the database file is at least so long, as far as its connections know
    int holders;             // who opened the pages, and files
    int files;               // open database files
    int is_replaced;         // another has been opened at its path
    unsigned char binding[SEALED_BINDING];
    struct sealed_keys keys;
    struct sealed_cache cache;
    struct sealed_memory memory;
    struct log_state log;
    pthread_mutex_t writing; // held while a page of the database file is written
};

// --- SealedRegistry.c

// Has forked processes seal nothing under what they inherit. Once is enough.
int registry_watch_forks(void);
// The pages opened last at `path`, of which the first `count` bytes count, to be given back; NULL if there are none.
sealed_pages *registry_take(const char *path, size_t count, int opens_file);
void registry_give(sealed_pages *pages, int closes_file);
// Notes which file is open, for a caller that has opened it. BUSY if the path means another one by now than the others of
// these pages have open: they would share an index of another log, and pages of another file.
int registry_identify(sealed_pages *pages);
struct file_identity identity_of(const char *path);
static inline int is_same_file(struct file_identity a, struct file_identity b) {
    return a.device == b.device && a.inode == b.inode;
}

// --- SealedFile.c and SealedLog.c

// What a connection has of the log.
struct sealed_log {
    struct file_identity identity;
    int keeps_length;           // see sqlcipher_keep_log
    uint32_t waiting;           // a frame whose header was written and whose page comes next; 0: none
    uint32_t whole;             // the frame that was read whole last, and is in `frame`; 0: none
    uint32_t recovering;        // the frame that recovery reads next; 0: not recovering
    int is_big_endian;          // how the log's checksums are counted
    uint32_t checksum[2];       // of the recovered frames
    unsigned char salts[8];     // of the log that is recovered
    unsigned char header[FRAME_HEADER];
    unsigned char frame[FRAME_OPEN];
};

struct sealed_file {
    sqlite3_file file;
    sqlite3_file *beneath;
    sealed_pages *pages;
    struct sealed_ciphers ciphers;
    uint32_t interior[256];     // numbers of pages that are not lent: see file_fetch
    struct sealed_log *log;     // NULL for the database file
    int maps_memory;
    unsigned char reads, writes;  // its locks in the shared memory, a bit each
};

static inline struct sealed_file *sealed(sqlite3_file *file) { return (struct sealed_file *)file; }

// Reads a message, or says SHORT_READ where the file ends before it does. A file system that gives less than the file has is
// an error, and must not be taken for an end.
int sealed_read(struct sealed_file *file, unsigned char *out, int count, sqlite3_int64 offset);
// The header of a database file, as far as SQLite looks at it before it reads the log. `page` is PAGE bytes.
void sealed_template(unsigned char *page);

// Methods that pass everything on to the file beneath.
int sealed_close(sqlite3_file *file);
int sealed_lock(sqlite3_file *file, int level);
int sealed_unlock(sqlite3_file *file, int level);
int sealed_check_reserved(sqlite3_file *file, int *result);
int sealed_control(sqlite3_file *file, int operation, void *argument);
int sealed_sector_size(sqlite3_file *file);
int sealed_characteristics(sqlite3_file *file);

// Whether an opened page may be the first of a file: it says the page size and the reserve of all of ours.
static inline int says_our_sizes(const unsigned char *page) {
    return page[16] == PAGE >> 8 && page[17] == (PAGE & 0xff) && page[20] == RESERVE;
}

// Reads frame `index` into `frame`, FRAME_OPEN bytes. SEALED_FOREIGN if it doesn't open, or is not there.
int log_read_frame(struct sealed_file *file, uint32_t index, unsigned char *frame);
// What SQLite takes an opened frame for, FRAME bytes.
void log_copy_frame(unsigned char *out, const unsigned char *frame);
int log_frame_count(struct sealed_file *file, uint32_t *count);
// The log begins, with these salts.
void log_begin(struct sealed_file *file, const unsigned char *salts, uint32_t sequence);

// --- SealedRecovery.c

int recovery_begin(struct sealed_file *file, unsigned char *out);
int recovery_read(struct sealed_file *file, uint32_t index, unsigned char *out);

// --- SealedVFS.c

int sealed_vfs_register(void);
// Opens the database file or the log of pages that the caller holds for it; on failure they are still the caller's.
int sealed_file_open(sealed_pages *pages, const char *name, struct sealed_file *file, int flags, int *out_flags);

#endif

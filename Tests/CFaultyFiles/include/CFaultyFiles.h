// Files that fail on purpose, and remember what was written: a VFS for tests that stands beneath sealed pages.
#ifndef COFFER_CFAULTYFILES_H
#define COFFER_CFAULTYFILES_H

#define FAULTY_VFS "coffer-faulty"

enum faulty_kind {
    FAULTY_IO,     // EIO
    FAULTY_FULL,   // ENOSPC where something is written or synced, EIO elsewhere
    FAULTY_SHORT,  // half of the bytes are read or written; EIO elsewhere
};

// Registers the VFS in the library that sqlcipher_load() has loaded. Its state is the process's: one test at a time.
int faulty_register(void);

// Forgets everything: nothing fails, nothing is remembered.
void faulty_reset(void);

// Has call number `call` fail, counted from 1 after faulty_reset, and all behind it if `goes_on`.
void faulty_arm(long call, enum faulty_kind kind, int goes_on);
// Has the next sync fail.
void faulty_arm_sync(void);
long faulty_calls(void);

enum faulty_operation_kind { FAULTY_WRITE, FAULTY_TRUNCATE, FAULTY_SYNC, FAULTY_DELETE };

struct faulty_operation {
    int kind;
    int is_log;
    long long offset;  // or the length to truncate to
    int count;
    const unsigned char *bytes;
};

// Remembers what changes files from now on.
void faulty_record(void);
long faulty_operation_count(void);
struct faulty_operation faulty_operation_at(long index);

// See CacheProbes.c.
int probe_dropped_while_lent(void);
int probe_late_insertion(void);
int probe_two_readers(void);
int probe_place_taken_over(void);
int probe_dropped_from(void);
int probe_indexes_stay(void);
int probe_dropped_by_two(void);

// Whether a forked process seals nothing under what it inherits, and a session of its own works.
int probe_fork(const char *path);
// Whether a hint of its size leaves the existing, empty file as long as it is.
int probe_size_hint(const char *path);

#endif

// The index of the log, in memory that all connections of the process share, and SQLite's locks on it. One process has a
// store, so nothing of it needs a file.
#include "Sealed.h"

#include <openssl/crypto.h>
#include <stdlib.h>

int sealed_shm_map(sqlite3_file *file, int region, int size, int extends, void volatile **out) {
    struct sealed_memory *memory = &sealed(file)->pages->memory;
    int code = SQLITE_OK;
    *out = NULL;
    pthread_mutex_lock(&memory->lock);
    if (!sealed(file)->maps_memory) {
        sealed(file)->maps_memory = 1;
        memory->users++;
    }
    if (region >= memory->region_count && extends) {
        // SQLite keeps the addresses of regions, so the table moves and they don't.
        void **regions = realloc(memory->regions, sizeof *regions * ((size_t)region + 1));
        if (regions == NULL) {
            code = SQLITE_NOMEM;
        } else {
            memory->regions = regions;
        }
        while (code == SQLITE_OK && memory->region_count <= region) {
            void *made = calloc(1, (size_t)size);
            if (made == NULL) {
                code = SQLITE_NOMEM;
            } else {
                memory->regions[memory->region_count++] = made;
            }
        }
    }
    if (region < memory->region_count) {
        *out = memory->regions[region];
    }
    memory->region_size = (size_t)size;
    pthread_mutex_unlock(&memory->lock);
    return code;
}

// Gives back those of the locks that this connection has.
static void release(struct sealed_file *file, int offset, int count) {
    struct sealed_memory *memory = &file->pages->memory;
    for (int i = offset; i < offset + count; i++) {
        memory->readers[i] -= file->reads >> i & 1;
        memory->writers[i] -= file->writes >> i & 1;
        file->reads &= ~(1u << i);
        file->writes &= ~(1u << i);
    }
}

int sealed_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    struct sealed_file *own = sealed(file);
    struct sealed_memory *memory = &own->pages->memory;
    int code = SQLITE_OK;
    pthread_mutex_lock(&memory->lock);
    if (flags & SQLITE_SHM_UNLOCK) {
        release(own, offset, count);
    } else {
        // What this connection has itself is not in its way.
        int writes = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
        for (int i = offset; i < offset + count; i++) {
            int other_writers = memory->writers[i] - (own->writes >> i & 1);
            int other_readers = memory->readers[i] - (own->reads >> i & 1);
            if (other_writers > 0 || (writes && other_readers > 0)) {
                code = SQLITE_BUSY;
            }
        }
        for (int i = offset; code == SQLITE_OK && i < offset + count; i++) {
            if (writes && !(own->writes >> i & 1)) {
                own->writes |= 1u << i;
                memory->writers[i]++;
            } else if (!writes && !(own->reads >> i & 1)) {
                own->reads |= 1u << i;
                memory->readers[i]++;
            }
        }
    }
    pthread_mutex_unlock(&memory->lock);
    return code;
}

// SQLite's lock 0 is a writer's (sqlite.org/walformat.html, section 2.3.1). Only the connection's own thread changes `writes`.
int sealed_shm_writes(struct sealed_file *file) { return file->writes & 1; }

void sealed_shm_barrier(sqlite3_file *file) {
    pthread_mutex_lock(&sealed(file)->pages->memory.lock);
    pthread_mutex_unlock(&sealed(file)->pages->memory.lock);
}

int sealed_shm_unmap(sqlite3_file *file, int deletes) {
    (void)deletes;
    struct sealed_memory *memory = &sealed(file)->pages->memory;
    pthread_mutex_lock(&memory->lock);
    if (sealed(file)->maps_memory) {
        sealed(file)->maps_memory = 0;
        release(sealed(file), 0, SQLITE_SHM_NLOCK);
        if (--memory->users == 0) {
            for (int i = 0; i < memory->region_count; i++) {
                OPENSSL_cleanse(memory->regions[i], memory->region_size);
                free(memory->regions[i]);
            }
            free(memory->regions);
            memory->regions = NULL;
            memory->region_count = 0;
        }
    }
    pthread_mutex_unlock(&memory->lock);
    return SQLITE_OK;
}

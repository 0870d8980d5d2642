// Which pages belong to which file: by path, since that is all that SQLite tells a VFS of a log.
#include "Sealed.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sealed_pages *first;

static void hold_registry(void) { pthread_mutex_lock(&lock); }

static void let_registry_go(void) { pthread_mutex_unlock(&lock); }

// Whoever opens the files in the new process gets pages with a session of their own.
static void inherit_registry(void) {
    for (sealed_pages *pages = first; pages != NULL; pages = pages->next) {
        pages->is_replaced = 1;
        sealed_keys_inherit(&pages->keys);
    }
    pthread_mutex_unlock(&lock);
}

int registry_watch_forks(void) {
    return pthread_atfork(hold_registry, let_registry_go, inherit_registry) == 0 ? SQLITE_OK : SQLITE_NOMEM;
}

static void destroy(sealed_pages *pages) {
    cache_free(&pages->cache);
    pthread_mutex_destroy(&pages->memory.lock);
    pthread_mutex_destroy(&pages->log.lock);
    pthread_mutex_destroy(&pages->writing);
    free(pages->path);
    OPENSSL_cleanse(pages, sizeof *pages);
    free(pages);
}

static int make(const char *path, const unsigned char *key, const unsigned char *binding, size_t cache_size,
                sqlite3_vfs *beneath, sealed_pages **out) {
    sealed_pages *pages = calloc(1, sizeof *pages);
    if (pages == NULL) {
        return SQLITE_NOMEM;
    }
    pages->beneath = beneath;
    pages->holders = 1;
    memcpy(pages->binding, binding, SEALED_BINDING);
    pthread_mutex_init(&pages->memory.lock, NULL);
    pthread_mutex_init(&pages->log.lock, NULL);
    pthread_mutex_init(&pages->writing, NULL);
    int code = cache_init(&pages->cache, cache_size);
    if (code == SQLITE_OK) {
        code = sealed_keys_init(&pages->keys, key, binding);
    }
    if (code == SQLITE_OK && (pages->path = strdup(path)) == NULL) {
        code = SQLITE_NOMEM;
    }
    if (code != SQLITE_OK) {
        destroy(pages);
        return code;
    }
    *out = pages;
    return SQLITE_OK;
}

struct file_identity identity_of(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) {
        return (struct file_identity){0, 0};
    }
    return (struct file_identity){(uint64_t)status.st_dev, (uint64_t)status.st_ino};
}

int registry_identify(sealed_pages *pages) {
    pthread_mutex_lock(&lock);
    struct file_identity identity = identity_of(pages->path);
    int code = SQLITE_OK;
    if (pages->identity.inode == 0) {
        pages->identity = identity;
    } else if (!is_same_file(pages->identity, identity)) {
        code = SQLITE_BUSY;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static sealed_pages *find(const char *path, size_t count) {
    sealed_pages *pages = first;
    while (pages != NULL && (pages->is_replaced || strlen(pages->path) != count || memcmp(pages->path, path, count) != 0)) {
        pages = pages->next;
    }
    return pages;
}

static int open_at(const char *path, const unsigned char *key, const unsigned char *binding, size_t cache_size,
                   sqlite3_vfs *beneath, sealed_pages **out) {
    pthread_mutex_lock(&lock);
    struct file_identity identity = identity_of(path);
    sealed_pages *pages = find(path, strlen(path));
    // Of pages without an open file nothing is kept, whichever file it was.
    int is_open = pages != NULL && pages->files > 0;
    int is_other_file = is_open && pages->identity.inode != 0 && !is_same_file(pages->identity, identity);
    int code = SQLITE_OK;
    if (pages != NULL && !is_other_file && pages->beneath == beneath &&
        CRYPTO_memcmp(pages->keys.key, key, SEALED_KEY) == 0 && memcmp(pages->binding, binding, SEALED_BINDING) == 0) {
        pages->holders++;
    } else if (is_open && !is_other_file) {
        code = SQLITE_BUSY;
    } else {
        sealed_pages *made = NULL;
        code = make(path, key, binding, cache_size, beneath, &made);
        if (code == SQLITE_OK) {
            if (pages != NULL) {
                pages->is_replaced = 1;
            }
            made->next = first;
            first = pages = made;
        }
    }
    pthread_mutex_unlock(&lock);
    if (code == SQLITE_OK) {
        cache_set_size(&pages->cache, cache_size);
        *out = pages;
    }
    return code;
}

int sealed_pages_open(const char *path, const unsigned char *key, const unsigned char *binding, size_t cache_size,
                      const char *beneath, sealed_pages **pages) {
    int code = sealed_vfs_register();
    sqlite3_vfs *vfs = code == SQLITE_OK ? sqlcipher_vfs_find(beneath) : NULL;
    if (vfs == NULL) {
        return code != SQLITE_OK ? code : SQLITE_ERROR;
    }
    char *full = calloc(1, (size_t)vfs->mxPathname + 1);
    if (full == NULL) {
        return SQLITE_NOMEM;
    }
    // Where a symbolic link is on the way, newer versions say OK and something in the bits above.
    code = vfs->xFullPathname(vfs, path, vfs->mxPathname + 1, full) & 0xff;
    if (code == SQLITE_OK) {
        code = open_at(full, key, binding, cache_size, vfs, pages);
    }
    free(full);
    return code;
}

sealed_pages *registry_take(const char *path, size_t count, int opens_file) {
    pthread_mutex_lock(&lock);
    sealed_pages *pages = find(path, count);
    if (pages != NULL) {
        pages->holders++;
        pages->files += opens_file;
    }
    pthread_mutex_unlock(&lock);
    return pages;
}

void registry_give(sealed_pages *pages, int closes_file) {
    pthread_mutex_lock(&lock);
    pages->files -= closes_file;
    if (closes_file && pages->files == 0) {
        // Whoever opens the file next may find another one: restored from a copy, say.
        cache_drop_from(&pages->cache, SEALED_PAGE, 0);
        cache_drop_from(&pages->cache, SEALED_FRAME, 0);
        pages->identity = (struct file_identity){0, 0};
    }
    int is_last = --pages->holders == 0;
    if (is_last) {
        sealed_pages **link = &first;
        while (*link != pages) {
            link = &(*link)->next;
        }
        *link = pages->next;
    }
    pthread_mutex_unlock(&lock);
    if (is_last) {
        destroy(pages);
    }
}

void sealed_pages_release(sealed_pages *pages) { registry_give(pages, 0); }

void sealed_pages_set_cache(sealed_pages *pages, size_t size) { cache_set_size(&pages->cache, size); }

size_t sealed_pages_cached(sealed_pages *pages) { return cache_size(&pages->cache); }

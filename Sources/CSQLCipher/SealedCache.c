// Opened pages, shared by all connections to a file: a table in shards, and in each a clock that finds what to give up.
//
// A page is lent to any number of users at once, who only read it. One that is dropped while it is lent leaves the table at
// once, and its last user frees it. Whatever is freed is wiped first.
#include "Sealed.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hash(enum sealed_kind kind, uint32_t number) { return (number * 4 + (uint32_t)kind) * 2654435761u; }

static struct cache_shard *shard_of(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number) {
    return &cache->shards[hash(kind, number) >> 28];
}

static struct cached_page **place(struct cache_shard *shard, enum sealed_kind kind, uint32_t number) {
    struct cached_page **link = &shard->buckets[(hash(kind, number) >> 4) & (shard->bucket_count - 1)];
    while (*link != NULL && ((*link)->number != number || (*link)->kind != kind)) {
        link = &(*link)->chain;
    }
    return link;
}

static void destroy(struct cached_page *page) {
    OPENSSL_cleanse(page->bytes, PAGE);
    free(page);
}

// Takes a page out of the table, under the shard's lock.
static void detach(struct cache_shard *shard, struct cached_page *page) {
    *place(shard, page->kind, page->number) = page->chain;
    page->previous->next = page->next;
    page->next->previous = page->previous;
    if (shard->hand == page) {
        shard->hand = page->next == page ? NULL : page->next;
    }
    shard->count--;
    page->is_kept = 0;
    if (page->users == 0) {
        destroy(page);
    }
}

// Gives up pages that nobody uses until there are no more than `limit`, or all were looked at twice.
static void shrink(struct cache_shard *shard, size_t limit) {
    for (size_t looks = 2 * shard->count; shard->count > limit && looks > 0; looks--) {
        struct cached_page *page = shard->hand;
        shard->hand = page->next;
        if (page->users == 0 && !page->was_used) {
            detach(shard, page);
        } else {
            page->was_used = 0;
        }
    }
}

// Twice the buckets, when there are as many pages. Without memory for them it gets slower, no more.
static void grow(struct cache_shard *shard) {
    struct cached_page **old = shard->buckets;
    size_t old_count = shard->bucket_count;
    struct cached_page **buckets = calloc(2 * old_count, sizeof *buckets);
    if (buckets == NULL) {
        return;
    }
    shard->buckets = buckets;
    shard->bucket_count = 2 * old_count;
    for (size_t i = 0; i < old_count; i++) {
        for (struct cached_page *page = old[i], *after; page != NULL; page = after) {
            after = page->chain;
            struct cached_page **bucket = &buckets[(hash(page->kind, page->number) >> 4) & (shard->bucket_count - 1)];
            page->chain = *bucket;
            *bucket = page;
        }
    }
    free(old);
}

int cache_init(struct sealed_cache *cache, size_t size) {
    for (int i = 0; i < SEALED_SHARDS; i++) {
        struct cache_shard *shard = &cache->shards[i];
        shard->bucket_count = 64;
        shard->buckets = calloc(shard->bucket_count, sizeof *shard->buckets);
        if (shard->buckets == NULL || pthread_mutex_init(&shard->lock, NULL) != 0) {
            free(shard->buckets);
            shard->buckets = NULL;
            return SQLITE_NOMEM;
        }
    }
    cache_set_size(cache, size);
    return SQLITE_OK;
}

void cache_free(struct sealed_cache *cache) {
    for (int i = 0; i < SEALED_SHARDS && cache->shards[i].buckets != NULL; i++) {
        struct cache_shard *shard = &cache->shards[i];
        while (shard->hand != NULL) {
            detach(shard, shard->hand);
        }
        free(shard->buckets);
        pthread_mutex_destroy(&shard->lock);
    }
}

void cache_set_size(struct sealed_cache *cache, size_t size) {
    size_t limit = size / sizeof(struct cached_page) / SEALED_SHARDS;
    atomic_store_explicit(&cache->is_on, size > 0, memory_order_relaxed);
    for (int i = 0; i < SEALED_SHARDS; i++) {
        struct cache_shard *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        shard->limit = size == 0 ? 0 : limit == 0 ? 1 : limit;
        shrink(shard, shard->limit);
        pthread_mutex_unlock(&shard->lock);
    }
}

size_t cache_size(struct sealed_cache *cache) {
    size_t count = 0;
    for (int i = 0; i < SEALED_SHARDS; i++) {
        pthread_mutex_lock(&cache->shards[i].lock);
        count += cache->shards[i].count;
        pthread_mutex_unlock(&cache->shards[i].lock);
    }
    return count * sizeof(struct cached_page);
}

int cache_is_on(struct sealed_cache *cache) { return atomic_load_explicit(&cache->is_on, memory_order_relaxed); }

struct cached_page *cache_take(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number, uint64_t *version) {
    struct cache_shard *shard = shard_of(cache, kind, number);
    pthread_mutex_lock(&shard->lock);
    struct cached_page *page = *place(shard, kind, number);
    if (page != NULL) {
        page->users++;
        page->was_used = 1;
    }
    *version = shard->version;
    pthread_mutex_unlock(&shard->lock);
    return page;
}

struct cached_page *cache_new(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number) {
    struct cached_page *page = malloc(sizeof *page);
    if (page == NULL) {
        return NULL;
    }
    memset(page, 0, offsetof(struct cached_page, bytes));
    memset(page->bytes + USABLE, 0, RESERVE);
    page->kind = (unsigned char)kind;
    page->number = number;
    page->shard = (unsigned char)(shard_of(cache, kind, number) - cache->shards);
    page->users = 1;
    return page;
}

struct cached_page *cache_insert(struct sealed_cache *cache, struct cached_page *page, uint64_t version) {
    struct cache_shard *shard = &cache->shards[page->shard];
    pthread_mutex_lock(&shard->lock);
    struct cached_page *present = *place(shard, page->kind, page->number);
    if (present != NULL && version == shard->version) {
        // Another thread was faster.
        present->users++;
        pthread_mutex_unlock(&shard->lock);
        destroy(page);
        return present;
    }
    if (present == NULL && version == shard->version && shard->limit > 0) {
        shrink(shard, shard->limit - 1);
        if (shard->count < shard->limit) {
            if (shard->count >= shard->bucket_count) {
                grow(shard);
            }
            *place(shard, page->kind, page->number) = page;
            // Behind the clock's hand, which comes to it last.
            if (shard->hand == NULL) {
                shard->hand = page->previous = page->next = page;
            } else {
                page->next = shard->hand;
                page->previous = shard->hand->previous;
                page->previous->next = page->next->previous = page;
            }
            page->is_kept = 1;
            shard->count++;
        }
    }
    pthread_mutex_unlock(&shard->lock);
    return page;
}

void cache_give(struct sealed_cache *cache, struct cached_page *page) {
    struct cache_shard *shard = &cache->shards[page->shard];
    pthread_mutex_lock(&shard->lock);
    int is_last = --page->users == 0 && !page->is_kept;
    if (shard->count > shard->limit) {
        shrink(shard, shard->limit);  // the cache became smaller while the page was lent
    }
    pthread_mutex_unlock(&shard->lock);
    if (is_last) {
        destroy(page);
    }
}

void cache_drop(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number) {
    struct cache_shard *shard = shard_of(cache, kind, number);
    pthread_mutex_lock(&shard->lock);
    shard->version++;
    struct cached_page *page = *place(shard, kind, number);
    if (page != NULL) {
        detach(shard, page);
    }
    pthread_mutex_unlock(&shard->lock);
}

void cache_drop_from(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number) {
    for (int i = 0; i < SEALED_SHARDS; i++) {
        struct cache_shard *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        shard->version++;
        struct cached_page *page = shard->hand;
        for (size_t left = shard->count; left > 0; left--) {
            struct cached_page *next = page->next;
            if (page->kind == kind && page->number >= number) {
                detach(shard, page);
            }
            page = next;
        }
        pthread_mutex_unlock(&shard->lock);
    }
}

void cache_replace(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number, const unsigned char *usable) {
    cache_drop(cache, kind, number);
    uint64_t version;
    struct cached_page *page = cache_take(cache, kind, number, &version);
    if (page == NULL && cache_is_on(cache) && (page = cache_new(cache, kind, number)) != NULL) {
        memcpy(page->bytes, usable, USABLE);
        page = cache_insert(cache, page, version);
    }
    if (page != NULL) {
        cache_give(cache, page);
    }
}

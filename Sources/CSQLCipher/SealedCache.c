// Opened pages, shared by all connections to a file: a table in shards, and in each a clock that finds what to give up.
//
// A page is lent to any number of users at once, who only read it. One that is dropped while it is lent leaves the table at
// once, and its last user frees it. Whatever is freed is wiped first. References are made under the shard's lock alone, so
// under it a page with one is nobody's but the table's; giving one back needs no lock.
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

static void release(struct cached_page *page) {
    if (atomic_fetch_sub(&page->references, 1) == 1) {
        OPENSSL_cleanse(page->bytes, PAGE);
        free(page);
    }
}

static void retain(struct cached_page *page) { atomic_fetch_add_explicit(&page->references, 1, memory_order_relaxed); }

static int is_lent(struct cached_page *page) { return atomic_load(&page->references) > 1; }

// Takes a page out of the table, whose reference is the caller's then. Under the shard's lock.
static struct cached_page *detach(struct cache_shard *shard, struct cached_page *page) {
    struct cache_ring *ring = &shard->rings[page->ring];
    *place(shard, page->kind, page->number) = page->chain;
    page->previous->next = page->next;
    page->next->previous = page->previous;
    if (ring->hand == page) {
        ring->hand = page->next == page ? NULL : page->next;
    }
    ring->count--;
    shard->count--;
    return page;
}

// Puts a page behind the hand, which comes to it last.
static void attach(struct cache_shard *shard, struct cached_page *page) {
    // sqlite.org/fileformat2.html, section 1.6.
    page->ring = page->kind == SEALED_PAGE && page->bytes[0] == 10 ? RING_INDEX : RING_OTHER;
    struct cache_ring *ring = &shard->rings[page->ring];
    if (ring->hand == NULL) {
        ring->hand = page->previous = page->next = page;
    } else {
        page->next = ring->hand;
        page->previous = ring->hand->previous;
        page->previous->next = page->next->previous = page;
    }
    ring->count++;
    shard->count++;
}

// Moves the hand on by up to `looks` pages, to one that was not used since it came by and isn't lent, and takes that out.
static struct cached_page *advance(struct cache_shard *shard, struct cache_ring *ring, size_t looks) {
    for (; ring->hand != NULL && looks > 0; looks--) {
        struct cached_page *page = ring->hand;
        ring->hand = page->next;
        if (!is_lent(page) && !page->was_used) {
            return detach(shard, page);
        }
        page->was_used = 0;
    }
    return NULL;
}

// Takes out the page that is to make room, under the shard's lock; NULL if all are lent.
//
// A document is found through a leaf of an index, which leads to a hundred documents, and then read from another page, which has
// six. So pages of indexes stay longer: all but an eighth of what is given up are others, as long as there are some.
static struct cached_page *evict(struct cache_shard *shard) {
    struct cache_ring *index = &shard->rings[RING_INDEX], *other = &shard->rings[RING_OTHER];
    struct cached_page *page = NULL;
    if (other->count > shard->limit / 8) {
        page = ++shard->turn % 8 == 0 ? advance(shard, index, 1) : NULL;
        page = page != NULL ? page : advance(shard, other, 2 * other->count);
    }
    page = page != NULL ? page : advance(shard, index, 2 * index->count);
    return page != NULL ? page : advance(shard, other, 2 * other->count);
}

// Gives up pages until there are no more than `limit`, or all others are lent.
static void shrink(struct cache_shard *shard, size_t limit) {
    struct cached_page *page;
    while (shard->count > limit && (page = evict(shard)) != NULL) {
        release(page);
    }
    atomic_store(&shard->is_too_full, shard->count > limit);
}

// Twice the buckets, when a quarter are in use: another page that a lookup comes by is one that the processor has to fetch from
// memory. Without memory for them it gets slower, no more.
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
    pthread_mutex_init(&cache->dropping, NULL);
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
        for (int j = 0; j < RING_COUNT; j++) {
            while (shard->rings[j].hand != NULL) {
                release(detach(shard, shard->rings[j].hand));
            }
        }
        free(shard->buckets);
        pthread_mutex_destroy(&shard->lock);
    }
    pthread_mutex_destroy(&cache->dropping);
}

void cache_set_size(struct sealed_cache *cache, size_t size) {
    size_t limit = size / sizeof(struct cached_page) / SEALED_SHARDS;
    atomic_store_explicit(&cache->is_on, size > 0, memory_order_relaxed);
    for (int i = 0; i < SEALED_SHARDS; i++) {
        struct cache_shard *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        shard->limit = size == 0 ? 0 : limit == 0 ? 1 : limit;
        // First, so that whoever gives back a page which is found lent sees it.
        atomic_store(&shard->is_too_full, 1);
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
        retain(page);
        page->was_used = 1;
    }
    *version = shard->version;
    pthread_mutex_unlock(&shard->lock);
    return page;
}

struct cached_page *cache_new(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number) {
    struct cache_shard *shard = shard_of(cache, kind, number);
    pthread_mutex_lock(&shard->lock);
    // The place of one that has to go is overwritten soon, and needn't be wiped.
    struct cached_page *page = shard->limit > 0 && shard->count >= shard->limit ? evict(shard) : NULL;
    pthread_mutex_unlock(&shard->lock);
    if (page == NULL && (page = malloc(sizeof *page)) == NULL) {
        return NULL;
    }
    memset(page, 0, offsetof(struct cached_page, bytes));
    memset(page->bytes + USABLE, 0, RESERVE);
    page->kind = (unsigned char)kind;
    page->number = number;
    page->shard = (unsigned char)(shard - cache->shards);
    atomic_init(&page->references, 1);
    return page;
}

struct cached_page *cache_insert(struct sealed_cache *cache, struct cached_page *page, uint64_t version) {
    struct cache_shard *shard = &cache->shards[page->shard];
    pthread_mutex_lock(&shard->lock);
    struct cached_page *present = *place(shard, page->kind, page->number);
    if (present != NULL && version == shard->version) {
        // Another thread was faster.
        retain(present);
        pthread_mutex_unlock(&shard->lock);
        release(page);
        return present;
    }
    if (present == NULL && version == shard->version && shard->limit > 0) {
        shrink(shard, shard->limit - 1);
        if (shard->count < shard->limit) {
            if (shard->count >= shard->bucket_count / 4) {
                grow(shard);
            }
            *place(shard, page->kind, page->number) = page;
            attach(shard, page);
            retain(page);
            if (shard->ends[page->kind] <= page->number) {
                shard->ends[page->kind] = page->number + 1;
            }
        }
    }
    pthread_mutex_unlock(&shard->lock);
    return page;
}

void cache_give(struct sealed_cache *cache, struct cached_page *page) {
    struct cache_shard *shard = &cache->shards[page->shard];
    release(page);
    if (atomic_load(&shard->is_too_full)) {
        pthread_mutex_lock(&shard->lock);
        shrink(shard, shard->limit);
        pthread_mutex_unlock(&shard->lock);
    }
}

int cache_drop(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number) {
    struct cache_shard *shard = shard_of(cache, kind, number);
    pthread_mutex_lock(&shard->lock);
    shard->version++;
    struct cached_page *page = *place(shard, kind, number);
    if (page != NULL) {
        release(detach(shard, page));
    }
    pthread_mutex_unlock(&shard->lock);
    return page != NULL;
}

// Drops pages of a shard by going through all that it has.
static void drop_in_rings(struct cache_shard *shard, enum sealed_kind kind, uint32_t number) {
    pthread_mutex_lock(&shard->lock);
    for (int i = 0; i < RING_COUNT; i++) {
        struct cached_page *page = shard->rings[i].hand;
        for (size_t left = shard->rings[i].count; left > 0; left--) {
            struct cached_page *next = page->next;
            if (page->kind == kind && page->number >= number) {
                release(detach(shard, page));
            }
            page = next;
        }
    }
    pthread_mutex_unlock(&shard->lock);
}

void cache_drop_from(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number) {
    pthread_mutex_lock(&cache->dropping);
    size_t count = 0;
    uint32_t end = number;
    // Whatever was read before can't be inserted from here on, in any shard.
    for (int i = 0; i < SEALED_SHARDS; i++) {
        struct cache_shard *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        shard->version++;
        count += shard->count;
        end = shard->ends[kind] > end ? shard->ends[kind] : end;
        shard->ends[kind] = shard->ends[kind] < number ? shard->ends[kind] : number;
        pthread_mutex_unlock(&shard->lock);
    }
    // Few numbers, as when a log begins again, are looked up one by one: the cache may have many times as many pages.
    if (end - number <= count / 4) {
        for (uint32_t n = number; n < end; n++) {
            cache_drop(cache, kind, n);
        }
    } else {
        for (int i = 0; i < SEALED_SHARDS; i++) {
            drop_in_rings(&cache->shards[i], kind, number);
        }
    }
    pthread_mutex_unlock(&cache->dropping);
}

void cache_put(struct sealed_cache *cache, enum sealed_kind kind, uint32_t number, const unsigned char *usable) {
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

// The cache of sealed pages alone: what SQLite does seldom, done on purpose. Each returns 1 if all is as it should be.
#include "CFaultyFiles.h"

#include "../../Sources/CSQLCipher/Sealed.h"

#include <pthread.h>
#include <string.h>

static struct cached_page *put(struct sealed_cache *cache, uint32_t number, int content) {
    uint64_t version;
    struct cached_page *page = cache_take(cache, SEALED_PAGE, number, &version);
    if (page == NULL) {
        page = cache_new(cache, SEALED_PAGE, number);
        memset(page->bytes, content, USABLE);
        page = cache_insert(cache, page, version);
    }
    return page;
}

int probe_dropped_while_lent(void) {
    struct sealed_cache cache;
    memset(&cache, 0, sizeof cache);
    cache_init(&cache, 1 << 20);
    struct cached_page *old = put(&cache, 7, 1);
    cache_drop(&cache, SEALED_PAGE, 7);
    struct cached_page *new = put(&cache, 7, 2);
    int right = old != new && old->bytes[0] == 1 && old->bytes[USABLE - 1] == 1 && new->bytes[0] == 2;
    cache_set_size(&cache, 0);
    right = right && new->bytes[0] == 2;
    cache_give(&cache, old);
    cache_give(&cache, new);
    right = right && cache_size(&cache) == 0;
    cache_free(&cache);
    return right;
}

int probe_late_insertion(void) {
    struct sealed_cache cache;
    uint64_t version;
    memset(&cache, 0, sizeof cache);
    cache_init(&cache, 1 << 20);
    // One thread reads a page; meanwhile it is written.
    int right = cache_take(&cache, SEALED_PAGE, 7, &version) == NULL;
    struct cached_page *old = cache_new(&cache, SEALED_PAGE, 7);
    memset(old->bytes, 1, USABLE);
    cache_drop(&cache, SEALED_PAGE, 7);
    old = cache_insert(&cache, old, version);
    right = right && old->bytes[0] == 1;
    struct cached_page *new = put(&cache, 7, 2);
    right = right && new->bytes[0] == 2;
    cache_give(&cache, old);
    cache_give(&cache, new);
    cache_free(&cache);
    return right;
}

int probe_two_readers(void) {
    struct sealed_cache cache;
    uint64_t version;
    memset(&cache, 0, sizeof cache);
    cache_init(&cache, 1 << 20);
    cache_take(&cache, SEALED_PAGE, 7, &version);
    struct cached_page *slow = cache_new(&cache, SEALED_PAGE, 7);
    memset(slow->bytes, 1, USABLE);
    struct cached_page *fast = put(&cache, 7, 1);
    slow = cache_insert(&cache, slow, version);
    int right = slow == fast && atomic_load(&fast->references) == 3 && cache_size(&cache) == sizeof *fast;
    cache_give(&cache, slow);
    cache_give(&cache, fast);
    cache_free(&cache);
    return right;
}

int probe_place_taken_over(void) {
    struct sealed_cache cache;
    memset(&cache, 0, sizeof cache);
    cache_init(&cache, 1);  // a page in each shard
    struct cached_page *lent = put(&cache, 7, 1);
    int right = 1;
    // Others of its shard come, and find its place taken as long as it is lent.
    for (uint32_t number = 8, others = 0; others < 3; number++) {
        struct cached_page *other = put(&cache, number, 2);
        right = right && other != lent && other->bytes[USABLE - 1] == 2 && lent->number == 7 && lent->bytes[0] == 1;
        others += other->shard == lent->shard;
        cache_give(&cache, other);
    }
    right = right && cache_size(&cache) <= SEALED_SHARDS * sizeof *lent;
    unsigned char shard = lent->shard;
    cache_give(&cache, lent);
    // Then one comes that takes it over, and is found under its own number alone.
    uint64_t version;
    for (uint32_t number = 100;; number++) {
        struct cached_page *other = put(&cache, number, 3);
        int is_there = other->shard == shard;
        cache_give(&cache, other);
        if (is_there) {
            struct cached_page *found = cache_take(&cache, SEALED_PAGE, number, &version);
            right = right && found != NULL && found->bytes[0] == 3 && cache_take(&cache, SEALED_PAGE, 7, &version) == NULL;
            cache_give(&cache, found);
            break;
        }
    }
    cache_free(&cache);
    return right;
}

// How many of the pages from `first` to `last` are kept. They count as used then.
static int count_kept(struct sealed_cache *cache, enum sealed_kind kind, uint32_t first, uint32_t last) {
    int count = 0;
    uint64_t version;
    for (uint32_t number = first; number <= last; number++) {
        struct cached_page *page = cache_take(cache, kind, number, &version);
        if (page != NULL) {
            count++;
            cache_give(cache, page);
        }
    }
    return count;
}

int probe_dropped_from(void) {
    static const unsigned char content[USABLE];
    struct sealed_cache cache;
    memset(&cache, 0, sizeof cache);
    cache_init(&cache, 16 << 20);
    for (uint32_t number = 1; number <= 1000; number++) {
        cache_put(&cache, SEALED_PAGE, number, content);
        if (number <= 100) {
            cache_put(&cache, SEALED_FRAME, number, content);
        }
    }
    // The last 50 and all frames are looked up one by one, then most are found by going through all.
    cache_drop_from(&cache, SEALED_PAGE, 951);
    cache_drop_from(&cache, SEALED_FRAME, 0);
    int right = count_kept(&cache, SEALED_PAGE, 1, 1000) == 950 && count_kept(&cache, SEALED_PAGE, 951, 1000) == 0 &&
                count_kept(&cache, SEALED_FRAME, 1, 1000) == 0;
    cache_drop_from(&cache, SEALED_PAGE, 11);
    right = right && count_kept(&cache, SEALED_PAGE, 1, 1000) == 10 && cache_size(&cache) == 10 * sizeof(struct cached_page);
    // What comes after a drop is kept, and dropped by the next.
    cache_put(&cache, SEALED_PAGE, 500, content);
    right = right && count_kept(&cache, SEALED_PAGE, 11, 1000) == 1;
    cache_drop_from(&cache, SEALED_PAGE, 12);
    right = right && count_kept(&cache, SEALED_PAGE, 1, 1000) == 10;
    cache_free(&cache);
    return right;
}

int probe_indexes_stay(void) {
    enum { pages = 1600, leaf_of_index = 10, leaf_of_table = 13 };
    struct sealed_cache cache;
    memset(&cache, 0, sizeof cache);
    cache_init(&cache, pages * sizeof(struct cached_page));
    // A third of the cache are pages of an index, each used again after 3,000 others, which are used once.
    for (uint32_t number = 1; number <= 500; number++) {
        cache_give(&cache, put(&cache, number, leaf_of_index));
    }
    for (uint32_t number = 1; number <= 20000; number++) {
        cache_give(&cache, put(&cache, 1000 + number, leaf_of_table));
        if (number % 6 == 0) {
            cache_give(&cache, put(&cache, 1 + number / 6 % 500, leaf_of_index));
        }
    }
    int right = count_kept(&cache, SEALED_PAGE, 1, 500) > 450 && cache_size(&cache) <= pages * sizeof(struct cached_page);
    // Not used any more, they make room in the end; and where there are others only, these fill it.
    for (uint32_t number = 1; number <= 20000; number++) {
        cache_give(&cache, put(&cache, 30000 + number, leaf_of_table));
    }
    right = right && count_kept(&cache, SEALED_PAGE, 1, 500) == 0 &&
            count_kept(&cache, SEALED_PAGE, 30001, 50000) > pages * 9 / 10;
    // So do pages of an index that are more than the cache holds.
    for (uint32_t number = 1; number <= 20000; number++) {
        cache_give(&cache, put(&cache, 60000 + number, leaf_of_index));
    }
    right = right && count_kept(&cache, SEALED_PAGE, 60001, 80000) > pages * 8 / 10 &&
            cache_size(&cache) <= pages * sizeof(struct cached_page);
    cache_free(&cache);
    return right;
}

struct drop_beside {
    struct sealed_cache *cache;
    atomic_int has_begun, may_begin;
};

static void *drop_beside(void *context) {
    struct drop_beside *drop = context;
    atomic_store(&drop->has_begun, 1);
    while (!atomic_load(&drop->may_begin)) {
    }
    cache_drop_from(drop->cache, SEALED_FRAME, 0);
    return NULL;
}

// Whoever drops pages that another thread is dropping finds none of them afterwards, at whatever moment it comes.
int probe_dropped_by_two(void) {
    static const unsigned char content[USABLE];
    int right = 1;
    for (int round = 0; round < 300 && right; round++) {
        struct sealed_cache cache;
        memset(&cache, 0, sizeof cache);
        cache_init(&cache, 4 << 20);
        for (uint32_t number = 1; number <= 400; number++) {
            cache_put(&cache, SEALED_FRAME, number, content);
        }
        struct drop_beside drop = {&cache, 0, 0};
        pthread_t thread;
        if (pthread_create(&thread, NULL, drop_beside, &drop) != 0) {
            return 0;
        }
        while (!atomic_load(&drop.has_begun)) {
        }
        atomic_store(&drop.may_begin, 1);
        for (volatile int wait = 0; wait < round % 100 * 100; wait++) {
        }
        cache_drop_from(&cache, SEALED_FRAME, 0);
        right = count_kept(&cache, SEALED_FRAME, 1, 400) == 0;
        pthread_join(thread, NULL);
        cache_free(&cache);
    }
    return right;
}

// The cache of sealed pages alone: what SQLite does seldom, done on purpose. Each returns 1 if all is as it should be.
#include "CFaultyFiles.h"

#include "../../Sources/CSQLCipher/Sealed.h"

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
    int right = slow == fast && fast->users == 2 && cache_size(&cache) == sizeof *fast;
    cache_give(&cache, slow);
    cache_give(&cache, fast);
    cache_free(&cache);
    return right;
}

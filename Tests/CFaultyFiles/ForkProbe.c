// What a forked process can do with sealed pages, in C, as Swift has no fork().
#include "CFaultyFiles.h"

#include "../../Sources/CSQLCipher/Sealed.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int seals(sealed_pages *pages) {
    static const unsigned char page[PAGE];
    unsigned char stored[PAGE];
    struct sealed_ciphers ciphers;
    memset(&ciphers, 0, sizeof ciphers);
    int code = sealed_seal(&pages->keys, &ciphers, SEALED_PAGE, 1, page, USABLE, stored);
    sealed_ciphers_free(&ciphers);
    return code == SQLITE_OK;
}

int probe_fork(const char *path) {
    unsigned char key[SEALED_KEY] = {1}, binding[SEALED_BINDING] = {2};
    sealed_pages *pages, *again = NULL;
    if (sealed_pages_open(path, key, binding, 0, NULL, &pages) != SQLITE_OK) {
        return 0;
    }
    int right = seals(pages);
    pid_t child = fork();
    if (child == 0) {
        right = right && !seals(pages) && sealed_pages_open(path, key, binding, 0, NULL, &again) == SQLITE_OK &&
                seals(again) && memcmp(again->keys.prefix, pages->keys.prefix, SEALED_PREFIX) != 0;
        _exit(right ? 0 : 1);
    }
    int status = 1;
    right = right && child > 0 && waitpid(child, &status, 0) == child && status == 0 && seals(pages);
    sealed_pages_release(pages);
    return right;
}

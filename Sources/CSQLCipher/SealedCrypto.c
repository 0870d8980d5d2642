// One message: XAES-256-GCM (c2sp.org/XAES-256-GCM) through OpenSSL.
//
// Two messages under one nonce would give both away, and the key that authenticates with them. So a nonce is 12 random
// bytes that are this session's alone, and 12 that count; all that seal in a session count together, atomically, and no
// sealed_pages outlives its count, or seals in two processes.
#include "Sealed.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <string.h>

static const char label[15] = "coffer/v1/page";  // with its zero

static EVP_CIPHER *block_cipher, *page_cipher;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Looking an algorithm up costs as much as a page. They are kept as long as the process lives.
static void fetch(void) {
    block_cipher = EVP_CIPHER_fetch(NULL, "AES-256-ECB", NULL);
    page_cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
}

// What OpenSSL can't do has nothing to do with the page: NOMEM or IOERR, never CORRUPT. Nor with the file system, whose last
// error would be told of it.
static int openssl_failed(void) {
    errno = 0;
    int reason = ERR_GET_REASON(ERR_peek_last_error());
    ERR_clear_error();
    return reason == ERR_R_MALLOC_FAILURE ? SQLITE_NOMEM : SQLITE_IOERR;
}

// AES-256 of blocks of 16 bytes, each alone, in place.
static int encrypt_blocks(const unsigned char *key, unsigned char *blocks, int count) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int written = 0;
    int done = context != NULL && EVP_EncryptInit_ex2(context, block_cipher, key, NULL, NULL) == 1 &&
               EVP_CIPHER_CTX_set_padding(context, 0) == 1 &&
               EVP_EncryptUpdate(context, blocks, &written, blocks, count) == 1 && written == count;
    EVP_CIPHER_CTX_free(context);
    return done ? SQLITE_OK : openssl_failed();
}

int sealed_keys_init(struct sealed_keys *keys, const unsigned char *key, const unsigned char *binding) {
    pthread_once(&once, fetch);
    if (block_cipher == NULL || page_cipher == NULL) {
        return openssl_failed();
    }
    memcpy(keys->key, key, SEALED_KEY);
    memcpy(keys->aad, label, sizeof label);
    memcpy(keys->aad + sizeof label, binding, SEALED_BINDING);
    unsigned char start[12];
    if (RAND_bytes(keys->prefix, sizeof keys->prefix) != 1 || RAND_bytes(start, sizeof start) != 1) {
        return openssl_failed();
    }
    keys->start_high = get_u32(start);
    keys->start_low = (uint64_t)get_u32(start + 4) << 32 | get_u32(start + 8);
    atomic_init(&keys->count, 0);
    atomic_init(&keys->is_inherited, 0);
    // K1 is L doubled in GF(2^128), where L is AES of zeros.
    unsigned char block[16] = {0};
    int code = encrypt_blocks(keys->key, block, sizeof block);
    for (int i = 0; i < 16; i++) {
        keys->subkey[i] = (unsigned char)(block[i] << 1 | (i < 15 ? block[i + 1] >> 7 : 0));
    }
    keys->subkey[15] ^= block[0] >> 7 ? 0x87 : 0;
    OPENSSL_cleanse(block, sizeof block);
    return code;
}

void sealed_keys_inherit(struct sealed_keys *keys) { atomic_store_explicit(&keys->is_inherited, 1, memory_order_relaxed); }

// A context with the key that belongs to a prefix.
static int derive(struct sealed_keys *keys, const unsigned char *prefix, int seals, EVP_CIPHER_CTX **context) {
    unsigned char derived[32];
    for (int i = 0; i < 2; i++) {
        unsigned char *block = derived + 16 * i;
        const unsigned char start[4] = {0, (unsigned char)(i + 1), 'X', 0};
        memcpy(block, start, 4);
        memcpy(block + 4, prefix, SEALED_PREFIX);
        for (int j = 0; j < 16; j++) {
            block[j] ^= keys->subkey[j];
        }
    }
    int code = encrypt_blocks(keys->key, derived, sizeof derived);
    if (code == SQLITE_OK) {
        *context = EVP_CIPHER_CTX_new();
        if (*context == NULL || EVP_CipherInit_ex2(*context, page_cipher, derived, NULL, seals, NULL) != 1) {
            EVP_CIPHER_CTX_free(*context);
            *context = NULL;
            code = openssl_failed();
        }
    }
    OPENSSL_cleanse(derived, sizeof derived);
    return code;
}

// Gives the context the nonce, whose second half GCM takes, and what is authenticated besides.
static int begin(struct sealed_keys *keys, EVP_CIPHER_CTX *context, enum sealed_kind kind, uint32_t number,
                 const unsigned char *nonce) {
    unsigned char aad[SEALED_AAD];
    memcpy(aad, keys->aad, sizeof aad);
    aad[SEALED_AAD - 5] = (unsigned char)kind;
    put_u32(aad + SEALED_AAD - 4, number);
    int written;
    return EVP_CipherInit_ex2(context, NULL, NULL, nonce + SEALED_PREFIX, -1, NULL) == 1 &&
           EVP_CipherUpdate(context, NULL, &written, aad, sizeof aad) == 1;
}

int sealed_seal(struct sealed_keys *keys, struct sealed_ciphers *ciphers, enum sealed_kind kind, uint32_t number,
                const unsigned char *plain, int count, unsigned char *out) {
    if (atomic_load_explicit(&keys->is_inherited, memory_order_relaxed)) {
        errno = 0;
        return SQLITE_IOERR;
    }
    if (ciphers->sealing == NULL) {
        int code = derive(keys, keys->prefix, 1, &ciphers->sealing);
        if (code != SQLITE_OK) {
            return code;
        }
    }
    // The only place where a nonce is made: each call takes the next number, whatever becomes of the message.
    uint64_t low = keys->start_low + atomic_fetch_add(&keys->count, 1);
    unsigned char *nonce = out + count;
    memcpy(nonce, keys->prefix, SEALED_PREFIX);
    put_u32(nonce + SEALED_PREFIX, keys->start_high + (low < keys->start_low ? 1 : 0));
    put_u32(nonce + SEALED_PREFIX + 4, (uint32_t)(low >> 32));
    put_u32(nonce + SEALED_PREFIX + 8, (uint32_t)low);
    int written = 0, ended = 0;
    unsigned char none[1];
    int done = begin(keys, ciphers->sealing, kind, number, nonce) &&
               EVP_CipherUpdate(ciphers->sealing, out, &written, plain, count) == 1 && written == count &&
               EVP_CipherFinal_ex(ciphers->sealing, none, &ended) == 1 &&
               EVP_CIPHER_CTX_ctrl(ciphers->sealing, EVP_CTRL_AEAD_GET_TAG, TAG, out + count + NONCE) == 1;
    return done ? SQLITE_OK : openssl_failed();
}

// The context for pages with this prefix: one that is there already, or in the place of the one used longest ago.
static int opening_context(struct sealed_keys *keys, struct sealed_ciphers *ciphers, const unsigned char *prefix,
                           EVP_CIPHER_CTX **context) {
    enum { places = sizeof ciphers->opening / sizeof ciphers->opening[0] };
    int place = 0;
    for (int i = 0; i < places; i++) {
        if (ciphers->opening[i].context != NULL && memcmp(ciphers->opening[i].prefix, prefix, SEALED_PREFIX) == 0) {
            ciphers->opening[i].used = ++ciphers->clock;
            *context = ciphers->opening[i].context;
            return SQLITE_OK;
        }
        if (ciphers->opening[i].used < ciphers->opening[place].used) {
            place = i;
        }
    }
    EVP_CIPHER_CTX *made = NULL;
    int code = derive(keys, prefix, 0, &made);
    if (code != SQLITE_OK) {
        return code;
    }
    EVP_CIPHER_CTX_free(ciphers->opening[place].context);  // overwrites its key
    ciphers->opening[place].context = *context = made;
    ciphers->opening[place].used = ++ciphers->clock;
    memcpy(ciphers->opening[place].prefix, prefix, SEALED_PREFIX);
    return SQLITE_OK;
}

int sealed_open(struct sealed_keys *keys, struct sealed_ciphers *ciphers, enum sealed_kind kind, uint32_t number,
                const unsigned char *sealed, int count, unsigned char *out) {
    const unsigned char *nonce = sealed + count;
    EVP_CIPHER_CTX *context;
    int code = opening_context(keys, ciphers, nonce, &context);
    if (code != SQLITE_OK) {
        return code;
    }
    int written = 0, ended = 0;
    unsigned char none[1], tag[TAG];
    memcpy(tag, nonce + NONCE, TAG);
    if (!begin(keys, context, kind, number, nonce) ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, TAG, tag) != 1 ||
        EVP_CipherUpdate(context, out, &written, sealed, count) != 1 || written != count) {
        OPENSSL_cleanse(out, (size_t)count);
        return openssl_failed();
    }
    // The one thing that can be wrong now is the tag. What was decrypted before must not be read then.
    if (EVP_CipherFinal_ex(context, none, &ended) != 1) {
        OPENSSL_cleanse(out, (size_t)count);
        ERR_clear_error();
        return SEALED_FOREIGN;
    }
    return SQLITE_OK;
}

void sealed_ciphers_free(struct sealed_ciphers *ciphers) {
    EVP_CIPHER_CTX_free(ciphers->sealing);
    for (size_t i = 0; i < sizeof ciphers->opening / sizeof ciphers->opening[0]; i++) {
        EVP_CIPHER_CTX_free(ciphers->opening[i].context);
    }
    memset(ciphers, 0, sizeof *ciphers);
}

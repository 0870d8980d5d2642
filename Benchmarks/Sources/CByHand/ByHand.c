#define _GNU_SOURCE
#include "ByHand.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 16384, TAG = 16, SEALED = PIECE + TAG, NONCE = 12, PIECES_AT_ONCE = 64 };

struct by_hand {
    EVP_CIPHER *aes;
    EVP_MD *sha1, *sha256;
    EVP_CIPHER_CTX *seal, *open;
    EVP_MD_CTX *sha1_context, *sha256_context;
    uint8_t key[32];
    uint8_t buffer[NONCE + PIECES_AT_ONCE * SEALED];
};

by_hand *by_hand_new(void) {
    by_hand *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->aes = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    b->sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
    b->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    b->seal = EVP_CIPHER_CTX_new();
    b->open = EVP_CIPHER_CTX_new();
    b->sha1_context = EVP_MD_CTX_new();
    b->sha256_context = EVP_MD_CTX_new();
    if (!b->aes || !b->sha1 || !b->sha256 || !b->seal || !b->open || !b->sha1_context || !b->sha256_context ||
        RAND_bytes(b->key, sizeof b->key) != 1 || EVP_EncryptInit_ex2(b->seal, b->aes, b->key, NULL, NULL) != 1 ||
        EVP_DecryptInit_ex2(b->open, b->aes, b->key, NULL, NULL) != 1) {
        by_hand_free(b);
        return NULL;
    }
    return b;
}

void by_hand_free(by_hand *b) {
    if (!b) return;
    EVP_CIPHER_CTX_free(b->seal);
    EVP_CIPHER_CTX_free(b->open);
    EVP_MD_CTX_free(b->sha1_context);
    EVP_MD_CTX_free(b->sha256_context);
    EVP_CIPHER_free(b->aes);
    EVP_MD_free(b->sha1);
    EVP_MD_free(b->sha256);
    OPENSSL_cleanse(b->key, sizeof b->key);
    free(b);
}

// The nonce of a piece: the file's, XOR the number of the piece.
static void piece_nonce(const uint8_t *nonce, uint64_t piece, uint8_t *out) {
    memcpy(out, nonce, NONCE);
    for (int i = 0; i < 8; i++) out[NONCE - 1 - i] ^= (uint8_t)(piece >> 8 * i);
}

static bool seal(by_hand *b, const uint8_t *nonce, uint64_t piece, const uint8_t *in, int count, uint8_t *out) {
    uint8_t own[NONCE];
    int written = 0, rest = 0;
    piece_nonce(nonce, piece, own);
    return EVP_EncryptInit_ex2(b->seal, NULL, NULL, own, NULL) == 1 &&
           EVP_EncryptUpdate(b->seal, out, &written, in, count) == 1 && written == count &&
           EVP_EncryptFinal_ex(b->seal, out + count, &rest) == 1 &&
           EVP_CIPHER_CTX_ctrl(b->seal, EVP_CTRL_AEAD_GET_TAG, TAG, out + count) == 1;
}

static bool open_piece(by_hand *b, const uint8_t *nonce, uint64_t piece, uint8_t *in, int count, uint8_t *out) {
    uint8_t own[NONCE];
    int written = 0, rest = 0;
    piece_nonce(nonce, piece, own);
    return EVP_DecryptInit_ex2(b->open, NULL, NULL, own, NULL) == 1 &&
           EVP_CIPHER_CTX_ctrl(b->open, EVP_CTRL_AEAD_SET_TAG, TAG, in + count) == 1 &&
           EVP_DecryptUpdate(b->open, out, &written, in, count) == 1 && written == count &&
           EVP_DecryptFinal_ex(b->open, out + count, &rest) == 1;
}

static bool write_all(int file, const uint8_t *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = write(file, bytes, count);
        if (written < 0) return false;
        bytes += written;
        count -= (size_t)written;
    }
    return true;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

bool by_hand_write(by_hand *b, int directory, const char *name, const void *content, size_t count, bool with_fsync) {
    int file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return false;
    uint8_t nonce[NONCE], sha1[EVP_MAX_MD_SIZE], sha256[EVP_MAX_MD_SIZE];
    bool fine = RAND_bytes(nonce, NONCE) == 1 && EVP_DigestInit_ex2(b->sha1_context, b->sha1, NULL) == 1 &&
                EVP_DigestInit_ex2(b->sha256_context, b->sha256, NULL) == 1;
    memcpy(b->buffer, nonce, NONCE);
    size_t filled = NONCE;
    const uint8_t *rest = content;
    for (uint64_t piece = 0; fine && count > 0; piece++) {
        size_t taken = smaller(count, PIECE);
        if (filled + taken + TAG > sizeof b->buffer) {
            fine = write_all(file, b->buffer, filled);
            filled = 0;
        }
        fine = fine && EVP_DigestUpdate(b->sha1_context, rest, taken) == 1 &&
               EVP_DigestUpdate(b->sha256_context, rest, taken) == 1 &&
               seal(b, nonce, piece, rest, (int)taken, b->buffer + filled);
        filled += taken + TAG;
        rest += taken;
        count -= taken;
    }
    fine = fine && write_all(file, b->buffer, filled) && EVP_DigestFinal_ex(b->sha1_context, sha1, NULL) == 1 &&
           EVP_DigestFinal_ex(b->sha256_context, sha256, NULL) == 1 && (!with_fsync || fsync(file) == 0);
    return close(file) == 0 && fine;
}

bool by_hand_read(by_hand *b, int directory, const char *name, void *content, size_t count) {
    int file = openat(directory, name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    uint8_t nonce[NONCE], *out = content;
    bool fine = read(file, nonce, NONCE) == NONCE;
    for (uint64_t piece = 0; fine && count > 0;) {
        ssize_t filled = read(file, b->buffer, PIECES_AT_ONCE * SEALED);
        fine = filled > TAG;
        for (ssize_t start = 0; fine && start < filled && count > 0; start += SEALED, piece++) {
            size_t taken = smaller(count, PIECE);
            fine = start + (ssize_t)taken + TAG <= filled &&
                   open_piece(b, nonce, piece, b->buffer + start, (int)taken, out);
            out += taken;
            count -= taken;
        }
    }
    close(file);
    return fine;
}

bool by_hand_recode(by_hand *b, int directory, const char *name, int new_directory, size_t count) {
    int in = openat(directory, name, O_RDONLY | O_CLOEXEC);
    int out = openat(new_directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    uint8_t old_nonce[NONCE], nonce[NONCE], plain[PIECE], sha256[EVP_MAX_MD_SIZE];
    bool fine = in >= 0 && out >= 0 && read(in, old_nonce, NONCE) == NONCE && RAND_bytes(nonce, NONCE) == 1 &&
                EVP_DigestInit_ex2(b->sha256_context, b->sha256, NULL) == 1 && write_all(out, nonce, NONCE);
    for (uint64_t piece = 0; fine && count > 0;) {
        ssize_t filled = read(in, b->buffer, PIECES_AT_ONCE * SEALED);
        fine = filled > TAG;
        for (ssize_t start = 0; fine && start < filled && count > 0; start += SEALED, piece++) {
            size_t taken = smaller(count, PIECE);
            uint8_t *place = b->buffer + start;
            fine = start + (ssize_t)taken + TAG <= filled &&
                   open_piece(b, old_nonce, piece, place, (int)taken, plain) &&
                   EVP_DigestUpdate(b->sha256_context, plain, taken) == 1 &&
                   seal(b, nonce, piece, plain, (int)taken, place);
            count -= taken;
        }
        fine = fine && write_all(out, b->buffer, (size_t)filled);
    }
    fine = fine && EVP_DigestFinal_ex(b->sha256_context, sha256, NULL) == 1;
    if (in >= 0) close(in);
    return out >= 0 && close(out) == 0 && fine;
}

bool by_hand_read_files_of(by_hand *b, const by_hand *other) {
    return EVP_DecryptInit_ex2(b->open, b->aes, other->key, NULL, NULL) == 1;
}

bool by_hand_sync_all(int directory) {
#ifdef __linux__
    if (syncfs(directory) != 0) return false;
#else
    sync();
#endif
    return fsync(directory) == 0;
}

bool by_hand_derive(const char *password, uint8_t key[32]) {
    uint8_t salt[16];
    return RAND_bytes(salt, sizeof salt) == 1 &&
           EVP_PBE_scrypt(password, strlen(password), salt, sizeof salt, 1 << 16, 8, 2, 128 << 20, key, 32) == 1;
}

const char *by_hand_openssl_version(void) { return OpenSSL_version(OPENSSL_VERSION); }

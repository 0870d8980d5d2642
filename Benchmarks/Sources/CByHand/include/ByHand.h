// The work of the benchmarks as somebody writes it by hand on OpenSSL and the system's calls, without Coffer.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The contents. Every byte of one follows from its seed and its offset, so that contents of any size can be made and
// compared piece by piece. `offset` is a multiple of 8.
void content_fill(uint64_t seed, uint64_t offset, void *bytes, size_t count);
bool content_matches(uint64_t seed, uint64_t offset, const void *bytes, size_t count);

// Contexts, a key and a buffer of about 1 MiB that are made once and used for many files. NULL when OpenSSL or memory fails.
typedef struct by_hand by_hand;
by_hand *by_hand_new(void);
void by_hand_free(by_hand *);

// A file: 12 random bytes, then the content in pieces of 16 KiB, each under AES-256-GCM and followed by its 16-byte tag.
// One pass makes SHA-1, SHA-256 and the ciphertext, and writes it about 1 MiB at a time. `with_fsync` makes the file
// durable on its own. False when something fails; errno says what if it was the system.
bool by_hand_write(by_hand *, int directory, const char *name, const void *content, size_t count, bool with_fsync);

// Reads such a file about 1 MiB at a time and opens its pieces into `content`, which holds `count` bytes. No digest.
bool by_hand_read(by_hand *, int directory, const char *name, void *content, size_t count);

// Reads such a file and writes its content into another one, encrypted with the nonces of that: decrypts, digests with
// SHA-256, encrypts. Both are read and written about 1 MiB at a time. Each thread has a context of its own.
bool by_hand_recode(by_hand *, int directory, const char *name, int new_directory, size_t count);

// Lets a context read what another one wrote. What it writes stays under a key of its own.
bool by_hand_read_files_of(by_hand *, const by_hand *other);

// Makes all that was written to the file system of `directory` durable: syncfs, where there is one, and fsync of it.
bool by_hand_sync_all(int directory);

// Stretches a password with scrypt, N=2^16, r=8, p=2, and a new salt.
bool by_hand_derive(const char *password, uint8_t key[32]);

const char *by_hand_openssl_version(void);

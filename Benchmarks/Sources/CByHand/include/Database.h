// The work of the benchmarks on databases, by hand on SQLCipher's C API.
#pragma once
#include <stdbool.h>

// Copies a whole database into a new file with sqlcipher_export, from and to these keys of 64 hex digits; NULL is none.
// Nothing is made durable.
bool by_hand_export(const char *path, const char *hex_key, const char *copy, const char *copy_hex_key);

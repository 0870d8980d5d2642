#include "ByHand.h"

#include <string.h>

// splitmix64 of a counter: each 8 bytes alone, about as fast as memory.
static inline uint64_t word(uint64_t seed, uint64_t index) {
    uint64_t z = seed * 0xd1342543de82ef95u + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void content_fill(uint64_t seed, uint64_t offset, void *bytes, size_t count) {
    uint8_t *out = bytes;
    uint64_t index = offset / 8;
    for (; count >= 8; count -= 8, out += 8, index++) {
        uint64_t value = word(seed, index);
        memcpy(out, &value, 8);
    }
    uint64_t value = word(seed, index);
    memcpy(out, &value, count);
}

bool content_matches(uint64_t seed, uint64_t offset, const void *bytes, size_t count) {
    const uint8_t *in = bytes;
    uint64_t index = offset / 8, difference = 0;
    for (; count >= 8; count -= 8, in += 8, index++) {
        uint64_t value;
        memcpy(&value, in, 8);
        difference |= value ^ word(seed, index);
    }
    uint64_t value = word(seed, index);
    return difference == 0 && memcmp(in, &value, count) == 0;
}

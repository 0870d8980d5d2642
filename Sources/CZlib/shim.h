#ifndef COFFER_ZLIB_SHIM_H
#define COFFER_ZLIB_SHIM_H
#include <zlib.h>

// inflateInit2 is a macro, which Swift can't call. 15 + 16: a gzip header and trailer, and nothing else.
static inline int coffer_inflate_begin(z_stream *stream) { return inflateInit2(stream, 15 + 16); }
#endif

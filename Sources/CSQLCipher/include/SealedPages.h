// Sealed pages: a file system for SQLite in which every page of a database file, and every frame of its log, is one
// message of XAES-256-GCM. docs/FORMAT.md, "Sealed pages", has the bytes.
//
// A connection opens a file of it with the name below as its VFS, after sealed_pages_open() has given the file's key.
// Everything else that SQLite could write, journals and temporary files, is refused.
#ifndef COFFER_SEALED_PAGES_H
#define COFFER_SEALED_PAGES_H

#include <stddef.h>

#define SEALED_VFS "coffer-sealed"

// The name of the VFS that opens all other files.
const char *sealed_vfs_of_others(void);

enum {
    SEALED_KEY = 32,      // bytes of a key
    SEALED_BINDING = 32,  // bytes of what pages are bound to: UUID, generation, tag
};

// The pages of one file: their key, what is opened of them, and the index of the log in memory.
typedef struct sealed_pages sealed_pages;

struct sqlite3;

// Makes *pages those of the database file at `path`, for connections that open it from now on, until they are released
// and the last of them is closed. The same object as before if there is one of the same file, key and binding: all
// connections of a process to a file have to share one. `beneath` names the VFS that has the bytes, NULL for the default
// one. sqlcipher_load() must have returned NULL. Returns a result code of SQLite: BUSY if connections have the file open
// under another key.
int sealed_pages_open(const char *path, const unsigned char key[SEALED_KEY], const unsigned char binding[SEALED_BINDING],
                      size_t cache_size, const char *beneath, sealed_pages **pages);
void sealed_pages_release(sealed_pages *pages);

// Whether the main database of `db` is these pages, and not others that were opened at the same path since.
int sealed_pages_are_of(sealed_pages *pages, struct sqlite3 *db);

// Limits the opened pages that are kept to so many bytes; 0 keeps none.
void sealed_pages_set_cache(sealed_pages *pages, size_t size);
size_t sealed_pages_cached(sealed_pages *pages);

// Writes page 1 of an empty database into the file, which must exist and be empty: CANTOPEN, or MISUSE if it is not.
int sealed_pages_write_empty(sealed_pages *pages);

#endif

// A hint of how long a file will be, given to sealed pages on a system that would lengthen it at once.
#include "CFaultyFiles.h"

#include "../../Sources/CSQLCipher/Sealed.h"

#include <string.h>

int probe_size_hint(const char *path) {
    unsigned char key[SEALED_KEY] = {1}, binding[SEALED_BINDING] = {2};
    char name[1024] = {0};
    sealed_pages *pages;
    struct sealed_file file;
    int chunk = 10 * PAGE, flags;
    sqlite3_int64 hint = 40 * PAGE, before = 0, after = 0;
    strncpy(name + 4, path, sizeof name - 16);
    if (sealed_pages_open(path, key, binding, 0, NULL, &pages) != SQLITE_OK ||
        sealed_pages_write_empty(pages) != SQLITE_OK || registry_take(path, strlen(path), 1) != pages ||
        sealed_file_open(pages, name + 4, &file, SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READWRITE, &flags) != SQLITE_OK) {
        return 0;
    }
    const sqlite3_io_methods *methods = file.file.pMethods;
    methods->xFileSize(&file.file, &before);
    file.beneath->pMethods->xFileControl(file.beneath, SQLITE_FCNTL_CHUNK_SIZE, &chunk);
    methods->xFileControl(&file.file, SQLITE_FCNTL_SIZE_HINT, &hint);
    methods->xFileSize(&file.file, &after);
    methods->xClose(&file.file);
    sealed_pages_release(pages);
    return before == PAGE && after == before;
}

// What the tests need of the system and Swift cannot see, since it is declared only for those who ask for it.
#ifndef COFFER_CTERMINAL_H
#define COFFER_CTERMINAL_H

#include <spawn.h>
#include <stddef.h>
#include <sys/types.h>

// Opens a pseudo-terminal. Returns the descriptor of its master side, or -1, and the path of the other side in `path`.
int terminal_open(char *path, size_t path_size);

// Lets the process begin a session of its own, which has no terminal yet, with no signal blocked: the threads that tests
// run on block them.
int terminal_begin_session(posix_spawnattr_t *attributes);

// Lets the process begin in `folder`.
int terminal_begin_in_folder(posix_spawn_file_actions_t *actions, const char *folder);

// Begins a process of another user that puts links to `target` in the places of a database's -shm and -wal in `folder`, and
// takes them away again, for as long as this process lives or until it is killed. Returns its number, or -1.
pid_t swapper_begin(uid_t user, gid_t group, const char *folder, const char *target);

#endif

// The Linux calls that the Glibc module of the Swift toolchain does not show. Nothing to link: all are in libc.
#ifndef COFFER_CLINUX_SHIM_H
#define COFFER_CLINUX_SHIM_H

#ifdef __linux__

#include <linux/keyctl.h>
#include <linux/magic.h>
#include <linux/stat.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

// Declared by <stdio.h> and <unistd.h> only under _GNU_SOURCE, which Swift does not define when it reads them.
int renameat2(int old_directory, const char *old_name, int new_directory, const char *new_name, unsigned int flags);
int syncfs(int descriptor);
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
int statx(int directory, const char *name, int flags, unsigned int mask, struct statx *status);

// <linux/fs.h> has these too, but not beside <sys/mount.h>.
enum { COFFER_RENAME_NOREPLACE = 1, COFFER_RENAME_EXCHANGE = 2 };

// <unistd.h> has these only under _GNU_SOURCE.
enum { COFFER_SEEK_DATA = 3, COFFER_SEEK_HOLE = 4 };

// The calls of the kernel's key management (keyrings(7)), for which libc has no functions: -1 and errno, or what they are for.
long syscall(long number, ...);

static inline long coffer_request_key(const char *type, const char *description) {
    return syscall(SYS_request_key, type, description, (char *)0, 0);
}

// Searches the user's keyring, and links what is found to the process's: whoever has no link to the former may read it then.
static inline long coffer_search_user_keyring(const char *type, const char *description) {
    return syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, type, description, KEY_SPEC_PROCESS_KEYRING);
}

// The length of the key's content, of which as much is copied as there is room for.
static inline long coffer_read_key(long key, void *bytes, unsigned long count) {
    return syscall(SYS_keyctl, KEYCTL_READ, key, bytes, count, 0);
}

#endif
#endif

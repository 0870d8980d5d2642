// The four Linux calls that the Glibc module of the Swift toolchain does not show. Nothing to link: all are in libc.
#ifndef COFFER_CLINUX_SHIM_H
#define COFFER_CLINUX_SHIM_H

#ifdef __linux__

#include <linux/magic.h>
#include <linux/stat.h>
#include <sys/vfs.h>

// Declared by <stdio.h> and <unistd.h> only under _GNU_SOURCE, which Swift does not define when it reads them.
int renameat2(int old_directory, const char *old_name, int new_directory, const char *new_name, unsigned int flags);
int syncfs(int descriptor);
int statx(int directory, const char *name, int flags, unsigned int mask, struct statx *status);

// <linux/fs.h> has these too, but not beside <sys/mount.h>.
enum { COFFER_RENAME_NOREPLACE = 1, COFFER_RENAME_EXCHANGE = 2 };

// <unistd.h> has these only under _GNU_SOURCE.
enum { COFFER_SEEK_DATA = 3, COFFER_SEEK_HOLE = 4 };

#endif
#endif

#define _GNU_SOURCE
#include "CTerminal.h"

#include <fcntl.h>
#include <grp.h>
#include <unistd.h>

pid_t swapper_begin(uid_t user, gid_t group, const char *folder, const char *target) {
    static const char *const names[] = {"db.sqlite3-shm", "db.sqlite3-wal"};
    int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return -1;
    pid_t parent = getpid();
    pid_t process = fork();
    if (process != 0) {
        close(directory);
        return process;
    }
    if (setgroups(0, NULL) != 0 || setgid(group) != 0 || setuid(user) != 0) _exit(1);
    // The time that a link is there, and that it is not, goes through many values, so that it meets whoever looks in between.
    for (unsigned round = 0; getppid() == parent; round++) {
        const char *name = names[round & 1];
        unlinkat(directory, name, 0);
        symlinkat(target, directory, name);
        usleep(round % 40);
        unlinkat(directory, name, 0);
        usleep(round % 60);
    }
    _exit(0);
}

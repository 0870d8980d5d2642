#define _GNU_SOURCE
#include "CTerminal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int terminal_open(char *path, size_t path_size) {
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0) return -1;
    const char *name = grantpt(master) == 0 && unlockpt(master) == 0 ? ptsname(master) : NULL;
    if (name == NULL || strlen(name) >= path_size || fcntl(master, F_SETFD, FD_CLOEXEC) != 0) {
        close(master);
        return -1;
    }
    strcpy(path, name);
    return master;
}

int terminal_begin_session(posix_spawnattr_t *attributes) {
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(attributes, &none);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
}

int terminal_begin_in_folder(posix_spawn_file_actions_t *actions, const char *folder) {
    return posix_spawn_file_actions_addchdir_np(actions, folder);
}

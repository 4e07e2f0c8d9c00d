#define _GNU_SOURCE
#include "CTestKit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

int ctk_exchange(const char *one, const char *other) {
    return renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0 ? 0 : errno;
}

void ctk_access_files_as(unsigned int user) {
    setfsuid(user);
}

int ctk_open_unnamed(const char *directory, unsigned int mode) {
    int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    return fd >= 0 ? fd : -errno;
}

int ctk_link_descriptor(int fd, const char *path) {
    char name[64];
    // AT_EMPTY_PATH would need CAP_DAC_READ_SEARCH.
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

void ctk_become_subreaper(void) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int ctk_unshare_mounts(void) {
    if (unshare(CLONE_FS | CLONE_NEWNS) != 0) return errno;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 ? 0 : errno;
}

int ctk_mount(const char *type, const char *directory, const char *options) {
    return mount("none", directory, type, 0, options) == 0 ? 0 : errno;
}

void ctk_unmount(const char *directory) {
    umount2(directory, MNT_DETACH);
}

int ctk_read_content(const char *path, struct ctk_content *content) {
    // O_NONBLOCK: opening a pipe without a writer must not block.
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return errno;
    content->size = 0;
    content->sum = 0xcbf29ce484222325;
    static _Thread_local unsigned char buffer[1 << 16];
    int error = 0;
    for (;;) {
        ssize_t count = read(file, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) error = errno;
        if (count <= 0) break;
        for (ssize_t index = 0; index < count; index++) {
            content->sum = (content->sum ^ buffer[index]) * 0x100000001b3;
        }
        content->size += (uint64_t)count;
    }
    close(file);
    return error;
}

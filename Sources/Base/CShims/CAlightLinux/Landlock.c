#define _GNU_SOURCE
#include "CAlightLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// On many systems, the kernel headers are older than the kernel.
enum { CREATE_RULESET = 444, ADD_RULE = 445 };
enum { ASK_VERSION = 1, PATH_BENEATH = 1 };
enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    REMOVE_DIR = 1 << 4,
    REMOVE_FILE = 1 << 5,
    MAKE_CHAR = 1 << 6,
    MAKE_DIR = 1 << 7,
    MAKE_REG = 1 << 8,
    MAKE_SOCK = 1 << 9,
    MAKE_FIFO = 1 << 10,
    MAKE_BLOCK = 1 << 11,
    MAKE_SYM = 1 << 12,
    REFER = 1 << 13,
    TRUNCATE = 1 << 14,
    IOCTL_DEV = 1 << 15,
    ALL = (1 << 16) - 1,
    // The rights that apply to anything other than a directory.
    OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV,
    READING = READ_FILE | READ_DIR,
    // All rights except for devices: a process that can create them could reach anything.
    WRITING = ALL & ~(EXECUTE | MAKE_CHAR | MAKE_BLOCK),
};
enum { BIND_TCP = 1, CONNECT_TCP = 2 };
enum { SCOPE_ABSTRACT_SOCKETS = 1, SCOPE_SIGNALS = 2 };

struct ruleset {
    uint64_t files, network, scoped;
};

struct path_beneath {
    uint64_t access;
    int32_t parent;
} __attribute__((packed));

int cal_landlock_version(void) {
    long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    return version >= 0 ? (int)version : -errno;
}

// Returns the rights that the running kernel handles.
static uint64_t handled(int version) {
    uint64_t files = ALL;
    if (version < 2) files &= ~(uint64_t)REFER;
    if (version < 3) files &= ~(uint64_t)TRUNCATE;
    if (version < 5) files &= ~(uint64_t)IOCTL_DEV;
    return files;
}

int cal_make_ruleset(int has_network) {
    int version = cal_landlock_version();
    if (version < 1) return version < 0 ? version : -ENOSYS;
    struct ruleset ruleset = {.files = handled(version)};
    // A second barrier: a socket received from another process passes the filter of socket(2).
    if (version >= 4 && !has_network) ruleset.network = BIND_TCP | CONNECT_TCP;
    if (version >= 6) ruleset.scoped = SCOPE_SIGNALS | (has_network ? 0 : SCOPE_ABSTRACT_SOCKETS);
    size_t size = version >= 6 ? sizeof ruleset : version >= 4 ? 16 : 8;
    // execve(2) closes the descriptor.
    int made = (int)syscall(CREATE_RULESET, &ruleset, size, 0);
    return made >= 0 ? made : -errno;
}

int cal_allow_access(int ruleset, int file, unsigned int access) {
    struct path_beneath rule = {.parent = file};
    struct stat status;
    if (fstat(file, &status) != 0) return errno;
    if (access & CAL_ACCESS_READ) rule.access |= READING;
    if (access & CAL_ACCESS_EXECUTE) rule.access |= EXECUTE;
    if (access & CAL_ACCESS_WRITE) rule.access |= WRITING;
    rule.access &= handled(cal_landlock_version());
    if (!S_ISDIR(status.st_mode)) rule.access &= OF_FILES;
    return rule.access == 0 || syscall(ADD_RULE, ruleset, PATH_BENEATH, &rule, 0) == 0 ? 0 : errno;
}

// The sandbox: which files a program can reach, by Landlock, and that it has no network, by seccomp.
//
// Landlock alone can't shut off the network: it knows TCP from ABI 4 on and UDP
// not at all. A network namespace needs root, or user namespaces, which many
// systems forbid. So socket(2) is refused, whoever asks and on whatever kernel.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch.h"

// MARK: - Files

// The kernel's own header is older than the kernel on many systems.
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };
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
    /// What can be asked of something that is no folder.
    OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV,
    READING = READ_FILE | READ_DIR,
    /// All but devices: who makes those could reach anything.
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

/// What the kernel of this ruleset handles.
static uint64_t handled;

static bool add(int ruleset, int place, uint64_t access, bool is_folder) {
    struct path_beneath rule = {.access = access & handled, .parent = place};
    if (!is_folder) rule.access &= OF_FILES;
    return rule.access == 0 || syscall(ADD_RULE, ruleset, PATH_BENEATH, &rule, 0) == 0;
}

static void add_grant(int ruleset, const struct grant *grant) {
    int follow = grant->access & GRANT_NO_FOLLOW ? O_NOFOLLOW : 0;
    int place = open(grant->path, O_PATH | O_CLOEXEC | follow);
    struct stat status;
    if (place < 0 || fstat(place, &status) != 0) {
        if (grant->access & GRANT_IF_THERE) return;
        refuse("cannot add '%s' to its sandbox: %s", grant->path, strerror(errno));
    }
    uint64_t access = 0;
    if (grant->access & GRANT_READ) access |= READING;
    if (grant->access & GRANT_EXECUTE) access |= EXECUTE;
    if (grant->access & GRANT_WRITE) access |= WRITING;
    bool is_added = add(ruleset, place, access, S_ISDIR(status.st_mode));
    if (!is_added && !(grant->access & GRANT_IF_THERE)) {
        refuse("cannot add '%s' to its sandbox: %s", grant->path, strerror(errno));
    }
    close(place);
}

int make_ruleset(const struct plan *plan) {
    if (!(plan->flags & FLAG_FILES)) return -1;
    long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    if (version < 1) {
        if (plan->flags & FLAG_IF_POSSIBLE) return -1;
        refuse("cannot confine it to the files of 'sandbox': Landlock: %s", strerror(errno));
    }
    struct ruleset ruleset = {.files = ALL};
    if (version < 2) ruleset.files &= ~(uint64_t)REFER;
    if (version < 3) ruleset.files &= ~(uint64_t)TRUNCATE;
    if (version < 5) ruleset.files &= ~(uint64_t)IOCTL_DEV;
    // A second lock: a socket that another process hands over passes the filter of socket(2).
    bool has_network = !(plan->flags & FLAG_NO_NETWORK);
    if (version >= 4 && !has_network) ruleset.network = BIND_TCP | CONNECT_TCP;
    if (version >= 6) ruleset.scoped = SCOPE_SIGNALS | (has_network ? 0 : SCOPE_ABSTRACT_SOCKETS);
    size_t size = version >= 6 ? sizeof ruleset : version >= 4 ? 16 : 8;
    int made = (int)syscall(CREATE_RULESET, &ruleset, size, 0);
    if (made < 0) refuse("cannot confine it to the files of 'sandbox': %s", strerror(errno));
    fcntl(made, F_SETFD, FD_CLOEXEC);
    handled = ruleset.files;
    for (uint32_t index = 0; index < plan->grant_count; index++) add_grant(made, &plan->grants[index]);
    return made;
}

bool grant_own_process(int ruleset) {
    int place = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (place < 0) return true;
    bool is_added = add(ruleset, place, READING, true);
    close(place);
    return is_added;
}

bool enter_ruleset(int ruleset) { return syscall(RESTRICT_SELF, ruleset, 0) == 0; }

// MARK: - Network

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, member))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
/// The next instruction stands if the value is this one; else it is left out.
#define IF(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1)
#define REFUSE_SOCKET (SECCOMP_RET_ERRNO | EAFNOSUPPORT)
/// io_uring makes sockets without socket(2).
#define REFUSE_RING (SECCOMP_RET_ERRNO | ENOSYS)
enum { IO_URING_SETUP = 425 };

// Jumps of the filter are counted in instructions; the low half of an argument comes first on these processors.
#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
/// Calls by the numbers of 32 bits, which the same program may use.
#define OTHER_CALLS \
    IF(102 /* socketcall */), RETURN(REFUSE_SOCKET), IF(359 /* socket */), RETURN(REFUSE_SOCKET), \
    IF(IO_URING_SETUP), RETURN(REFUSE_RING), RETURN(SECCOMP_RET_ALLOW)
enum { OTHER_COUNT = 7, NUMBER_MASK = ~0x40000000 };
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#define OTHER_CALLS \
    IF(281 /* socket */), RETURN(REFUSE_SOCKET), IF(IO_URING_SETUP), RETURN(REFUSE_RING), RETURN(SECCOMP_RET_ALLOW)
enum { OTHER_COUNT = 5, NUMBER_MASK = ~0 };
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE AUDIT_ARCH_RISCV64
#define OTHER_CALLS RETURN(SECCOMP_RET_ERRNO | ENOSYS)
enum { OTHER_COUNT = 1, NUMBER_MASK = ~0 };
#endif

bool can_shut_off_network(void) {
#ifdef NATIVE
    return true;
#else
    return false;
#endif
}

bool shut_off_network(void) {
#ifdef NATIVE
    static struct sock_filter filter[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1 + OTHER_COUNT, 0),
        LOAD(nr),
        OTHER_CALLS,
        LOAD(nr),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (uint32_t)NUMBER_MASK),
        IF(IO_URING_SETUP),
        RETURN(REFUSE_RING),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
        RETURN(SECCOMP_RET_ALLOW),
        LOAD(args[0]),
        IF(AF_UNIX),
        RETURN(SECCOMP_RET_ALLOW),
        RETURN(REFUSE_SOCKET),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
#else
    errno = ENOSYS;
    return false;
#endif
}

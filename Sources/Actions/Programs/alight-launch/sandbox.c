// The sandbox: Landlock limits the files that a program can access, and seccomp shuts off the network.
//
// Landlock alone cannot shut off the network: it supports TCP from ABI 4 on, and not UDP. A network namespace needs
// root, or user namespaces, which many systems forbid. So socket(2) is refused, for every user and on every kernel.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch.h"

// MARK: - Files

// The kernel's own header is older than the kernel on many systems.
enum { ADD_RULE = 445, RESTRICT_SELF = 446 };
enum { PATH_BENEATH = 1 };
enum { READ_FILE = 1 << 2, READ_DIR = 1 << 3 };

bool grant_own_process(int ruleset) {
    int directory = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return true;
    struct {
        uint64_t access;
        int32_t parent;
    } __attribute__((packed)) rule = {READ_FILE | READ_DIR, directory};
    bool is_added = syscall(ADD_RULE, ruleset, PATH_BENEATH, &rule, 0) == 0;
    close(directory);
    return is_added;
}

bool enter_ruleset(int ruleset) { return syscall(RESTRICT_SELF, ruleset, 0) == 0; }

// MARK: - Network

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, member))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
/// Executes the next instruction if the value is equal, otherwise skips it.
#define IF(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1)
#define REFUSE_SOCKET (SECCOMP_RET_ERRNO | EAFNOSUPPORT)
/// io_uring creates sockets without socket(2).
#define REFUSE_RING (SECCOMP_RET_ERRNO | ENOSYS)
enum { IO_URING_SETUP = 425 };

// Jumps of the filter are counted in instructions; the low half of an argument comes first on these processors.
#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
/// The 32-bit system call numbers, which the same program may use.
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

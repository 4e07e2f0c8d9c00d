#define _GNU_SOURCE
#include "CAlightLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

void cal_keep_heap_small(void) {
#ifdef __GLIBC__
    // By default, glibc raises the threshold for separate blocks when the first large block is freed. Short-lived
    // tables would then leave holes in the heap.
    mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    mallopt(M_ARENA_MAX, 2);
#endif
}

static int fill(int directory, const char *path, int flags, struct cal_stat *out) {
    struct statx sx;
    if (statx(directory, path, flags, STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID, &sx) != 0) return errno;
    memset(out, 0, sizeof *out);
    out->device_major = sx.stx_dev_major;
    out->device_minor = sx.stx_dev_minor;
    out->inode = sx.stx_ino;
    out->size = sx.stx_size;
    out->mode = sx.stx_mode;
    out->uid = sx.stx_uid;
    out->gid = sx.stx_gid;
    out->nlink = sx.stx_nlink;
    if (sx.stx_mask & STATX_MNT_ID) out->mount = sx.stx_mnt_id;
    out->mtime_seconds = sx.stx_mtime.tv_sec;
    out->mtime_nanoseconds = sx.stx_mtime.tv_nsec;
    out->ctime_seconds = sx.stx_ctime.tv_sec;
    out->ctime_nanoseconds = sx.stx_ctime.tv_nsec;
    if (sx.stx_mask & STATX_BTIME) {
        out->has_btime = 1;
        out->btime_seconds = sx.stx_btime.tv_sec;
        out->btime_nanoseconds = sx.stx_btime.tv_nsec;
    }
    return 0;
}

int cal_stat_entry(int directory, const char *name, int follow, struct cal_stat *out) {
    return fill(directory, name, AT_NO_AUTOMOUNT | (follow ? 0 : AT_SYMLINK_NOFOLLOW), out);
}

int cal_stat_descriptor(int fd, struct cal_stat *out) { return fill(fd, "", AT_EMPTY_PATH, out); }

int64_t cal_read_entries(int directory, void *buffer, size_t size) {
    long count = syscall(SYS_getdents64, directory, buffer, size);
    return count >= 0 ? count : -errno;
}

int cal_file_system(int fd, uint64_t *type) {
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0) return errno;
    // The field is signed on some machines, and some magic numbers set bit 31.
    *type = (uint32_t)fs.f_type;
    return 0;
}

static int open_to_probe(int directory, const char *path) {
    return openat(directory, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
}

// The kernel reports a close a few microseconds before it takes effect. With this many tries, a file that another
// processor is closing is closed by the last one.
enum { tries = 16 };

static int acquire_lease(int fd) {
    for (int round = 1;; round++) {
        if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) return 0;
        if (errno != EAGAIN || round == tries) return errno;
    }
}

int cal_probe_entry_writers(int directory, const char *name) {
    int fd = open_to_probe(directory, name);
    if (fd < 0) return errno;
    // A writer that opens the file while the lease is held makes the kernel signal the holder, and SIGIO would
    // terminate the program. SIGURG is ignored by default.
    int result = fcntl(fd, F_SETSIG, SIGURG) == 0 ? acquire_lease(fd) : errno;
    // Closing the file releases the lease.
    close(fd);
    return result;
}

int cal_may_lease_any_file(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    return syscall(SYS_capget, &header, sets) == 0 && (sets[0].effective & 1u << CAP_LEASE) != 0;
}

int cal_probe_locks(int directory, const char *name) {
    int fd = open_to_probe(directory, name);
    if (fd < 0) return errno;
    int result = 0;
    struct stat status;
    // A query for a read lock finds the write locks of fcntl(2) and acquires none.
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (fstat(fd, &status) != 0) {
        result = errno;
    } else if (!S_ISREG(status.st_mode)) {
        result = EINVAL;
    } else if (fcntl(fd, F_OFD_GETLK, &lock) != 0) {
        result = errno;
    } else if (lock.l_type != F_UNLCK) {
        result = EAGAIN;
    } else if (flock(fd, LOCK_SH | LOCK_NB) != 0) {
        result = errno;
    } else {
        flock(fd, LOCK_UN);
    }
    close(fd);
    return result;
}

int64_t cal_read_attribute(const char *path, const char *name, void *value, size_t capacity) {
    ssize_t length = lgetxattr(path, name, value, capacity);
    return length >= 0 ? length : -errno;
}

int cal_remove_open_attribute(int fd, const char *name) { return fremovexattr(fd, name) == 0 ? 0 : errno; }

int cal_open_directory(int directory, const char *path) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    struct open_how how = {.flags = flags, .resolve = RESOLVE_NO_SYMLINKS};
    int fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
    // Kernels before 5.6 lack the call, and old container filters refuse it.
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) fd = openat(directory, path, flags);
    return fd >= 0 ? fd : -errno;
}

int cal_pipe(int fds[2]) { return pipe2(fds, O_CLOEXEC) == 0 ? 0 : errno; }

int cal_socket_pair(int fds[2], int seconds) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) return errno;
    struct timeval limit = {.tv_sec = seconds};
    setsockopt(fds[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return 0;
}

int cal_send_with_descriptors(
    int socket, const void *bytes, size_t size, const int *descriptors, size_t count, int waits) {
    enum { MOST = 8 };
    if (count > MOST) return EINVAL;
    union {
        char bytes[CMSG_SPACE(MOST * sizeof(int))];
        struct cmsghdr alignment;
    } control;
    memset(&control, 0, sizeof control);
    const char *at = bytes;
    while (size > 0) {
        struct iovec place = {(void *)at, size};
        struct msghdr message = {.msg_iov = &place, .msg_iovlen = 1};
        if (count > 0) {
            message.msg_control = control.bytes;
            message.msg_controllen = CMSG_SPACE(count * sizeof(int));
            struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
            rights->cmsg_level = SOL_SOCKET;
            rights->cmsg_type = SCM_RIGHTS;
            rights->cmsg_len = CMSG_LEN(count * sizeof(int));
            memcpy(CMSG_DATA(rights), descriptors, count * sizeof(int));
        }
        ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL | (waits ? 0 : MSG_DONTWAIT));
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return errno;
        // The descriptors go with the first byte.
        count = 0;
        at += sent;
        size -= (size_t)sent;
    }
    return 0;
}

int cal_receive_with_descriptor(int socket, void *bytes, size_t size, int *descriptor) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr alignment;
    } control;
    struct iovec place = {bytes, size};
    struct msghdr message = {
        .msg_iov = &place, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes,
    };
    ssize_t count;
    do count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    while (count < 0 && errno == EINTR);
    *descriptor = -1;
    struct cmsghdr *rights = count > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (rights != NULL && rights->cmsg_type == SCM_RIGHTS) memcpy(descriptor, CMSG_DATA(rights), sizeof *descriptor);
    if (count == (ssize_t)size) return 0;
    return count < 0 ? errno : EPIPE;
}

int cal_send_byte(int socket, uint8_t byte) {
    return send(socket, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 0 : errno;
}

int64_t cal_receive(int socket, void *buffer, size_t size) {
    ssize_t count = recv(socket, buffer, size, MSG_DONTWAIT);
    return count >= 0 ? count : -errno;
}

int cal_has_ended(int socket) {
    char byte;
    ssize_t count = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

uint32_t *cal_make_counters(int *fd) {
    // With `vm.memfd_noexec` set to 2, executable memory is refused. Kernels before 6.3 do not know the flag.
    *fd = memfd_create("alight-counters", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (*fd < 0 && errno == EINVAL) *fd = memfd_create("alight-counters", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0) return NULL;
    const size_t size = CAL_COUNTERS * sizeof(uint32_t);
    void *memory = MAP_FAILED;
    // Without the seals, a process that reaches the memory through /proc could truncate it, and SIGBUS would kill its
    // next reader.
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (ftruncate(*fd, size) == 0 && fcntl(*fd, F_ADD_SEALS, seals) == 0) {
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    }
    if (memory != MAP_FAILED) return memory;
    int error = errno;
    close(*fd);
    errno = error;
    return NULL;
}

uint32_t cal_read_counter(const uint32_t *counter) { return __atomic_load_n(counter, __ATOMIC_ACQUIRE); }

void cal_drop_counters(uint32_t *counters) { munmap(counters, CAL_COUNTERS * sizeof(uint32_t)); }

int cal_signal_child(int pid, int signal) {
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) return errno;
    // waitid(2) fails for another process with a reused id, because that process is not a child of this one.
    siginfo_t end;
    bool is_sent = waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED | WNOHANG | WNOWAIT) == 0
        && syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0;
    int error = is_sent ? 0 : errno;
    close(pidfd);
    return error;
}

int cal_eventfd(void) {
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return fd >= 0 ? fd : -errno;
}

int cal_accept(int socket) {
    int descriptor = accept4(socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return descriptor >= 0 ? descriptor : -errno;
}

int cal_peer_user(int socket, uint32_t *user) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return errno;
    *user = peer.uid;
    return 0;
}

int cal_clone(int source, int destination) { return ioctl(destination, FICLONE, source) == 0 ? 0 : errno; }

int cal_poll(struct pollfd *fds, unsigned long count, int64_t nanoseconds) {
    struct timespec limit = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    int ready = ppoll(fds, count, nanoseconds < 0 ? NULL : &limit, NULL);
    return ready >= 0 ? ready : -errno;
}

// The states of the word that a thread sleeps on.
enum { AWAKE, SIGNALLED, ASLEEP };

void cal_signal(uint32_t *word) {
    if (__atomic_exchange_n(word, SIGNALLED, __ATOMIC_ACQ_REL) == ASLEEP)
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void cal_sleep(uint32_t *word, int64_t nanoseconds) {
    struct timespec limit = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    uint32_t state = AWAKE;
    if (__atomic_compare_exchange_n(word, &state, ASLEEP, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, ASLEEP, nanoseconds < 0 ? NULL : &limit, NULL, 0);
    // The sleeper sees the changes of a signal, because it checks after this.
    __atomic_exchange_n(word, AWAKE, __ATOMIC_ACQ_REL);
}

void cal_name_thread(const char *name) {
    char kept[16];
    snprintf(kept, sizeof kept, "%s", name);
    pthread_setname_np(pthread_self(), kept);
}

int cal_hurry_thread(void) { return setpriority(PRIO_PROCESS, 0, -15) == 0 ? 0 : errno; }

int cal_can_filter_calls(void) {
#if defined(__x86_64__) || defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)
    uint32_t action = SECCOMP_RET_ERRNO;
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
#else
    return 0;
#endif
}

int cal_become_subreaper(void) { return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 ? 0 : errno; }

int cal_raise_descriptor_limit(uint64_t *former) {
    struct rlimit limit;
    *former = 0;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return errno;
    *former = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? 0 : errno;
}

int cal_make_epoll(void) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    return epoll >= 0 ? epoll : -errno;
}

int cal_watch(int epoll, int fd, enum cal_readiness what, uint64_t key) {
    struct epoll_event event = {
        .events = EPOLLET | (what == CAL_WRITABLE ? EPOLLOUT : EPOLLIN), .data.u64 = key,
    };
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

int cal_await(int epoll, uint64_t *keys, int count) {
    struct epoll_event events[64];
    int ready = epoll_wait(epoll, events, count < 64 ? count : 64, -1);
    for (int index = 0; index < ready; index++) keys[index] = events[index].data.u64;
    return ready >= 0 ? ready : 0;
}

int cal_make_timer(void) {
    int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return timer >= 0 ? timer : -errno;
}

int cal_set_timer(int timer, int64_t nanoseconds) {
    // A time of zero would stop it.
    int64_t time = nanoseconds > 0 ? nanoseconds : 1;
    struct itimerspec limit = {.it_value = {.tv_sec = time / 1000000000, .tv_nsec = time % 1000000000}};
    return timerfd_settime(timer, 0, &limit, NULL) == 0 ? 0 : errno;
}

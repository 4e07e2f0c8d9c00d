// The spawner, which forks launchers on request.
//
// Foundation.Process starts it. The launchers share its memory, and need no Foundation, which crashes in a process that
// has more than a thousand descriptors.
//
// Standard input is a stream socket to Alight. A request consists of two 32-bit numbers: the kind, and the number of
// the launcher's counter. The reply is the process id, or a negative errno, and comes with the socket to the new process
// (SCM_RIGHTS). That is a child of Alight and not of this process, so this one may be killed at any time.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "launch.h"

/// SPAWN_SPAWNER: another spawner.
enum kind { SPAWN_LAUNCHER, SPAWN_SPAWNER };

/// How long Alight may be blocked by a launcher that does not read.
enum { MOST_SECONDS = 10 };

static void close_others(void) {
    if (close_range(3, ~0U, 0) == 0) return;
    // Before Linux 5.9. Alight starts this process while it has no descriptors above this number.
    for (int descriptor = 3; descriptor < 1024; descriptor++) close(descriptor);
}

static void reply(int32_t process, int socket) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr alignment;
    } control = {.bytes = {0}};
    struct iovec bytes = {&process, sizeof process};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (process > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(rights), &socket, sizeof socket);
    }
    if (sendmsg(CONTROL, &message, MSG_NOSIGNAL) < 0) _exit(0);
}

uint32_t spawn_launchers(void) {
    // Signals for all processes of a service or a terminal are orders for launchers; they do not end this process.
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (;;) {
        struct {
            uint32_t kind, counter;
        } request;
        ssize_t got = recv(CONTROL, &request, sizeof request, MSG_WAITALL);
        if (got < 0 && errno == EINTR) continue;
        // Alight has exited.
        if (got != sizeof request) _exit(0);
        int sockets[2] = {-1, -1};
        long process = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets);
        // By raw system call, since fork(2) has no way to make it a child of this process's parent.
        if (process == 0) process = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (process < 0) process = -errno;
        if (process == 0) {
            dup2(sockets[1], CONTROL);
            close_others();
            if (request.kind == SPAWN_SPAWNER) continue;
            return request.counter;
        }
        struct timeval limit = {.tv_sec = MOST_SECONDS};
        setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        reply((int32_t)process, sockets[0]);
        close(sockets[0]);
        close(sockets[1]);
    }
}

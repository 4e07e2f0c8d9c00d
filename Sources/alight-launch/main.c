// alight-launch stands between Alight and a program.
//
// It runs one program after another, each by a plan that holds what
// Foundation.Process can't pass on (exact bytes, limits, a session of its own),
// and answers for everything that descends from it: it is the subreaper, so
// that no child, however often it forked or called setsid, outlives the run.
// Between two runs it waits; nothing of the one reaches the other, for what a
// plan changes is changed in the child.
//
// Standard input is a stream socket to Alight. From there come:
//   a plan, with the program's three standard streams (SCM_RIGHTS);
//   'T', which asks the program to end and kills it after the grace, and kills it
//   at once the second time;  'K', which kills at once; both are nothing when the
//   program has ended.
// SIGTERM, SIGINT and SIGHUP do the same. The end of the socket is the end of Alight: it kills at once.
// Back goes for each plan that the program runs, and how that ended, or why it could not be started: as numbers of
// 32 bits which of these (enum news), the wait status or else whether the launcher stays, and the length of the
// words that follow.
//
// A plan, all numbers 32 bits in the machine's order unless said otherwise:
//   "ALIGHTL3", size of what follows; flags (launch.h), grace in ms,
//   linger in ms, descriptor limit (64 bits, 0 = leave); umask,
//   niceness, I/O priority (0 = leave); limits (64 bits each, all bits set =
//   leave): seconds of processor time, bytes of memory, descriptors, processes
//   of the user, bytes of a file; user, group, the user's name for messages,
//   count and supplementary groups; count and grants, each access and path;
//   working folder, executable; count and arguments; count and environment
//   ("NAME=value").
// A string is its length, its bytes and a NUL. Sources/Handling/External/LaunchHeader.swift writes it.
//
// In the child it goes in this order: session, what needs root (niceness,
// limits), user, working folder, no new privileges, sandbox, execve.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

volatile struct failure failure;

void tell(enum news news, int status, const char *words) {
    struct {
        uint32_t news;
        int32_t status;
        uint32_t length;
        char words[16384];
    } message = {.news = news, .status = status};
    size_t length = strlen(words);
    if (length > sizeof message.words) length = sizeof message.words;
    message.length = (uint32_t)length;
    memcpy(message.words, words, length);
    size_t size = offsetof(typeof(message), words) + length;
    // While a program runs, its end and that of all that it started come first.
    if (send(CONTROL, &message, size, MSG_NOSIGNAL) != (ssize_t)size && news != STARTED) _exit(1);
}

void fail(const char *message) {
    // Who has started it by hand reads standard error.
    dprintf(STDERR_FILENO, "alight-launch: %s\n", message);
    tell(NO_RESOURCES, LEAVES, message);
    _exit(1);
}

void refuse(const char *format, ...) {
    char text[8192];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    tell(CANNOT_START, LEAVES, text);
    _exit(1);
}

static pid_t start(const struct plan *plan) {
    pid_t launcher = getpid();
    sigset_t none;
    sigemptyset(&none);
    // Not fork: the child shares this memory, so it can say where it failed without a pipe, which would not
    // outlast close_range and would need room in the program's own limits.
    pid_t program = vfork();
    if (program != 0) return program;
    // Only system calls from here on.
    give_back_signals();
    if (setsid() < 0) {
        failure.error = errno;
        failure.step = STEP_SESSION;
        _exit(1);
    }
    // If the launcher itself is killed, at least the program goes with it.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(1);
    // They are all above 2, where the launcher has descriptors of its own.
    for (int index = 0; index < 3; index++) dup2(plan->streams[index], index);
    if (confine(plan)) {
        // Foundation's own socket must not live on in the program.
        close_range(3, ~0U, 0);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(plan->executable, plan->arguments, plan->environment);
        failure.error = errno;
        failure.step = STEP_EXECUTABLE;
    }
    _exit(1);
}

/// Starts the program; 0 when it can't be, which has been told then.
static pid_t start_patiently(const struct plan *plan) {
    for (int attempt = 1;; attempt++) {
        failure.step = STEP_NONE;
        pid_t program = start(plan);
        if (program < 0) fail("cannot fork: too many processes, or no memory");
        if (failure.step == STEP_NONE) return program;
        while (waitpid(program, NULL, 0) < 0 && errno == EINTR) continue;
        // Somebody still has the file open for writing, if only a process about to call execve itself.
        if (failure.error != ETXTBSY || attempt == 50) {
            tell_failure(plan);
            return 0;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    }
}

int main(void) {
    take_signals();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) fail("cannot become a subreaper");
    // The folder that it was started in can be unmounted while it waits.
    if (chdir("/") != 0) fail("cannot enter '/'");
    for (;;) {
        struct plan plan = next_plan();
        drop_signals();
        umask((mode_t)plan.umask);
        prepare_confinement(&plan);
        pid_t program = start_patiently(&plan);
        // The pipes are the program's now: who reads them sees the end when the last writer is gone.
        close_streams(&plan);
        if (program > 0) {
            tell(STARTED, 0, "");
            tell(ENDED, wait_for_all(program, &plan), "");
        }
        free_plan(&plan);
    }
}

// alight-launch stands between Alight and a program.
//
// It takes from standard input what Foundation.Process can't pass on (exact
// bytes, limits, a session of its own), leaves the rest of standard input to the
// program, and answers for everything that descends from it: it is the
// subreaper, so that no child, however often it forked or called setsid,
// outlives the launcher. It ends as the program did.
//
// SIGTERM asks the program to end and kills it after the grace. A second
// SIGTERM, SIGINT or SIGHUP kills at once; SIGHUP is also what the kernel sends
// when Alight dies.
//
// The header, all numbers 32 bits in the machine's order unless said otherwise:
//   "ALIGHTL2", size of what follows; flags (launch.h), Alight's process id,
//   grace in ms, linger in ms, descriptor limit (64 bits, 0 = leave); umask,
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
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

volatile struct failure failure;

void fail(const char *message) {
    dprintf(STDERR_FILENO, "alight-launch: %s\n", message);
    _exit(NO_RESOURCES);
}

void refuse(const char *format, ...) {
    char text[8192];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    dprintf(STDERR_FILENO, "alight-launch: %s\n", text);
    _exit(CANNOT_START);
}

static pid_t start(const struct plan *plan) {
    pid_t launcher = getpid();
    sigset_t none;
    sigemptyset(&none);
    // Not fork: the child shares this memory, so it can say where it failed without a pipe, which would not
    // outlast close_range and would need room in the program's own limits.
    pid_t program = vfork();
    if (program != 0) return program;
    // Only system calls from here on. Dispositions are already the default ones.
    if (setsid() < 0) {
        failure.error = errno;
        failure.step = STEP_SESSION;
        _exit(CANNOT_START);
    }
    // If the launcher itself is killed, at least the program goes with it.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(CANNOT_START);
    if (confine(plan)) {
        // Foundation's own socket must not live on in the program.
        close_range(3, ~0U, 0);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(plan->executable, plan->arguments, plan->environment);
        failure.error = errno;
        failure.step = STEP_EXECUTABLE;
    }
    _exit(CANNOT_START);
}

static void end_as(int status) {
    if (WIFSIGNALED(status)) {
        // The program may have left a core file; one of the launcher helps nobody.
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        prctl(PR_SET_DUMPABLE, 0);
        sigset_t only;
        sigemptyset(&only);
        sigaddset(&only, WTERMSIG(status));
        kill(getpid(), WTERMSIG(status));
        sigprocmask(SIG_UNBLOCK, &only, NULL);
        _exit(128 + WTERMSIG(status));
    }
    _exit(WEXITSTATUS(status));
}

int main(void) {
    block_signals();
    // Blocked signals wait even where the default is to ignore them, and the program inherits nothing odd.
    // By system call, because posix_spawn ignores two signals that the C library keeps for itself.
    static const uint64_t default_action[4];
    for (int number = 1; number < NSIG; number++) syscall(SYS_rt_sigaction, number, default_action, NULL, 8);
    // The death signal comes when the thread ends that started us; it waits for us all the time.
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    struct plan plan = read_plan();
    if ((uint32_t)getppid() != plan.parent) fail("alight has died");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) fail("cannot become a subreaper");
    umask((mode_t)plan.umask);
    prepare_confinement(&plan);

    pid_t program;
    for (int attempt = 1;; attempt++) {
        failure.step = STEP_NONE;
        program = start(&plan);
        if (program < 0) fail("cannot fork: too many processes, or no memory");
        if (failure.step == STEP_NONE) break;
        while (waitpid(program, NULL, 0) < 0 && errno == EINTR) continue;
        // Somebody still has the file open for writing, if only a process about to call execve itself.
        if (failure.error != ETXTBSY || attempt == 50) _exit(report_failure(&plan));
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    }
    // The pipes are the program's now: who reads them sees the end when the last writer is gone. So is what
    // else is open, as the ruleset.
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int descriptor = 0; descriptor <= 2; descriptor++) {
        if (nowhere < 0 || dup2(nowhere, descriptor) < 0) close(descriptor);
    }
    if (nowhere > 2) close(nowhere);
    end_as(wait_for_all(program, &plan));
}

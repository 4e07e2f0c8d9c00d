// alight-launch runs programs on behalf of Alight.
//
// It runs one program after another, each from a plan that contains what Foundation.Process cannot pass on (exact
// bytes, limits, a session of its own), and it is responsible for all descendants of the program: it is the subreaper,
// so no child outlives the run, however often it forked or called setsid. Between two runs a child waits for the next
// plan, and becomes its program. Nothing of one run affects another, because the child applies the plan.
//
// Standard input is a stream socket to Alight, which sends:
//   a plan, with descriptors (SCM_RIGHTS): the program's three standard streams, its working directory, and the
//   Landlock ruleset of its sandbox, if it has one. The sender has opened what the plan names, and nothing that other
//   users could replace is opened again;
//   'T', which asks the program to exit and kills it after the grace period; the second 'T' kills it at once;
//   'K', which kills it at once. Both are ignored when no program runs. SIGUSR1 follows each of them, since the launcher
//   is not woken by the socket, which its waiting child reads.
// SIGTERM acts as 'T', SIGINT and SIGHUP act as 'K'. The end of the socket means that Alight has exited, and kills the
// program at once.
// For each plan the launcher replies how the program exited, or why it could not be started. The reply consists of
// three 32-bit numbers and a message: the kind of result (enum result), the wait status or else whether the launcher
// continues, and the length of the message.
//
// Standard output is a memory file with 32-bit numbers, one of which counts the programs that this launcher has
// started. Counting wakes no process; Alight reads the number when a launcher has exited or does not respond. Once the
// file is mapped, the descriptor becomes a copy of standard error, because programs can open the descriptors of their
// parent.
//
// With the argument 'spawn' it is no launcher itself, but forks them (spawn.c).
//
// The format of a plan, with 32-bit numbers in native byte order unless noted otherwise:
//   "ALIGHTL6", size of the rest; flags (launch.h), grace in ms,
//   linger in ms, descriptor limit (64 bits, 0 = unchanged); umask,
//   niceness, I/O priority (0 = unchanged); limits (64 bits each, all bits set =
//   unchanged): seconds of processor time, bytes of memory, descriptors, processes
//   of the user, bytes of a file; user, group, the user's name for messages,
//   count and supplementary groups; working directory, executable; count and
//   arguments; count and environment ("NAME=value").
// A string is its length, its bytes and a NUL. Sources/Actions/Programs/Launching/LaunchPlan.swift writes it.
//
// The child applies a plan in this order: session, settings that need root (niceness, limits), user, working directory,
// sandbox, execve. Settings that are the same for all programs are made in the launcher and inherited: no new
// privileges, umask, the descriptor limit that Alight was started with.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

volatile struct failure failure;

void report(enum result result, int status, const char *text) {
    struct {
        uint32_t result;
        int32_t status;
        uint32_t length;
        char text[16384];
    } message = {.result = result, .status = status};
    size_t length = strlen(text);
    if (length > sizeof message.text) length = sizeof message.text;
    message.length = (uint32_t)length;
    memcpy(message.text, text, length);
    size_t size = offsetof(typeof(message), text) + length;
    if (send(CONTROL, &message, size, MSG_NOSIGNAL) != (ssize_t)size) _exit(1);
}

void fail(const char *message) {
    // For a user who runs it directly.
    dprintf(STDERR_FILENO, "alight-launch: %s\n", message);
    report(NO_RESOURCES, EXITS, message);
    _exit(1);
}

void refuse(const char *format, ...) {
    char text[8192];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    report(CANNOT_START, EXITS, text);
    _exit(1);
}

static pid_t launcher;
/// The counter for a launcher that was started directly, without shared memory.
static uint32_t unshared, *start_count = &unshared;

/// Starts a session for the future program, which is killed when the launcher dies.
static void start_session(void) {
    // If the launcher itself is killed, at least the program is killed with it.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(1);
    if (setsid() < 0) {
        failure.error = errno;
        failure.step = STEP_SESSION;
        _exit(1);
    }
    // The program starts with this mask. Until then, handlers make sure that a signal sent to all processes of this
    // name does not stay pending for the program.
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/// Becomes the program, by system calls alone; returns only on failure, with `failure` filled in.
static void become(const struct plan *plan) {
    // They are all above 2, because the launcher itself uses 0 to 2.
    for (int index = 0; index < STREAM_COUNT; index++) dup2(plan->received[index], index);
    if (!confine(plan)) return;
    for (int attempt = 1;; attempt++) {
        // Counted before execve, so that no program runs uncounted.
        __atomic_fetch_add(start_count, 1, __ATOMIC_RELEASE);
        execve(plan->executable, plan->arguments, plan->environment);
        failure.error = errno;
        __atomic_fetch_sub(start_count, 1, __ATOMIC_RELEASE);
        // Another process still has the file open for writing, even if it is only about to call execve itself.
        if (failure.error != ETXTBSY || attempt == 50) break;
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    }
    failure.step = STEP_EXECUTABLE;
}

/// The stage of the child that waits for a plan.
static volatile enum { WAITING, RECEIVING, STARTING } stage;
/// The plan that the child has received.
static struct plan plan;
/// Nonzero until the kernel stores 0 here, when the child no longer shares this memory.
static volatile pid_t sharing;

void record_plan(void) { stage = RECEIVING; }

bool is_waiting_for_plan(void) { return stage == WAITING; }

void await_program(void) {
    while (sharing != 0) syscall(SYS_futex, &sharing, FUTEX_WAIT, -1, NULL, NULL, 0);
}

const struct plan *current_plan(void) { return stage == STARTING && sharing == 0 ? &plan : NULL; }

/// Waits for a plan, and becomes its program; runs in the child, or in the launcher's own memory after vfork.
static int run_next_plan(void *unused) {
    (void)unused;
    start_session();
    if (stage == WAITING) plan = next_plan();
    prepare_confinement(&plan);
    stage = STARTING;
    become(&plan);
    _exit(1);
}

/// Creates a child that waits for the next plan.
///
/// It is created before a plan arrives, so that the plan does not have to wait: creating the child, with its session,
/// takes as long as everything else until the program starts. As after vfork, it shares the memory of this process, which
/// does nothing until the child has become the program or has exited. That, and not the start, is what wakes this
/// process: it has no copies of the descriptors that the child receives.
static pid_t create_child(void) {
    // The child needs another stack, because this function waits on the current one.
    static char stack[128 << 10] __attribute__((aligned(64)));
    sharing = -1;
    pid_t child = clone(
        run_next_plan, stack + sizeof stack, CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD, NULL, NULL, NULL, &sharing);
    if (child >= 0) return child;
    // Without such a child: first the plan, then a child.
    sharing = 0;
    plan = next_plan();
    child = vfork();
    if (child < 0) fail("cannot fork: too many processes, or no memory");
    if (child == 0) run_next_plan(NULL);
    for (int index = 0; index < DESCRIPTOR_COUNT; index++) {
        if (plan.received[index] >= 0) close(plan.received[index]);
    }
    return child;
}

/// Runs the next program, and reports how it ended.
static void run_program(void) {
    failure.step = STEP_NONE;
    stage = WAITING;
    uint32_t previous = __atomic_load_n(start_count, __ATOMIC_ACQUIRE);
    int status = wait_for_all(create_child());
    if (__atomic_load_n(start_count, __ATOMIC_ACQUIRE) != previous) {
        report(EXITED, status, "");
    } else if (stage == STARTING) {
        if (failure.step == STEP_NONE) report(NO_RESOURCES, CONTINUES, "its process was killed before it started");
        else report_failure(&plan);
    } else {
        if (failure.step != STEP_NONE) fail("cannot make a session");
        // The child has reported why there is no program, or Alight is gone.
        if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
        if (stage != WAITING) fail("it was killed while it read a plan");
        return;
    }
    // The next child inherits these settings.
    prepare_inheritance(&plan);
    free_plan(&plan);
}

int main(int count, char **arguments) {
    struct stat memory;
    if (fstat(COUNTERS, &memory) == 0 && memory.st_size > 0) {
        void *counters = mmap(NULL, (size_t)memory.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, COUNTERS, 0);
        if (counters != MAP_FAILED) start_count = counters;
    }
    // No program may reach the memory through /proc, and the descriptor number stays in use.
    dup2(STDERR_FILENO, COUNTERS);
    // The directory that it was started in may be unmounted while it waits.
    if (chdir("/") != 0) fail("cannot enter '/'");
    if (count > 1 && strcmp(arguments[1], "spawn") == 0) start_count += spawn_launchers();
    launcher = getpid();
    set_up_signals();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) fail("cannot become a subreaper");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("cannot give up new privileges");
    for (;;) run_program();
}

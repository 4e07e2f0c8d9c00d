// alight-launch stands between Alight and a program.
//
// It runs one program after another, each by a plan that holds what
// Foundation.Process can't pass on (exact bytes, limits, a session of its own),
// and answers for everything that descends from it: it is the subreaper, so
// that no child, however often it forked or called setsid, outlives the run.
// Between two runs a child waits for the next plan, and becomes its program; nothing
// of one run reaches another, for what a plan changes is changed in the child.
//
// Standard input is a stream socket to Alight. From there come:
//   a plan, with descriptors (SCM_RIGHTS): the program's three standard streams, its working folder, and the Landlock
//   ruleset of its sandbox, if it has one. Whoever has made the plan has opened what it names, and nothing is opened again
//   that others could replace;
//   'T', which asks the program to end and kills it after the grace, and kills it
//   at once the second time;  'K', which kills at once; both are nothing when the
//   program has ended.
// SIGTERM, SIGINT and SIGHUP do the same. The end of the socket is the end of Alight: it kills at once.
// Back goes for each plan how the program ended, or why it could not be started: as numbers of
// 32 bits which of these (enum news), the wait status or else whether the launcher stays, and the length of the
// words that follow.
//
// Standard output is a file in memory with a number of 32 bits, by which the programs are counted that were begun.
// Nobody is woken for that; Alight looks at it when a launcher is gone or says nothing. Once it is mapped, its place is
// taken by what standard error is: programs can open the descriptors of their parent.
//
// A plan, all numbers 32 bits in the machine's order unless said otherwise:
//   "ALIGHTL5", size of what follows; flags (launch.h), grace in ms,
//   linger in ms, descriptor limit (64 bits, 0 = leave); umask,
//   niceness, I/O priority (0 = leave); limits (64 bits each, all bits set =
//   leave): seconds of processor time, bytes of memory, descriptors, processes
//   of the user, bytes of a file; user, group, the user's name for messages,
//   count and supplementary groups; working folder, executable; count and
//   arguments; count and environment ("NAME=value").
// A string is its length, its bytes and a NUL. Sources/Actions/Programs/Launching/LaunchPlan.swift writes it.
//
// In the child it goes in this order: session, what needs root (niceness,
// limits), user, working folder, sandbox, execve. What is the same for all programs is the launcher's own, and
// inherited: no new privileges, umask, the limit of descriptors that Alight was started with.
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
#include <sys/syscall.h>
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
    if (send(CONTROL, &message, size, MSG_NOSIGNAL) != (ssize_t)size) _exit(1);
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

static pid_t launcher;
/// What is not shared when a person starts this program.
static uint32_t nobody_looks, *begun = &nobody_looks;

/// Begins what will be a program: in a session of its own, and with the launcher's end as its own.
static void begin_session(void) {
    // If the launcher itself is killed, at least the program goes with it.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(1);
    if (setsid() < 0) {
        failure.error = errno;
        failure.step = STEP_SESSION;
        _exit(1);
    }
    // As the program will have it. Until then handlers see to it that a signal to all of this name doesn't wait for it.
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/// Becomes the program, by system calls alone; returns when it can't, with `failure` filled in.
static void become(const struct plan *plan) {
    // They are all above 2, where the launcher has descriptors of its own.
    for (int index = 0; index < STREAM_COUNT; index++) dup2(plan->given[index], index);
    if (!confine(plan)) return;
    // Counted before, so that none runs that is not.
    __atomic_fetch_add(begun, 1, __ATOMIC_RELEASE);
    execve(plan->executable, plan->arguments, plan->environment);
    failure.error = errno;
    failure.step = STEP_EXECUTABLE;
    __atomic_fetch_sub(begun, 1, __ATOMIC_RELEASE);
}

/// Tries once more what a child has not been able to.
static pid_t start_again(const struct plan *plan) {
    failure.step = STEP_NONE;
    // Not fork: the child shares this memory, so it can say where it failed without a pipe, which would not
    // outlast close_range and would need room in the program's own limits.
    pid_t program = vfork();
    if (program < 0) fail("cannot fork: too many processes, or no memory");
    if (program != 0) return program;
    begin_session();
    become(plan);
    _exit(1);
}

static void reap(pid_t child, int *status) {
    while (waitpid(child, status, 0) < 0 && errno == EINTR) continue;
}

/// How many had begun when a child was made.
static uint32_t begun_before;
static uint32_t count_begun(void) { return __atomic_load_n(begun, __ATOMIC_ACQUIRE); }

/// What became of a start; 0 when the program can't be, which has been told then.
static pid_t started(pid_t program, const struct plan *plan) {
    for (int attempt = 1; failure.step != STEP_NONE || count_begun() == begun_before; attempt++) {
        reap(program, NULL);
        if (failure.step == STEP_NONE) {
            tell(NO_RESOURCES, STAYS, "its process was killed before it began");
            return 0;
        }
        // Somebody still has the file open for writing, if only a process about to call execve itself.
        if (failure.error != ETXTBSY || attempt == 50) {
            tell_failure(plan);
            return 0;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
        program = start_again(plan);
    }
    return program;
}

/// How far the child is that waits for a plan; one that has handed it over can't become the program itself.
static volatile enum { WAITING, TAKING, STARTING, HANDED_OVER } stage;
/// What it has taken.
static struct plan plan;
/// Its id, until the kernel puts 0 here when it no longer shares this memory.
static volatile pid_t sharing;

void note_plan(void) { stage = TAKING; }

/// Gives the child descriptors of its own; until then the launcher has each of them as well.
static bool part_descriptors(void) {
    // It closes none. What containers are not allowed is unshare(2), whatever it is called for.
    return close_range(~0U, ~0U, CLOSE_RANGE_UNSHARE) == 0 || unshare(CLONE_FILES) == 0;
}

/// Waits for a plan, and becomes its program: in the child. In this memory the launcher does nothing but sleep meanwhile.
static int take_plan(void *unused) {
    (void)unused;
    begin_session();
    plan = next_plan();
    prepare_confinement(&plan);
    if (!part_descriptors()) {
        stage = HANDED_OVER;
        _exit(0);
    }
    stage = STARTING;
    become(&plan);
    _exit(1);
}

/// Has a child wait for the next plan, and comes back when it is a program, or is gone; -1 if there can be no such child.
///
/// It is made before there is a plan, so that nobody waits for that: making it, with its session, takes as long as all the
/// rest until the program begins. As after vfork, this process does nothing until then, but it sleeps like one that is idle.
static pid_t await_program(void) {
    // It is no process's own stack that the child could run on while this function waits.
    static char stack[128 << 10] __attribute__((aligned(64)));
    failure.step = STEP_NONE;
    stage = WAITING;
    sharing = -1;
    int flags = CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID | SIGCHLD;
    pid_t child = clone(take_plan, stack + sizeof stack, flags, NULL, NULL, NULL, &sharing);
    if (child < 0) return -1;
    allow_early_signals();
    // The handlers let it go on by itself, so that errno, which is the child's as well, is not touched before the end.
    while (sharing != 0) syscall(SYS_futex, &sharing, FUTEX_WAIT, -1, NULL, NULL, 0);
    hold_signals();
    return child;
}

bool is_waiting_for_plan(void) { return stage == WAITING; }

/// Waits until there is a program that runs; 0 if its start failed, which has been told then.
static pid_t next_program(void) {
    for (;;) {
        drop_signals();
        begun_before = count_begun();
        pid_t child = await_program();
        if (child < 0) {
            // As without any of this: the plan first, and then a child.
            plan = next_plan();
            drop_signals();
            stage = HANDED_OVER;
        } else if (stage == HANDED_OVER) {
            reap(child, NULL);
        }
        if (stage == HANDED_OVER) {
            prepare_inheritance(&plan);
            prepare_confinement(&plan);
            return started(start_again(&plan), &plan);
        }
        if (stage == STARTING) {
            // What the next child will inherit.
            prepare_inheritance(&plan);
            return started(child, &plan);
        }
        int status = 0;
        reap(child, &status);
        if (failure.step != STEP_NONE) fail("cannot make a session");
        // It has said why there is no program, or nobody is left to be told.
        if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
        if (stage != WAITING) fail("it was killed while it read a plan");
    }
}

/// Has execve(2) close what programs must not have: Foundation's own socket, by which it knows that this one lives.
static void close_all_on_start(void) {
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
    // Before Linux 5.11. Alight has no descriptors above this number.
    for (int descriptor = 3; descriptor < 1024; descriptor++) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

int main(void) {
    launcher = getpid();
    void *counter = mmap(NULL, sizeof *begun, PROT_READ | PROT_WRITE, MAP_SHARED, COUNTER, 0);
    if (counter != MAP_FAILED) begun = counter;
    // No program shall reach it by /proc, and the descriptor stays taken.
    dup2(STDERR_FILENO, COUNTER);
    close_all_on_start();
    take_signals();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) fail("cannot become a subreaper");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("cannot give up new privileges");
    // The folder that it was started in can be unmounted while it waits.
    if (chdir("/") != 0) fail("cannot enter '/'");
    for (;;) {
        pid_t program = next_program();
        if (program > 0) {
            // Who feeds the program learns when it wants no more.
            close_given(&plan, 0);
            // Kept open, the others don't wake who reads them just before the end does.
            for (int index = 1; index < STREAM_COUNT && plan.flags & FLAG_SHOWS_CLOSING; index++) {
                close_given(&plan, index);
            }
            // A folder that is open can't be unmounted.
            close_given(&plan, FOLDER);
            close_given(&plan, RULESET);
            tell(ENDED, wait_for_all(program, &plan), "");
        }
        for (int index = 0; index < DESCRIPTOR_COUNT; index++) close_given(&plan, index);
        free_plan(&plan);
    }
}

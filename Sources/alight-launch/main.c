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
//   "ALIGHTL1", size of what follows; flags, Alight's process id, grace in ms,
//   linger in ms, descriptor limit (64 bits, 0 = leave); working folder,
//   executable; count and arguments; count and environment ("NAME=value").
// A string is its length, its bytes and a NUL. Sources/Handling/External/LaunchHeader.swift writes it.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAGIC_SIZE = 8, SIZE_MOST = 16 << 20 };
/// Not now, not this program, not there.
enum { NO_RESOURCES = 125, CANNOT_START = 126, NOT_FOUND = 127 };
enum { FLAG_NO_NEW_PRIVILEGES = 1 };

struct plan {
    uint32_t flags, parent, grace, linger;
    uint64_t descriptors;
    char *folder, *executable;
    char **arguments, **environment;
};

static void fail(const char *message) {
    dprintf(STDERR_FILENO, "alight-launch: %s\n", message);
    _exit(NO_RESOURCES);
}

// MARK: - The header

static void read_exactly(void *buffer, size_t count) {
    for (char *at = buffer; count > 0;) {
        ssize_t got = read(STDIN_FILENO, at, count);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) fail("standard input holds no complete header; alight starts this program, not a person");
        at += got;
        count -= (size_t)got;
    }
}

struct cursor {
    char *at, *end;
};

static void take(struct cursor *cursor, void *number, size_t size) {
    if ((size_t)(cursor->end - cursor->at) < size) fail("the header is cut off");
    memcpy(number, cursor->at, size);
    cursor->at += size;
}

static char *take_string(struct cursor *cursor) {
    uint32_t length;
    take(cursor, &length, sizeof length);
    if ((size_t)(cursor->end - cursor->at) <= length) fail("the header is cut off");
    char *string = cursor->at;
    if (memchr(string, 0, (size_t)length + 1) != string + length) fail("a string of the header holds a NUL");
    cursor->at += (size_t)length + 1;
    return string;
}

static char **take_strings(struct cursor *cursor) {
    uint32_t count;
    take(cursor, &count, sizeof count);
    if (count > (size_t)(cursor->end - cursor->at) / 5) fail("the header is cut off");
    char **strings = calloc((size_t)count + 1, sizeof *strings);
    if (strings == NULL) fail("out of memory");
    for (uint32_t index = 0; index < count; index++) strings[index] = take_string(cursor);
    return strings;
}

static struct plan read_plan(void) {
    struct {
        char magic[MAGIC_SIZE];
        uint32_t size;
    } start;
    read_exactly(&start, sizeof start);
    if (memcmp(start.magic, "ALIGHTL1", MAGIC_SIZE) != 0) fail("the header is of another version");
    if (start.size > SIZE_MOST) fail("the header is too large");
    char *body = malloc((size_t)start.size + 1);
    if (body == NULL) fail("out of memory");
    read_exactly(body, start.size);
    struct cursor cursor = {body, body + start.size};
    struct plan plan;
    take(&cursor, &plan.flags, sizeof plan.flags);
    take(&cursor, &plan.parent, sizeof plan.parent);
    take(&cursor, &plan.grace, sizeof plan.grace);
    take(&cursor, &plan.linger, sizeof plan.linger);
    take(&cursor, &plan.descriptors, sizeof plan.descriptors);
    plan.folder = take_string(&cursor);
    plan.executable = take_string(&cursor);
    plan.arguments = take_strings(&cursor);
    plan.environment = take_strings(&cursor);
    return plan;
}

// MARK: - The start

/// Where the child failed and why; it shares this memory until it has called execve.
static volatile enum { NOWHERE, SESSION, FOLDER, EXECUTABLE } failed_at;
static volatile int failed_with;

static pid_t start(const struct plan *plan) {
    pid_t launcher = getpid();
    sigset_t none;
    sigemptyset(&none);
    pid_t program = vfork();
    if (program != 0) return program;
    // Only system calls from here on. Dispositions are already the default ones.
    failed_at = SESSION;
    if (setsid() >= 0) {
        // If the launcher itself is killed, at least the program goes with it.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != launcher) _exit(CANNOT_START);
        // Foundation's own socket must not live on in the program.
        close_range(3, ~0U, 0);
        failed_at = FOLDER;
        if (chdir(plan->folder) == 0) {
            failed_at = EXECUTABLE;
            sigprocmask(SIG_SETMASK, &none, NULL);
            execve(plan->executable, plan->arguments, plan->environment);
        }
    }
    failed_with = errno;
    _exit(CANNOT_START);
}

/// The interpreter that a script names, when it is what is missing; else NULL.
static const char *missing_interpreter(const char *script, char *line, size_t size) {
    int file = open(script, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return NULL;
    ssize_t count = read(file, line, size - 1);
    close(file);
    if (count < 3 || line[0] != '#' || line[1] != '!') return NULL;
    line[count] = 0;
    char *interpreter = line + 2 + strspn(line + 2, " \t");
    interpreter[strcspn(interpreter, " \t\r\n")] = 0;
    return access(interpreter, X_OK) == 0 ? NULL : interpreter;
}

static int report_failure(const struct plan *plan) {
    char line[256];
    const char *reason = strerror(failed_with);
    if (failed_at == SESSION) {
        dprintf(STDERR_FILENO, "alight-launch: cannot make a session: %s\n", reason);
    } else if (failed_at == FOLDER) {
        dprintf(STDERR_FILENO, "alight-launch: cannot enter the folder '%s': %s\n", plan->folder, reason);
    } else {
        const char *missing = missing_interpreter(plan->executable, line, sizeof line);
        if (missing != NULL) {
            dprintf(
                STDERR_FILENO, "alight-launch: cannot start '%s': its interpreter '%s' is not there\n",
                plan->executable, missing);
        } else if (failed_with == ENOEXEC) {
            dprintf(
                STDERR_FILENO, "alight-launch: cannot start '%s': neither a binary of this machine nor a #! line\n",
                plan->executable);
        } else {
            dprintf(STDERR_FILENO, "alight-launch: cannot start '%s': %s\n", plan->executable, reason);
        }
    }
    switch (failed_with) {
    case ENOENT: return failed_at == EXECUTABLE ? NOT_FOUND : CANNOT_START;
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EIO: return NO_RESOURCES;
    default: return CANNOT_START;
    }
}

// MARK: - The end of everything that descends from here

/// Kills a child with its process group.
///
/// Nobody but us can reap a child, so its id and its group's can't have passed
/// to others. The children of a killed child become ours, and are met in the next round.
static void kill_child(pid_t child) {
    pid_t group = getpgid(child);
    if (group > 0 && group != getpgrp()) kill(-group, SIGKILL);
    kill(child, SIGKILL);
}

/// The slow way, for kernels without /proc/…/children.
static void kill_children_by_scan(void) {
    DIR *processes = opendir("/proc");
    if (processes == NULL) return;
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        pid_t process = atoi(entry->d_name);
        if (process <= 0) continue;
        char path[64], text[512];
        snprintf(path, sizeof path, "/proc/%d/stat", process);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) continue;
        ssize_t count = read(file, text, sizeof text - 1);
        close(file);
        text[count > 0 ? count : 0] = 0;
        // The name in parentheses may hold anything, so count from the last one.
        char *rest = strrchr(text, ')');
        int parent = 0;
        if (rest != NULL && sscanf(rest, ") %*c %d", &parent) == 1 && parent == getpid()) kill_child(process);
    }
    closedir(processes);
}

static void kill_children(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    FILE *list = fopen(path, "re");
    if (list == NULL) {
        kill_children_by_scan();
        return;
    }
    for (int child; fscanf(list, "%d", &child) == 1;) kill_child(child);
    fclose(list);
}

static int64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/// The next of the signals, 0 when `deadline` (in ms, -1 for none) comes first.
static int next_signal(const sigset_t *signals, int64_t deadline) {
    for (;;) {
        int64_t left = deadline < 0 ? 0 : deadline - milliseconds();
        if (left < 0) left = 0;
        struct timespec limit = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
        int signal = sigtimedwait(signals, NULL, deadline < 0 ? NULL : &limit);
        if (signal > 0) return signal;
        if (errno == EAGAIN) return 0;
    }
}

/// Waits until the program and all that descends from it has ended; returns the program's wait status.
static int wait_for_all(pid_t program, const struct plan *plan, const sigset_t *signals) {
    int status = 0;
    bool has_ended = false, is_asked = false, is_killing = false;
    int64_t deadline = -1;
    for (;;) {
        for (;;) {
            int one;
            pid_t process = waitpid(-1, &one, WNOHANG | __WALL);
            if (process < 0 && errno == EINTR) continue;
            if (process < 0) return status;  // ECHILD: nobody is left.
            if (process == 0) break;
            if (process != program) continue;
            status = one;
            has_ended = true;
            int64_t linger = milliseconds() + plan->linger;
            if (deadline < 0 || linger < deadline) deadline = linger;
        }
        if (is_killing) {
            kill_children();
            deadline = milliseconds() + 5;
        }
        switch (next_signal(signals, deadline)) {
        case SIGCHLD:
            break;
        case SIGTERM:
            if (is_asked || has_ended) {
                is_killing = true;
            } else {
                is_asked = true;
                deadline = milliseconds() + plan->grace;
                kill(-program, SIGTERM);
                kill(-program, SIGCONT);
            }
            break;
        default:  // SIGINT, SIGHUP, or the deadline.
            is_killing = true;
        }
    }
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
    sigset_t all, signals;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    // Blocked signals wait even where the default is to ignore them, and the program inherits nothing odd.
    // By system call, because posix_spawn ignores two signals that the C library keeps for itself.
    static const uint64_t default_action[4];
    for (int number = 1; number < NSIG; number++) syscall(SYS_rt_sigaction, number, default_action, NULL, 8);
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    // The death signal comes when the thread ends that started us; it waits for us all the time.
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    struct plan plan = read_plan();
    if ((uint32_t)getppid() != plan.parent) fail("alight has died");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) fail("cannot become a subreaper");
    if ((plan.flags & FLAG_NO_NEW_PRIVILEGES) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        fail("cannot give up new privileges");
    }
    struct rlimit limit;
    if (plan.descriptors > 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = plan.descriptors < limit.rlim_max ? plan.descriptors : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    umask(027);

    pid_t program;
    for (int attempt = 1;; attempt++) {
        failed_with = 0;
        program = start(&plan);
        if (program < 0) fail("cannot fork: too many processes, or no memory");
        if (failed_with == 0) break;
        waitpid(program, NULL, 0);
        // Somebody still has the file open for writing, if only a process about to call execve itself.
        if (failed_with != ETXTBSY || attempt == 50) _exit(report_failure(&plan));
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    }
    // The pipes are the program's now: who reads them sees the end when the last writer is gone.
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int descriptor = 0; descriptor <= 2; descriptor++) {
        if (nowhere < 0 || dup2(nowhere, descriptor) < 0) close(descriptor);
    }
    if (nowhere > 2) close(nowhere);
    end_as(wait_for_all(program, &plan, &signals));
}

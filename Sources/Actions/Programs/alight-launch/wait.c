// Waits for the exit of the program and all its descendants, and kills them when ordered to.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

/// Kills a child and its process group.
///
/// No other process can reap a child, so neither its id nor that of its group can have been reused. The children of a
/// killed child become children of this process, and are killed in the next round.
static void kill_child(pid_t child) {
    pid_t group = getpgid(child);
    if (group > 0 && group != getpgrp()) kill(-group, SIGKILL);
    kill(child, SIGKILL);
}

/// Returns the fields of /proc/PID/stat, starting with the state; NULL when they cannot be read.
static const char *read_process_stat(pid_t process, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return NULL;
    ssize_t count = read(file, text, size - 1);
    close(file);
    text[count > 0 ? count : 0] = 0;
    // The name in parentheses may contain any character, so search for the last parenthesis.
    char *rest = strrchr(text, ')');
    return rest == NULL || rest[1] == 0 ? NULL : rest + 2;
}

/// Kills all children after a scan of all processes: slow, for kernels without /proc/…/children.
static void kill_children_by_scan(void) {
    DIR *processes = opendir("/proc");
    if (processes == NULL) return;
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        pid_t process = atoi(entry->d_name);
        if (process <= 0) continue;
        char text[512];
        int parent = 0;
        const char *fields = read_process_stat(process, text, sizeof text);
        if (fields != NULL && sscanf(fields, "%*c %d", &parent) == 1 && parent == getpid()) kill_child(process);
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

static bool has_child, is_called, is_terminated_by_signal, is_killed_by_signal;
/// The descriptor from which signals are read; not handlers, which each child would have to reset.
static int signals;
/// Whether Alight has closed its end of the socket.
static bool is_orphaned;

/// Handles a signal for a child that waits for a plan: it must not reach the program.
static void ignore_signal(int number) { (void)number; }

void set_up_signals(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    // Blocked signals stay pending even where the default is to ignore them, and the program inherits no unusual
    // actions. By raw system call, because posix_spawn ignores two signals that the C library reserves for itself.
    static const uint64_t default_action[4];
    for (int number = 1; number < NSIG; number++) syscall(SYS_rt_sigaction, number, default_action, NULL, 8);
    // The signals that other processes may send, and that are not caused by an error of this one. execve(2) resets
    // them.
    static const int sent[] = {
        SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGXCPU,
        SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO, SIGPWR,
    };
    struct sigaction action = {.sa_handler = ignore_signal, .sa_flags = SA_RESTART};
    for (size_t index = 0; index < sizeof sent / sizeof *sent; index++) sigaction(sent[index], &action, NULL);
    sigset_t wanted;
    sigemptyset(&wanted);
    static const int orders[] = {SIGCHLD, SIGUSR1, SIGTERM, SIGINT, SIGHUP};
    for (size_t index = 0; index < sizeof orders / sizeof *orders; index++) sigaddset(&wanted, orders[index]);
    signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) fail("no descriptor for signals");
}

static void read_signals(void) {
    struct signalfd_siginfo infos[8];
    ssize_t size;
    while ((size = read(signals, infos, sizeof infos)) > 0) {
        size_t count = (size_t)size / sizeof *infos;
        for (size_t index = 0; index < count; index++) {
            if (infos[index].ssi_signo == SIGCHLD) has_child = true;
            else if (infos[index].ssi_signo == SIGUSR1) is_called = true;
            else if (infos[index].ssi_signo == SIGTERM) is_terminated_by_signal = true;
            else is_killed_by_signal = true;
        }
        if (count < sizeof infos / sizeof *infos) return;
    }
}

int64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/// Receives an order from the socket; other bytes stay there.
static enum order receive_order(void) {
    char byte;
    ssize_t count = recv(CONTROL, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return ORDER_NONE;
    // ECONNRESET if a message to Alight was still on its way.
    if (count <= 0) {
        is_orphaned = true;
        return ORDER_QUIT;
    }
    if (byte != 'T' && byte != 'K') return ORDER_OTHER;
    if (recv(CONTROL, &byte, 1, MSG_DONTWAIT) != 1) return ORDER_NONE;
    return byte == 'T' ? ORDER_TERMINATE : ORDER_KILL;
}

static bool test_and_clear(bool *flag) {
    bool is_set = *flag;
    *flag = false;
    return is_set;
}

enum order next_order(int64_t deadline) {
    for (;;) {
        if (test_and_clear(&has_child)) return ORDER_CHILD;
        if (is_waiting_for_plan()) is_terminated_by_signal = is_killed_by_signal = false;
        if (is_called || is_terminated_by_signal || is_killed_by_signal) {
            // The order may have come before the child has received its plan.
            await_program();
            if (test_and_clear(&is_terminated_by_signal)) return ORDER_TERMINATE;
            if (test_and_clear(&is_killed_by_signal)) return ORDER_KILL;
            // If the child has died without a plan, that and the order are for the next one.
            enum order order = is_waiting_for_plan() ? ORDER_NONE : receive_order();
            is_called = is_called && (order != ORDER_NONE || is_waiting_for_plan());
            if (order != ORDER_NONE) return order;
        }
        int64_t left = deadline < 0 ? 0 : deadline - milliseconds();
        if (left < 0) left = 0;
        struct timespec limit = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
        // Only the end of the socket is noticed here: its bytes may be for the child.
        struct pollfd descriptors[] = {{.fd = is_orphaned ? -1 : CONTROL}, {.fd = signals, .events = POLLIN}};
        int count = ppoll(descriptors, 2, deadline < 0 ? NULL : &limit, NULL);
        if (count == 0) return ORDER_NONE;
        if (count < 0) continue;
        if (descriptors[1].revents != 0) read_signals();
        if (descriptors[0].revents == 0) continue;
        is_orphaned = true;
        // A child that waits for a plan exits by itself, unless its plan has been sent.
        await_program();
        return ORDER_QUIT;
    }
}

/// Whether the program, which has exited and is not yet reaped, was killed because it continued after SIGXCPU.
static bool has_used_up_time(pid_t program, uint64_t seconds) {
    siginfo_t end = {.si_pid = 0};
    if (waitid(P_PID, (id_t)program, &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid != program) return false;
    if (end.si_code != CLD_KILLED || end.si_status != SIGKILL) return false;
    char text[512];
    unsigned long long user, system;
    const char *fields = read_process_stat(program, text, sizeof text);
    return fields != NULL
        && sscanf(fields, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) == 2
        && (user + system) / (unsigned long long)sysconf(_SC_CLK_TCK) >= seconds;
}

int wait_for_all(pid_t program) {
    int status = 0;
    bool has_exited = false, is_terminating = false, is_killing = false;
    int64_t deadline = -1;
    for (;;) {
        enum order order = next_order(deadline);
        const struct plan *plan = current_plan();
        switch (order) {
        case ORDER_CHILD:
            break;
        case ORDER_TERMINATE:
            if (is_terminating || has_exited || plan == NULL) {
                is_killing = true;
            } else {
                is_terminating = true;
                deadline = milliseconds() + plan->grace;
                kill(-program, SIGTERM);
                kill(-program, SIGCONT);
            }
            break;
        case ORDER_OTHER:
            fail("another plan arrived while a program runs");
        case ORDER_NONE:
        case ORDER_KILL:
        case ORDER_QUIT:
            is_killing = true;
        }
        bool is_timed = plan != NULL && plan->limits[LIMIT_CPU] != UINT64_MAX && !has_exited && !is_killing;
        bool is_out_of_time = is_timed && has_used_up_time(program, plan->limits[LIMIT_CPU]);
        for (;;) {
            int one;
            pid_t process = waitpid(-1, &one, WNOHANG | __WALL);
            if (process < 0 && errno == EINTR) continue;
            if (process < 0) return status;  // ECHILD: no child is left.
            if (process == 0) break;
            if (WIFSTOPPED(one)) {
                // It asked to be traced by its parent, but the launcher does not trace.
                int number = WSTOPSIG(one) == SIGTRAP ? 0 : WSTOPSIG(one);
                ptrace(PTRACE_DETACH, process, NULL, (void *)(intptr_t)number);
                continue;
            }
            if (process != program) continue;
            status = is_out_of_time ? SIGXCPU : one;
            has_exited = true;
            int64_t linger = milliseconds() + (plan == NULL ? 0 : plan->linger);
            if (deadline < 0 || linger < deadline) deadline = linger;
        }
        if (is_killing) {
            kill_children();
            deadline = milliseconds() + 5;
        }
    }
}

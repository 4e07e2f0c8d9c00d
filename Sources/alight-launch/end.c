// The end of the program, and of everything that descends from it.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

/// Kills a child with its process group.
///
/// Nobody but us can reap a child, so its id and its group's can't have passed
/// to others. The children of a killed child become ours, and are met in the next round.
static void kill_child(pid_t child) {
    pid_t group = getpgid(child);
    if (group > 0 && group != getpgrp()) kill(-group, SIGKILL);
    kill(child, SIGKILL);
}

/// What /proc says of a process, from its state on; NULL when it says nothing.
static const char *facts_of(pid_t process, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return NULL;
    ssize_t count = read(file, text, size - 1);
    close(file);
    text[count > 0 ? count : 0] = 0;
    // The name in parentheses may hold anything, so count from the last one.
    char *rest = strrchr(text, ')');
    return rest == NULL || rest[1] == 0 ? NULL : rest + 2;
}

/// The slow way, for kernels without /proc/…/children.
static void kill_children_by_scan(void) {
    DIR *processes = opendir("/proc");
    if (processes == NULL) return;
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        pid_t process = atoi(entry->d_name);
        if (process <= 0) continue;
        char text[512];
        int parent = 0;
        const char *facts = facts_of(process, text, sizeof text);
        if (facts != NULL && sscanf(facts, "%*c %d", &parent) == 1 && parent == getpid()) kill_child(process);
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

static sigset_t signals;

void block_signals(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
}

static int64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/// The next of the signals that are waited for, 0 when `deadline` (in ms, -1 for none) comes first.
static int next_signal(int64_t deadline) {
    for (;;) {
        int64_t left = deadline < 0 ? 0 : deadline - milliseconds();
        if (left < 0) left = 0;
        struct timespec limit = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
        int signal = sigtimedwait(&signals, NULL, deadline < 0 ? NULL : &limit);
        if (signal > 0) return signal;
        if (errno == EAGAIN) return 0;
    }
}

/// Whether the program, dead and not reaped yet, was killed because it went on after SIGXCPU.
static bool has_used_up_time(pid_t program, uint64_t seconds) {
    siginfo_t end = {.si_pid = 0};
    if (waitid(P_PID, (id_t)program, &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid != program) return false;
    if (end.si_code != CLD_KILLED || end.si_status != SIGKILL) return false;
    char text[512];
    unsigned long long user, system;
    const char *facts = facts_of(program, text, sizeof text);
    return facts != NULL
        && sscanf(facts, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) == 2
        && (user + system) / (unsigned long long)sysconf(_SC_CLK_TCK) >= seconds;
}

int wait_for_all(pid_t program, const struct plan *plan) {
    int status = 0;
    bool has_ended = false, is_asked = false, is_killing = false, is_timed = plan->limits[LIMIT_CPU] != UINT64_MAX;
    int64_t deadline = -1;
    for (;;) {
        bool is_out_of_time =
            is_timed && !has_ended && !is_killing && has_used_up_time(program, plan->limits[LIMIT_CPU]);
        for (;;) {
            int one;
            pid_t process = waitpid(-1, &one, WNOHANG | __WALL);
            if (process < 0 && errno == EINTR) continue;
            if (process < 0) return status;  // ECHILD: nobody is left.
            if (process == 0) break;
            if (process != program) continue;
            status = is_out_of_time ? SIGXCPU : one;
            has_ended = true;
            int64_t linger = milliseconds() + plan->linger;
            if (deadline < 0 || linger < deadline) deadline = linger;
        }
        if (is_killing) {
            kill_children();
            deadline = milliseconds() + 5;
        }
        switch (next_signal(deadline)) {
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

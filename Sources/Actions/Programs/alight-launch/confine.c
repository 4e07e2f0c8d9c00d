// Priorities, resource limits, user and groups of a program.
//
// The child that calls confine() shares the launcher's memory, so all of confine() consists of plain system calls, raw
// ones where the C library would do more. The preparations run in the same child, or in an earlier process, and the
// descriptors that they open are also open in the launcher.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch.h"

/// The niceness as a string, for /proc/self/autogroup.
static char nice_text[16];

/// Sets one limit, as far as the hard limit in effect allows.
static bool set_limit(int resource, uint64_t soft, uint64_t hard) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0) return false;
    if (hard < limit.rlim_max) limit.rlim_max = hard;
    limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
    return setrlimit(resource, &limit) == 0;
}

/// The settings of the launcher itself, which its children inherit.
static uint32_t inherited_umask = UINT32_MAX;
static uint64_t inherited_descriptors;

static bool set_inheritance(const struct plan *plan) {
    if (plan->umask != inherited_umask) umask((mode_t)plan->umask);
    if (plan->descriptors == 0 || plan->descriptors == inherited_descriptors) return true;
    return set_limit(RLIMIT_NOFILE, plan->descriptors, RLIM_INFINITY);
}

void prepare_inheritance(const struct plan *plan) {
    if (!set_inheritance(plan)) return;
    inherited_umask = plan->umask;
    inherited_descriptors = plan->descriptors;
}

void prepare_confinement(const struct plan *plan) {
    if (!set_inheritance(plan)) refuse("cannot set 'limits': %s", strerror(errno));
    if (plan->flags & FLAG_NICE) snprintf(nice_text, sizeof nice_text, "%d", plan->nice);
    if ((plan->flags & FLAG_NO_NETWORK) && !(plan->flags & FLAG_IF_POSSIBLE) && !can_shut_off_network()) {
        refuse("cannot shut off the network: not on a processor of this kind");
    }
    if (!(plan->flags & FLAG_USER)) return;
    // For a short time the child shares this memory as the other user, whose processes must not read it.
    prctl(PR_SET_DUMPABLE, 0);
    // Otherwise a program of another user could not open /dev/stderr. Standard input may be /dev/null, which is shared.
    for (int index = 0; index < STREAM_COUNT; index++) {
        struct stat status;
        if (fstat(plan->received[index], &status) != 0 || !S_ISFIFO(status.st_mode)) continue;
        if (fchown(plan->received[index], plan->user, plan->group) != 0) break;
    }
}

static bool fails(enum step step) {
    failure.error = errno;
    failure.step = step;
    return false;
}

static bool set_nice(const struct plan *plan) {
    // A session is a scheduling group (autogroup). Between groups the niceness of processes has no effect, but that of
    // the group has. Not all kernels have such groups.
    int group = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
    if (group >= 0) {
        if (write(group, nice_text, strlen(nice_text)) < 0) errno = 0;
        close(group);
    }
    return syscall(SYS_setpriority, PRIO_PROCESS, 0, plan->nice) == 0;
}

static bool set_limits(const struct plan *plan) {
    static const int resources[LIMIT_COUNT] = {
        // RLIMIT_DATA counts memory that is private and writable. RLIMIT_AS would also count memory that is only
        // reserved or mapped from files, of which Java, Go, V8 and sanitizers have many times what they use.
        RLIMIT_CPU, RLIMIT_DATA, RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_FSIZE,
    };
    for (int index = 0; index < LIMIT_COUNT; index++) {
        uint64_t value = plan->limits[index];
        if (value == UINT64_MAX) continue;
        // SIGXCPU at the soft limit, and SIGKILL a second later for programs that ignore it.
        if (!set_limit(resources[index], value, index == LIMIT_CPU ? value + 1 : value)) return false;
    }
    return true;
}

static bool become_user(const struct plan *plan) {
    if (syscall(SYS_setgroups, plan->group_count, plan->groups) != 0) return false;
    if (syscall(SYS_setresgid, plan->group, plan->group, plan->group) != 0) return false;
    if (syscall(SYS_setresuid, plan->user, plan->user, plan->user) != 0) return false;
    prctl(PR_SET_DUMPABLE, 0);
    // The change of user has cleared it.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return true;
}

/// Drops the capabilities of root in a sandbox except those for files and users: modules, clocks, priorities, other
/// processes, devices.
///
/// execve(2) does not restore capabilities outside of the bounding set.
static bool drop_capabilities(void) {
    static const int kept[] = {
        CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID, CAP_SETGID, CAP_SETUID,
    };
    for (int capability = 0; capability < 64; capability++) {
        bool is_kept = false;
        for (size_t index = 0; index < sizeof kept / sizeof *kept; index++) is_kept |= kept[index] == capability;
        if (is_kept || prctl(PR_CAPBSET_DROP, capability) == 0) continue;
        // The first number that the kernel does not support.
        return errno == EINVAL;
    }
    return true;
}

/// Enters the working directory that was opened as the plan's user, who needs search permission for all directories
/// above it.
static bool enter_directory(const struct plan *plan) {
    struct stat opened, entered;
    if (chdir(plan->directory) != 0 || stat(".", &entered) != 0) return false;
    if (fstat(plan->received[DIRECTORY], &opened) != 0) return false;
    errno = ESTALE;
    return opened.st_dev == entered.st_dev && opened.st_ino == entered.st_ino;
}

bool confine(const struct plan *plan) {
    enum { WHO_PROCESS = 1 };
    int ruleset = plan->received[RULESET];
    if (ruleset >= 0 && !grant_own_process(ruleset)) return fails(STEP_SANDBOX);
    if ((plan->flags & FLAG_NICE) && !set_nice(plan)) return fails(STEP_NICE);
    if (plan->io_priority != 0 && syscall(SYS_ioprio_set, WHO_PROCESS, 0, plan->io_priority) != 0) {
        return fails(STEP_IO_PRIORITY);
    }
    if (!set_limits(plan)) return fails(STEP_LIMIT);
    bool is_sandbox = ruleset >= 0 || (plan->flags & FLAG_NO_NETWORK);
    if (is_sandbox && geteuid() == 0 && !drop_capabilities()) return fails(STEP_PRIVILEGES);
    // Even if another directory has its name now.
    bool enters_first = !(plan->flags & FLAG_USER) || (plan->flags & FLAG_ENTERS_FIRST);
    if (enters_first && fchdir(plan->received[DIRECTORY]) != 0) return fails(STEP_DIRECTORY);
    if ((plan->flags & FLAG_USER) && !become_user(plan)) return fails(STEP_USER);
    if (!enters_first && !enter_directory(plan)) return fails(STEP_DIRECTORY);
    if (ruleset >= 0 && !enter_ruleset(ruleset)) return fails(STEP_SANDBOX);
    if ((plan->flags & FLAG_NO_NETWORK) && can_shut_off_network() && !shut_off_network()) {
        if (!(plan->flags & FLAG_IF_POSSIBLE)) return fails(STEP_NETWORK);
    }
    return true;
}

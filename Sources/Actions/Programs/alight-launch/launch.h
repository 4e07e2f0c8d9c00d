// Declarations shared by the parts of alight-launch.
#ifndef ALIGHT_LAUNCH_H
#define ALIGHT_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// The result of a run, as reported to Alight.
///
/// EXITED: the program has exited, and its wait status follows. CANNOT_START: it cannot be started. NO_RESOURCES: it
/// cannot be started now. NOT_FOUND: its file does not exist. FORBIDDEN: its file may not be executed.
enum result { EXITED, CANNOT_START, NO_RESOURCES, NOT_FOUND, FORBIDDEN };
/// Sent in place of a wait status: whether the launcher accepts another plan.
enum { CONTINUES, EXITS };

enum {
    FLAG_NICE = 1,
    FLAG_USER = 2,
    /// The plan comes with a Landlock ruleset, and the program can access only the files in it.
    FLAG_FILES = 4,
    FLAG_NO_NETWORK = 8,
    /// Parts of the sandbox that the kernel does not support are skipped.
    FLAG_IF_POSSIBLE = 16,
    /// The working directory is entered before the user is changed, who need not be able to reach it.
    FLAG_ENTERS_FIRST = 32,
};

enum limit { LIMIT_CPU, LIMIT_MEMORY, LIMIT_FILES, LIMIT_PROCESSES, LIMIT_FILE_SIZE, LIMIT_COUNT };

/// The descriptors that come with a plan: the program's standard input, output and error, its working directory, and
/// the Landlock ruleset of its sandbox, if it has one.
enum { STREAM_COUNT = 3, DIRECTORY = STREAM_COUNT, RULESET, DESCRIPTOR_COUNT };

/// The decoded plan of a run.
struct plan {
    uint32_t flags, grace, linger;
    uint64_t descriptors;
    uint32_t umask;
    int32_t nice;
    /// The value for ioprio_set(2); 0 leaves the priority unchanged.
    uint32_t io_priority;
    /// UINT64_MAX leaves a limit unchanged.
    uint64_t limits[LIMIT_COUNT];
    uint32_t user, group, group_count;
    gid_t *groups;
    char *user_name;
    char *directory, *executable;
    char **arguments, **environment;
    /// The open descriptors; -1 for the others.
    int received[DESCRIPTOR_COUNT];
    /// The allocations of the members above.
    void *memory[4];
};

/// The step at which the child failed.
enum step {
    STEP_NONE, STEP_SESSION, STEP_SANDBOX, STEP_NICE, STEP_IO_PRIORITY, STEP_LIMIT, STEP_USER, STEP_PRIVILEGES,
    STEP_DIRECTORY, STEP_NETWORK, STEP_EXECUTABLE,
};

/// The step at which the child failed, and the errno.
///
/// The child shares this memory with the launcher until it has called execve.
struct failure {
    enum step step;
    int error;
};
extern volatile struct failure failure;

/// Reports an error of the launcher itself, and exits.
_Noreturn void fail(const char *message);

/// Reports why the program cannot be started, and exits.
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/// The socket to Alight, and the shared memory with the counters of started programs, which is open only until it is
/// mapped.
enum { CONTROL = 0, COUNTERS = 1 };

/// Forks a launcher for each request; returns in the launchers, with the number of their counter.
uint32_t spawn_launchers(void);

/// Waits for the next plan; exits the calling child when none will arrive.
struct plan next_plan(void);
/// Records that a plan has arrived, before the rest of it is read.
void record_plan(void);
bool is_waiting_for_plan(void);
void free_plan(struct plan *plan);

/// Reports the result of the run to Alight; exits when Alight is gone.
void report(enum result result, int status, const char *text);

/// Prepares what confine() needs, while files may still be opened and memory allocated.
///
/// Also applies the settings that children otherwise inherit from the launcher.
void prepare_confinement(const struct plan *plan);
/// Applies the settings that are the same for most programs to the launcher itself, so that the next child inherits
/// them.
void prepare_inheritance(const struct plan *plan);

/// Applies the limits, the user and the sandbox of the plan to the calling child, by system calls alone.
///
/// Returns false on failure, with `failure` filled in.
bool confine(const struct plan *plan);

/// Allows the program to read its own directory in /proc; must be called in the program's process.
bool grant_own_process(int ruleset);
bool enter_ruleset(int ruleset);
/// Refuses all sockets except those between processes of this machine; returns false on unknown processors.
bool can_shut_off_network(void);
bool shut_off_network(void);

/// Reports why the child has failed.
void report_failure(const struct plan *plan);

/// Waits until the child no longer shares this memory: it has become a program, or has exited.
void await_program(void);
/// Returns the plan of the program that runs or has run; NULL before that.
const struct plan *current_plan(void);

/// Waits until the child, the program that it becomes, and all its descendants have exited; returns the wait status of
/// the child.
int wait_for_all(pid_t child);

enum order {
    /// The deadline has passed.
    ORDER_NONE,
    ORDER_CHILD,
    ORDER_TERMINATE,
    ORDER_KILL,
    /// Alight has exited.
    ORDER_QUIT,
    /// A byte has arrived that is not an order.
    ORDER_OTHER,
};

/// Blocks all signals, and queues those that are orders for next_order().
void set_up_signals(void);

/// Waits for the next order, until `deadline` (a value of milliseconds(), or -1 for none).
///
/// Orders that arrive before a plan were meant for an earlier run. None is returned while a child shares this memory.
enum order next_order(int64_t deadline);
int64_t milliseconds(void);

#endif

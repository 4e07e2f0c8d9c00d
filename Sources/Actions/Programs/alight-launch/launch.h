// What the parts of alight-launch share.
#ifndef ALIGHT_LAUNCH_H
#define ALIGHT_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// What Alight is told of a run: the program has ended, with its wait status; it can't be started; not now; it can't
/// be started because its file is not there, or because that may not be run.
enum news { ENDED, CANNOT_START, NO_RESOURCES, GONE, FORBIDDEN };
/// Instead of a wait status: whether the launcher takes another plan.
enum { STAYS, LEAVES };

enum {
    /// Who reads what the program writes sees the end when all writers are gone, not when all that runs has ended.
    FLAG_SHOWS_CLOSING = 1,
    FLAG_NICE = 2,
    FLAG_USER = 4,
    /// A ruleset comes with the plan, and only its files can be reached.
    FLAG_FILES = 8,
    FLAG_NO_NETWORK = 16,
    /// What the kernel can't do of the sandbox is left out.
    FLAG_IF_POSSIBLE = 32,
};

enum limit { LIMIT_CPU, LIMIT_MEMORY, LIMIT_FILES, LIMIT_PROCESSES, LIMIT_FILE_SIZE, LIMIT_COUNT };

/// The descriptors that come with a plan: what becomes the program's standard input, output and error, its working
/// folder, and the Landlock ruleset of its sandbox, if it has one.
enum { STREAM_COUNT = 3, FOLDER = STREAM_COUNT, RULESET, DESCRIPTOR_COUNT };

/// What the header says.
struct plan {
    uint32_t flags, grace, linger;
    uint64_t descriptors;
    uint32_t umask;
    int32_t nice;
    /// As ioprio_set(2) takes it; 0 leaves it.
    uint32_t io_priority;
    /// UINT64_MAX leaves it.
    uint64_t limits[LIMIT_COUNT];
    uint32_t user, group, group_count;
    gid_t *groups;
    char *user_name;
    char *folder, *executable;
    char **arguments, **environment;
    /// Those that are open; -1 for the others.
    int given[DESCRIPTOR_COUNT];
    /// The memory of all that is above.
    void *memory[4];
};

/// What the child was at when it failed.
enum step {
    STEP_NONE, STEP_SESSION, STEP_SANDBOX, STEP_NICE, STEP_IO_PRIORITY, STEP_LIMIT, STEP_USER, STEP_PRIVILEGES,
    STEP_FOLDER, STEP_NETWORK, STEP_EXECUTABLE,
};

/// Where the child failed and why; it shares this memory with the launcher until it has called execve.
struct failure {
    enum step step;
    int error;
};
extern volatile struct failure failure;

/// Says what is wrong with the launcher's own work, and ends it.
_Noreturn void fail(const char *message);

/// Says why the program can't be started, and ends the launcher.
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/// The socket to Alight, and at first memory that is shared with it, in which the programs that were begun are counted.
enum { CONTROL = 0, COUNTER = 1 };

/// Waits for the next plan; ends the calling child when there will be none.
struct plan next_plan(void);
/// Says that there is a plan, before its rest is read.
void note_plan(void);
bool is_waiting_for_plan(void);
void close_given(struct plan *plan, int index);
void free_plan(struct plan *plan);

/// Tells Alight of the run; ends the launcher when Alight has gone.
void tell(enum news news, int status, const char *words);

/// Gets ready what confine() will need, as long as that may open files and take memory; and takes what launchers hand down.
void prepare_confinement(const struct plan *plan);
/// Gives the launcher itself what is the same for most programs, so that the next child has it already.
void prepare_inheritance(const struct plan *plan);

/// Gives the calling child the limits, the user and the sandbox of the plan, by system calls alone.
///
/// Returns false when it could not, with `failure` filled in.
bool confine(const struct plan *plan);

/// Lets the program read of /proc what is its own; to be called by it.
bool grant_own_process(int ruleset);
bool enter_ruleset(int ruleset);
/// Refuses sockets but for those of this machine's own processes; false on processors that it doesn't know.
bool can_shut_off_network(void);
bool shut_off_network(void);

/// Tells why the child has failed.
void tell_failure(const struct plan *plan);

/// Waits until the program and all that descends from it has ended; returns the program's wait status.
int wait_for_all(pid_t program, const struct plan *plan);

enum order {
    /// The time is over.
    ORDER_NONE,
    ORDER_CHILD,
    ORDER_TERMINATE,
    ORDER_KILL,
    /// Alight has ended.
    ORDER_QUIT,
    /// A byte is there that is none of these.
    ORDER_OTHER,
};

/// Blocks all signals, and has those that are orders wait for next_order().
void take_signals(void);

/// While there is no plan, signals go nowhere; orders that come when there is one wait until they are held again.
void allow_early_signals(void);
void hold_signals(void);

/// Forgets orders by signal that were for a run before.
void drop_signals(void);

/// Waits for what comes next while a program runs, until `deadline` (as milliseconds() counts, -1 for none).
enum order next_order(int64_t deadline);
int64_t milliseconds(void);

#endif

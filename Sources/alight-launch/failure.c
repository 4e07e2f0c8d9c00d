// Why a program could not be started, in words.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

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

static char words[16384];

static void say(const char *what, const char *detail, const char *reason) {
    snprintf(words, sizeof words, "cannot %s%s: %s", what, detail, reason);
}

static void say_executable(const struct plan *plan, const char *reason) {
    char line[256], name[512] = "";
    if (plan->flags & FLAG_USER) snprintf(name, sizeof name, " as user '%.400s'", plan->user_name);
    const char *missing = missing_interpreter(plan->executable, line, sizeof line);
    if (missing != NULL) {
        snprintf(
            words, sizeof words, "cannot start '%s': its interpreter '%s' is not there", plan->executable, missing);
        return;
    }
    if (failure.error == ENOEXEC) reason = "neither a binary of this machine nor a #! line";
    // What execve itself refuses for a user who has become one process too many.
    if (failure.error == EAGAIN && plan->limits[LIMIT_PROCESSES] != UINT64_MAX) {
        reason = "the user has as many processes as 'limits: processes' allows";
    }
    snprintf(words, sizeof words, "cannot start '%s'%s: %s", plan->executable, name, reason);
}

void tell_failure(const struct plan *plan) {
    int error = failure.error;
    const char *reason = strerror(error);
    char detail[8192] = "";
    switch (failure.step) {
    case STEP_NONE:
    case STEP_SESSION:
        say("make a session", "", reason);
        break;
    case STEP_SANDBOX:
        say("confine it to the files of 'sandbox'", "", reason);
        break;
    case STEP_NICE:
        snprintf(detail, sizeof detail, "%d", plan->nice);
        say("set 'nice' to ", detail, reason);
        break;
    case STEP_IO_PRIORITY:
        say("set 'ionice'", "", reason);
        break;
    case STEP_LIMIT:
        say("set 'limits'", "", reason);
        break;
    case STEP_USER:
        snprintf(detail, sizeof detail, "'%.400s'", plan->user_name);
        say("become user ", detail, reason);
        break;
    case STEP_PRIVILEGES:
        say("give up new privileges", "", reason);
        break;
    case STEP_FOLDER:
        if (plan->flags & FLAG_USER) {
            snprintf(detail, sizeof detail, "'%.7000s' as user '%.400s'", plan->folder, plan->user_name);
        } else {
            snprintf(detail, sizeof detail, "'%.7000s'", plan->folder);
        }
        say("enter the folder ", detail, reason);
        break;
    case STEP_NETWORK:
        say("shut off the network", "", reason);
        break;
    case STEP_EXECUTABLE:
        say_executable(plan, reason);
        break;
    }
    switch (error) {
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EIO:
        tell(NO_RESOURCES, STAYS, words);
        break;
    default:
        tell(CANNOT_START, STAYS, words);
    }
}

// Error messages for a program that could not be started.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

static bool read_at(int file, void *buffer, size_t size, uint64_t position) {
    return pread(file, buffer, size, (off_t)position) == (ssize_t)size;
}

/// Returns the interpreter of a binary, which loads its libraries; NULL when it names none.
static const char *loader(int file, char *name, size_t size) {
    union {
        unsigned char identity[EI_NIDENT];
        Elf32_Ehdr narrow;
        Elf64_Ehdr wide;
    } header;
    if (!read_at(file, &header, sizeof header, 0) || memcmp(header.identity, ELFMAG, SELFMAG) != 0) return NULL;
    bool is_wide = header.identity[EI_CLASS] == ELFCLASS64;
    uint64_t position = is_wide ? header.wide.e_phoff : header.narrow.e_phoff;
    int count = is_wide ? header.wide.e_phnum : header.narrow.e_phnum;
    for (int index = 0; index < count; index++) {
        union {
            Elf32_Phdr narrow;
            Elf64_Phdr wide;
        } part;
        size_t part_size = is_wide ? sizeof part.wide : sizeof part.narrow;
        if (!read_at(file, &part, part_size, position)) return NULL;
        position += part_size;
        if ((is_wide ? part.wide.p_type : part.narrow.p_type) != PT_INTERP) continue;
        uint64_t length = is_wide ? part.wide.p_filesz : part.narrow.p_filesz;
        uint64_t start = is_wide ? part.wide.p_offset : part.narrow.p_offset;
        if (length == 0 || length > size || !read_at(file, name, length, start)) return NULL;
        name[length - 1] = 0;
        return name;
    }
    return NULL;
}

/// Returns the interpreter in the first line of a script; NULL when it names none.
static const char *interpreter_of_script(int file, char *line, size_t size) {
    ssize_t count = pread(file, line, size - 1, 0);
    if (count < 3 || line[0] != '#' || line[1] != '!') return NULL;
    line[count] = 0;
    char *interpreter = line + 2 + strspn(line + 2, " \t");
    // For the kernel, a carriage return before the newline is part of the name.
    interpreter[strcspn(interpreter, " \t\n")] = 0;
    return interpreter;
}

/// Returns the interpreter of a program if that is what is missing, otherwise NULL.
static const char *missing_interpreter(const char *program, char *line, size_t size) {
    int file = open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return NULL;
    const char *interpreter = interpreter_of_script(file, line, size);
    // The kernel refuses a binary of another machine before it opens the interpreter.
    if (interpreter == NULL && failure.error != ENOEXEC) interpreter = loader(file, line, size);
    close(file);
    return interpreter == NULL || access(interpreter, X_OK) == 0 ? NULL : interpreter;
}

static char message[16384];

/// Composes the message for an error of execve, and returns whether the program's own file is the cause.
static enum result describe_executable_error(const struct plan *plan, const char *reason, const char *user) {
    char line[256];
    const char *missing = missing_interpreter(plan->executable, line, sizeof line);
    if (missing != NULL) {
        int length = (int)strcspn(missing, "\r");
        snprintf(
            message, sizeof message, "cannot start '%s': its interpreter '%.*s%s' does not exist", plan->executable,
            length, missing, missing[length] == 0 ? "" : "\\r");
        return CANNOT_START;
    }
    if (failure.error == ENOEXEC) reason = "neither a binary of this machine nor a #! line";
    // execve itself fails with this error when the user has one process too many.
    if (failure.error == EAGAIN && plan->limits[LIMIT_PROCESSES] != UINT64_MAX) {
        reason = "the user has as many processes as 'limits: processes' allows";
    }
    snprintf(message, sizeof message, "cannot start '%s'%s: %s", plan->executable, user, reason);
    switch (failure.error) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
        return NOT_FOUND;
    case EACCES:
        return FORBIDDEN;
    default:
        return CANNOT_START;
    }
}

/// The purposes of the other steps, for messages.
static const char *const purposes[] = {
    [STEP_NONE] = "make a session", [STEP_SESSION] = "make a session",
    [STEP_SANDBOX] = "confine it to the files of 'sandbox'", [STEP_NICE] = "set 'nice' to ",
    [STEP_IO_PRIORITY] = "set 'ionice'", [STEP_LIMIT] = "set 'limits'", [STEP_USER] = "become user ",
    [STEP_PRIVILEGES] = "give up new privileges", [STEP_DIRECTORY] = "enter the directory ",
    [STEP_NETWORK] = "shut off the network",
};

void report_failure(const struct plan *plan) {
    const char *reason = strerror(failure.error);
    char user[512] = "", detail[8192] = "";
    if (plan->flags & FLAG_USER) snprintf(user, sizeof user, " as user '%.400s'", plan->user_name);
    enum result result = CANNOT_START;
    if (failure.step == STEP_EXECUTABLE) {
        result = describe_executable_error(plan, reason, user);
    } else {
        if (failure.step == STEP_NICE) snprintf(detail, sizeof detail, "%d", plan->nice);
        if (failure.step == STEP_USER) snprintf(detail, sizeof detail, "'%.400s'", plan->user_name);
        if (failure.step == STEP_DIRECTORY) snprintf(detail, sizeof detail, "'%.7000s'%s", plan->directory, user);
        snprintf(message, sizeof message, "cannot %s%s: %s", purposes[failure.step], detail, reason);
    }
    switch (failure.error) {
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EIO:
        result = NO_RESOURCES;
        break;
    default:
        break;
    }
    report(result, CONTINUES, message);
}

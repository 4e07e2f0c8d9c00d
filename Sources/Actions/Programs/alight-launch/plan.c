// Reads the plan of a run, which Alight sends over the control socket together with the program's streams.
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch.h"

enum { MAGIC_SIZE = 8, MAX_SIZE = 16 << 20 };

static void read_exactly(void *buffer, size_t count) {
    for (char *at = buffer; count > 0;) {
        ssize_t got = read(CONTROL, at, count);
        if (got < 0 && errno == EINTR) continue;
        // Alight has exited.
        if (got <= 0) _exit(0);
        at += got;
        count -= (size_t)got;
    }
}

/// The buffer for plans; most of them fit.
static char arrived[32 << 10];

static bool is_order(char byte) { return byte == 'T' || byte == 'K'; }

/// Receives the descriptors that come with a plan.
static void receive_descriptors(struct msghdr *message, int received[DESCRIPTOR_COUNT]) {
    for (int index = 0; index < DESCRIPTOR_COUNT; index++) received[index] = -1;
    struct cmsghdr *rights = CMSG_FIRSTHDR(message);
    size_t size = rights == NULL || rights->cmsg_type != SCM_RIGHTS ? 0 : rights->cmsg_len - CMSG_LEN(0);
    // The kernel omits descriptors for which no number is free.
    bool is_whole = !(message->msg_flags & MSG_CTRUNC) && size <= DESCRIPTOR_COUNT * sizeof(int);
    if (!is_whole || size < (DIRECTORY + 1) * sizeof(int)) fail("a plan arrived without its descriptors");
    memcpy(received, CMSG_DATA(rights), size);
}

/// Waits for a plan and receives the descriptors that come with its first byte; returns how much of it is in `arrived`.
///
/// One call receives no more than what was sent with descriptors. Orders before the plan were meant for a run that was
/// already over.
static size_t await_plan(int received[DESCRIPTOR_COUNT]) {
    union {
        char bytes[CMSG_SPACE(DESCRIPTOR_COUNT * sizeof(int))];
        struct cmsghdr alignment;
    } control;
    for (;;) {
        struct iovec buffer = {arrived, sizeof arrived};
        struct msghdr message = {
            .msg_iov = &buffer, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes,
        };
        // Recorded before it is received, so that a process killed in between does not lose a plan unnoticed.
        char first;
        if (recv(CONTROL, &first, 1, MSG_PEEK) == 1 && !is_order(first)) record_plan();
        ssize_t got = recvmsg(CONTROL, &message, MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == ENOTSOCK)
            fail("standard input is not a socket; alight starts this program, not a person");
        // Alight has exited.
        if (got <= 0) _exit(0);
        size_t orders = 0;
        while (orders < (size_t)got && is_order(arrived[orders])) orders++;
        if (orders == (size_t)got) continue;
        record_plan();
        receive_descriptors(&message, received);
        if (orders > 0) memmove(arrived, arrived + orders, (size_t)got - orders);
        return (size_t)got - orders;
    }
}

struct cursor {
    char *at, *end;
};

static void decode(struct cursor *cursor, void *number, size_t size) {
    if ((size_t)(cursor->end - cursor->at) < size) fail("the plan is truncated");
    memcpy(number, cursor->at, size);
    cursor->at += size;
}

static char *decode_string(struct cursor *cursor) {
    uint32_t length;
    decode(cursor, &length, sizeof length);
    if ((size_t)(cursor->end - cursor->at) <= length) fail("the plan is truncated");
    char *string = cursor->at;
    if (memchr(string, 0, (size_t)length + 1) != string + length) fail("a string of the plan contains a NUL");
    cursor->at += (size_t)length + 1;
    return string;
}

static void *allocate(struct plan *plan, size_t count, size_t element) {
    size_t index = 0;
    while (plan->memory[index] != NULL) index++;
    void *memory = calloc(count, element);
    if (memory == NULL) fail("out of memory");
    return plan->memory[index] = memory;
}

/// Reads the count of a list and allocates memory for it; `size` is the minimum size of an element in the plan.
static uint32_t decode_list(struct cursor *cursor, struct plan *plan, size_t size, size_t element, void *list) {
    uint32_t count;
    decode(cursor, &count, sizeof count);
    if (count > (size_t)(cursor->end - cursor->at) / size) fail("the plan is truncated");
    *(void **)list = allocate(plan, (size_t)count + 1, element);
    return count;
}

static char **decode_strings(struct cursor *cursor, struct plan *plan) {
    char **strings;
    uint32_t count = decode_list(cursor, plan, 5, sizeof *strings, &strings);
    for (uint32_t index = 0; index < count; index++) strings[index] = decode_string(cursor);
    return strings;
}

/// Reads the rest of a plan of which `got` bytes are in `arrived`; returns the address of its body, after the start.
static char *read_body(struct plan *plan, size_t got, uint32_t *size) {
    struct {
        char magic[MAGIC_SIZE];
        uint32_t size;
    } start;
    if (got < sizeof start) {
        read_exactly(arrived + got, sizeof start - got);
        got = sizeof start;
    }
    memcpy(&start, arrived, sizeof start);
    if (memcmp(start.magic, "ALIGHTL6", MAGIC_SIZE) != 0) fail("the plan is of another version");
    if (start.size > MAX_SIZE) fail("the plan is too large");
    got -= sizeof start;
    // The decoder detects what is then missing at the end.
    if (got > start.size) got = start.size;
    char *body = arrived + sizeof start;
    if (start.size > sizeof arrived - sizeof start) {
        body = allocate(plan, start.size, 1);
        memcpy(body, arrived + sizeof start, got);
    }
    read_exactly(body + got, start.size - got);
    *size = start.size;
    return body;
}

struct plan next_plan(void) {
    struct plan plan = {.memory = {NULL}};
    uint32_t size;
    size_t got = await_plan(plan.received);
    char *body = read_body(&plan, got, &size);
    struct cursor cursor = {body, body + size};
    decode(&cursor, &plan.flags, sizeof plan.flags);
    decode(&cursor, &plan.grace, sizeof plan.grace);
    decode(&cursor, &plan.linger, sizeof plan.linger);
    decode(&cursor, &plan.descriptors, sizeof plan.descriptors);
    decode(&cursor, &plan.umask, sizeof plan.umask);
    decode(&cursor, &plan.nice, sizeof plan.nice);
    decode(&cursor, &plan.io_priority, sizeof plan.io_priority);
    decode(&cursor, plan.limits, sizeof plan.limits);
    decode(&cursor, &plan.user, sizeof plan.user);
    decode(&cursor, &plan.group, sizeof plan.group);
    plan.user_name = decode_string(&cursor);
    plan.group_count = decode_list(&cursor, &plan, sizeof *plan.groups, sizeof *plan.groups, &plan.groups);
    for (uint32_t index = 0; index < plan.group_count; index++) {
        decode(&cursor, &plan.groups[index], sizeof *plan.groups);
    }
    plan.directory = decode_string(&cursor);
    plan.executable = decode_string(&cursor);
    plan.arguments = decode_strings(&cursor, &plan);
    plan.environment = decode_strings(&cursor, &plan);
    if (cursor.at != cursor.end) fail("the plan is longer than it specifies");
    if (!(plan.flags & FLAG_FILES) != (plan.received[RULESET] < 0)) fail("a plan arrived without its descriptors");
    return plan;
}

void free_plan(struct plan *plan) {
    for (size_t index = 0; index < sizeof plan->memory / sizeof *plan->memory; index++) free(plan->memory[index]);
}

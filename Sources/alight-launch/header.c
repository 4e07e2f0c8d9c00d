// The header: what Alight writes in front of the program's own standard input.
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

enum { MAGIC_SIZE = 8, SIZE_MOST = 16 << 20 };

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

/// The count of a list, and memory for it; `size` is what an element takes at least in the header.
static uint32_t take_list(struct cursor *cursor, size_t size, size_t element, void *list) {
    uint32_t count;
    take(cursor, &count, sizeof count);
    if (count > (size_t)(cursor->end - cursor->at) / size) fail("the header is cut off");
    void *memory = calloc((size_t)count + 1, element);
    if (memory == NULL) fail("out of memory");
    *(void **)list = memory;
    return count;
}

static char **take_strings(struct cursor *cursor) {
    char **strings;
    uint32_t count = take_list(cursor, 5, sizeof *strings, &strings);
    for (uint32_t index = 0; index < count; index++) strings[index] = take_string(cursor);
    return strings;
}

struct plan read_plan(void) {
    struct {
        char magic[MAGIC_SIZE];
        uint32_t size;
    } start;
    read_exactly(&start, sizeof start);
    if (memcmp(start.magic, "ALIGHTL2", MAGIC_SIZE) != 0) fail("the header is of another version");
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
    take(&cursor, &plan.umask, sizeof plan.umask);
    take(&cursor, &plan.nice, sizeof plan.nice);
    take(&cursor, &plan.io_priority, sizeof plan.io_priority);
    take(&cursor, plan.limits, sizeof plan.limits);
    take(&cursor, &plan.user, sizeof plan.user);
    take(&cursor, &plan.group, sizeof plan.group);
    plan.user_name = take_string(&cursor);
    plan.group_count = take_list(&cursor, sizeof *plan.groups, sizeof *plan.groups, &plan.groups);
    for (uint32_t index = 0; index < plan.group_count; index++) {
        take(&cursor, &plan.groups[index], sizeof *plan.groups);
    }
    plan.grant_count = take_list(&cursor, 9, sizeof *plan.grants, &plan.grants);
    for (uint32_t index = 0; index < plan.grant_count; index++) {
        take(&cursor, &plan.grants[index].access, sizeof plan.grants[index].access);
        plan.grants[index].path = take_string(&cursor);
    }
    plan.folder = take_string(&cursor);
    plan.executable = take_string(&cursor);
    plan.arguments = take_strings(&cursor);
    plan.environment = take_strings(&cursor);
    if (cursor.at != cursor.end) fail("the header is longer than what it says");
    return plan;
}

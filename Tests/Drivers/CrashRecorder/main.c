// crash-recorder is the action of the rules in the crash test.
//
// It appends its request to a file, sleeps, and appends its result. Each line is
// written with a single call, so that lines of several processes do not mix. If the
// process is killed during a long write, a partial line remains; each line therefore
// begins with a newline and ends with a fixed word.
//
//   crash-recorder LOG MILLISECONDS MILLISECONDS-MORE FAILING
//
// It sleeps for MILLISECONDS, and for every fourth job MILLISECONDS-MORE longer. One
// of FAILING jobs exits with 75 in its first attempt; 0 means none.
//
// A line has the fields word, time in µs, process, status, contents of the events, request and the word `end`,
// separated by tabs.
#define _GNU_SOURCE
#include "CTestKit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char *read_request(size_t *size) {
    size_t capacity = 1 << 16;
    char *text = malloc(capacity);
    for (*size = 0; text != NULL;) {
        ssize_t count = read(STDIN_FILENO, text + *size, capacity - *size - 1);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        *size += (size_t)count;
        if (*size + 1 == capacity) text = realloc(text, capacity *= 2);
    }
    if (text == NULL) exit(74);
    while (*size > 0 && text[*size - 1] == '\n') --*size;
    text[*size] = 0;
    return text;
}

/// Writes `sum:size` of each path in the request, or `-` for a file that can't be read, separated by commas.
///
/// The names in the test contain no characters that JSON escapes.
static void put_contents(FILE *line, char *request) {
    static const char member[] = "\"path\":\"";
    const char *separator = "";
    for (char *at = request; (at = strstr(at, member)) != NULL;) {
        at += sizeof member - 1;
        char *end = strchr(at, '"');
        if (end == NULL) return;
        *end = 0;
        struct ctk_content content;
        if (ctk_read_content(at, &content) == 0) {
            fprintf(line, "%s%016" PRIx64 ":%" PRIu64, separator, content.sum, content.size);
        } else {
            fprintf(line, "%s-", separator);
        }
        *end = '"';
        separator = ",";
    }
}

static void append(const char *log, const char *word, int status, char *request) {
    char *text;
    size_t size;
    FILE *line = open_memstream(&text, &size);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (line == NULL) exit(74);
    fprintf(
        line, "\n%s\t%" PRId64 "\t%d\t%d\t", word, (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000, (int)getpid(),
        status);
    put_contents(line, request);
    fprintf(line, "\t%s\tend\n", request);
    fclose(line);
    int file = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0 || write(file, text, size) != (ssize_t)size) exit(74);
    close(file);
    free(text);
}

static unsigned hash(const char *text) {
    unsigned value = 5381;
    while (*text != 0) value = value * 33 + (unsigned char)*text++;
    return value >> 3;
}

static void sleep_for(long milliseconds) {
    struct timespec left = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: crash-recorder LOG MILLISECONDS MILLISECONDS-MORE FAILING\n");
        return 64;
    }
    size_t size;
    char *request = read_request(&size);
    const char *job = getenv("ALIGHT_ID"), *attempt = getenv("ALIGHT_ATTEMPT");
    unsigned draw = hash(job == NULL ? "" : job);
    unsigned failing = (unsigned)atoi(arguments[4]);
    append(arguments[1], "begin", 0, request);
    sleep_for(atol(arguments[2]) + (draw % 4 == 0 ? atol(arguments[3]) : 0));
    int status = failing > 0 && draw % failing == 0 && attempt != NULL && atoi(attempt) == 1 ? 75 : 0;
    append(arguments[1], "end", status, request);
    return status;
}

// The minimal cost of a process per request: posix_spawn(3), a request on its standard input, a response on its
// standard output, its exit status. COUNT times, in THREADS threads, each with one process at a time.
//
//     spawn COUNT THREADS PROGRAM REQUEST
//
// REQUEST is a file. Prints the total nanoseconds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_int left;
static char *program, request[1 << 16];
static size_t size;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void run_one(void) {
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) fail("pipe2");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], 0);
    posix_spawn_file_actions_adddup2(&actions, output[1], 1);
    char *arguments[] = {program, "run", NULL}, *environment[] = {"PATH=/usr/bin:/bin", NULL};
    pid_t process;
    int error = posix_spawn(&process, program, &actions, NULL, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        fprintf(stderr, "posix_spawn: %s\n", strerror(error));
        exit(1);
    }
    close(input[0]);
    close(output[1]);
    if (write(input[1], request, size) != (ssize_t)size) fail("write");
    close(input[1]);
    char answer[4096];
    ssize_t count, total = 0;
    while ((count = read(output[0], answer, sizeof answer)) > 0) total += count;
    close(output[0]);
    int status;
    if (waitpid(process, &status, 0) != process || status != 0 || total == 0) fail("the program");
}

static void *work(void *nothing) {
    while (atomic_fetch_sub(&left, 1) > 0) run_one();
    return nothing;
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: spawn COUNT THREADS PROGRAM REQUEST\n");
        return 64;
    }
    left = atoi(arguments[1]);
    int threads = atoi(arguments[2]);
    program = arguments[3];
    FILE *file = fopen(arguments[4], "r");
    if (file == NULL) fail(arguments[4]);
    size = fread(request, 1, sizeof request, file);
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    pthread_t workers[256];
    if (threads < 1 || threads > 256) return 64;
    for (int index = 0; index < threads; index++) {
        if (pthread_create(&workers[index], NULL, work, NULL) != 0) fail("pthread_create");
    }
    for (int index = 0; index < threads; index++) pthread_join(workers[index], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%lld\n", (end.tv_sec - start.tv_sec) * 1000000000LL + (end.tv_nsec - start.tv_nsec));
    return 0;
}

#define _GNU_SOURCE
#include "CRawInotify.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

int cri_eventfd(void) {
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return fd >= 0 ? fd : -errno;
}

int cri_start_thread(void *(*run)(void *), void *argument) {
    // A thread begins with the mask of the one that makes it: the signals stay with the program's own.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) return error;
    pthread_setname_np(thread, "raw-inotify");
    pthread_detach(thread);
    return 0;
}

// What RawInotify needs of Linux and the Glibc and Musl modules of Swift lack, or have each in its own way.
//
// This header includes nothing, so that it defines nothing twice.
#ifndef CRAWINOTIFY_H
#define CRAWINOTIFY_H

/// A counter descriptor (CLOEXEC, non-blocking) to wake a poll; negative errno on failure.
int cri_eventfd(void);

/// Runs the function on a thread of its own that nobody waits for and that takes no signals; 0, or the errno.
int cri_start_thread(void *(*run)(void *), void *argument);

#endif

// A library that is loaded on first use. Linking it would slow down every start of the program.
#ifndef CSHARED_LIBRARY_H
#define CSHARED_LIBRARY_H

#include <stddef.h>

/// A function of the library, and the pointer that it is called through.
struct csl_function {
    const char *name;
    void **pointer;
};

/// Loads the library and finds the functions. `problem` is empty on success; otherwise it contains the reason for the
/// failure.
void csl_load(
    const char *library, const struct csl_function *functions, size_t count, char *problem, size_t capacity);

/// The struct member for a pointer, and the list entry that fills it in; both apply to a list of names.
#define CSL_POINTER(name) __typeof__(&name) name;
#define CSL_FUNCTION(name) {#name, (void **)&calls.name},

#endif

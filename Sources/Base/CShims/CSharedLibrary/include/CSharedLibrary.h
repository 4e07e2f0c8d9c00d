// A library that is loaded when it is first used: linked, it would make every start of the program slower.
#ifndef CSHARED_LIBRARY_H
#define CSHARED_LIBRARY_H

#include <stddef.h>

/// A function of the library, and the pointer by which it is called.
struct csl_function {
    const char *name;
    void **pointer;
};

/// Loads the library and finds the functions; problem stays empty, or says why that can't be done.
void csl_load(
    const char *library, const struct csl_function *functions, size_t count, char *problem, size_t capacity);

/// A member for the pointer, and the entry of the list that has it filled in; for a list of names.
#define CSL_POINTER(name) __typeof__(&name) name;
#define CSL_FUNCTION(name) {#name, (void **)&calls.name},

#endif

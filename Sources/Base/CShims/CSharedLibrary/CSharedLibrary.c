#include "CSharedLibrary.h"

#include <dlfcn.h>
#include <stdio.h>

void csl_load(
    const char *library, const struct csl_function *functions, size_t count, char *problem, size_t capacity) {
    problem[0] = 0;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *error = dlerror();
        snprintf(problem, capacity, "%s", error ? error : "it can't be loaded");
        return;
    }
    for (size_t index = 0; index < count; index++) {
        *functions[index].pointer = dlsym(handle, functions[index].name);
        if (!*functions[index].pointer) {
            snprintf(problem, capacity, "%s has no '%s'", library, functions[index].name);
            return;
        }
    }
}

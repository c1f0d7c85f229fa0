/* The functions under test: candidates linked in, or libraries bound by the operator's adapter. */
#include "harness.h"

#include <stdio.h>

#ifdef TENSOROP_DLOPEN

#include <dlfcn.h>

/* Valid for every signature: in each supported ABI the caller passes and removes the arguments. */
static int nothing(void) { return 0; }

/* Paths are padded with leading slashes to one length (runners/session.py). */
static const char *shown(const char *path) {
    while (path[0] == '/' && path[1] == '/')
        path++;
    return path;
}

int entry_bind(unsigned number, const char *const text[5], char *error, size_t error_size) {
    if (number >= LIBRARY_LIMIT) {
        snprintf(error, error_size, "more than %d libraries", LIBRARY_LIMIT);
        return -1;
    }
    void *handle = dlopen(*text[0] ? text[0] : NULL, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(error, error_size, "%s", shown(dlerror()));
        return -1;
    }
    if (tensorop_bind(&state()->bound[number], text[1], text[2], text[3], text[4], dlsym, handle)) {
        snprintf(error, error_size, "%s has no %s function for %s (prefix '%s', suffix '%s')",
                 shown(text[0]), text[1], text[2], text[3], text[4]);
        return -1;
    }
    state()->empty[number] = (struct tensorop_bound){state()->bound[number].call, (void *)nothing};
    return 0;
}

int entry_known(unsigned number) { return number < LIBRARY_LIMIT && state()->bound[number].call; }

tensorop_entry entry_itself(unsigned number) {
    (void)number;
    return NULL;
}

void entry_call(unsigned number, const struct tensorop_call *call) {
    state()->bound[number].call(&state()->bound[number], call);
}

void entry_call_empty(unsigned number, const struct tensorop_call *call) {
    state()->empty[number].call(&state()->empty[number], call);
}

#else

/* A program of several kernels has two entries a kernel. */
#define EACH(f)                                                                                    \
    f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15) f(16)    \
        f(17) f(18) f(19) f(20) f(21) f(22) f(23) f(24) f(25) f(26) f(27) f(28) f(29) f(30) f(31)
#define DECLARED(n)                                                                                \
    __attribute__((weak)) void tensorop_candidate_##n(const struct tensorop_call *call);
#define NAMED(n) tensorop_candidate_##n,
EACH(DECLARED)

static const tensorop_entry candidate[] = {EACH(NAMED)};

int entry_bind(unsigned number, const char *const text[5], char *error, size_t error_size) {
    (void)number, (void)text;
    snprintf(error, error_size, "a static harness cannot load libraries");
    return -1;
}

int entry_known(unsigned number) {
    return number < sizeof candidate / sizeof *candidate && candidate[number];
}

tensorop_entry entry_itself(unsigned number) { return candidate[number]; }

void entry_call(unsigned number, const struct tensorop_call *call) { candidate[number](call); }

static void nothing(const struct tensorop_call *call) { (void)call; }

void entry_call_empty(unsigned number, const struct tensorop_call *call) {
    static volatile tensorop_entry empty = nothing;
    (void)number;
    empty(call);
}

#endif

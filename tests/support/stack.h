/* How deep calls reach into the stack of the thread that makes them: `calls` runs in a thread whose
 * stack is painted, which `reached` looks at after each call, then in one of PTHREAD_STACK_MIN.
 * Prints the most bytes and the call that took them. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAINTED = 1 << 18, PAINT = 0xa5, NUMBERS = 1 << 20, KEPT = 512 };

static unsigned char *stack; /* NULL in the small one */
static const unsigned char *top;
static size_t most;
static char by[200] = "nothing";
static void *numbers[3]; /* zeros: what is read, and what is written */

static void calls(void);

static void reached(const char *what) {
    if (!stack)
        return;
    size_t low = 0;
    while (stack[low] == PAINT)
        ++low;
    const size_t depth = (size_t)(top - (stack + low));
    if (depth > most) {
        most = depth;
        snprintf(by, sizeof by, "%s", what);
    }
    if (depth > KEPT) /* not the frames of this function and its caller */
        for (size_t i = low; i < low + depth - KEPT; ++i)
            ((volatile unsigned char *)stack)[i] = PAINT;
}

static void *within(void *unused) {
    top = __builtin_frame_address(0);
    calls();
    return unused;
}

static int run(pthread_attr_t *attributes) {
    pthread_t thread;
    return pthread_create(&thread, attributes, within, NULL) || pthread_join(thread, NULL);
}

int main(void) {
    pthread_attr_t attributes;
    for (int i = 0; i < 3; ++i)
        numbers[i] = calloc(NUMBERS, sizeof(double));
    if (posix_memalign((void **)&stack, 4096, PAINTED) || pthread_attr_init(&attributes))
        return 2;
    memset(stack, PAINT, PAINTED);
    if (pthread_attr_setstack(&attributes, stack, PAINTED) || run(&attributes))
        return 3;
    printf("%zu bytes: %s\n", most, by);
    fflush(stdout);
    stack = NULL;
    if (pthread_attr_init(&attributes) ||
        pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)))
        return 4;
    return run(&attributes);
}

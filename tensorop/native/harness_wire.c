/* The pipes to the parent, moved away from stdin and stdout. A candidate can neither read nor
 * write there. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void wire_open(void) {
    state()->in_fd = fcntl(0, F_DUPFD_CLOEXEC, 64);
    state()->out_fd = fcntl(1, F_DUPFD_CLOEXEC, 64);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (state()->in_fd < 0 || state()->out_fd < 0 || null < 0 || dup2(null, 0) < 0 ||
        dup2(null, 1) < 0)
        _exit(3);
    close(null);
}

int wire_read(void *to, size_t size) {
    struct state *s = state();
    uint8_t *at = to;
    while (size) {
        size_t held = s->ahead_end - s->ahead_at;
        if (held) {
            size_t n = held < size ? held : size;
            memcpy(at, s->ahead + s->ahead_at, n);
            s->ahead_at += n;
            at += n;
            size -= n;
            continue;
        }
        int direct = size >= sizeof s->ahead;
        ssize_t n = direct ? read(s->in_fd, at, size) : read(s->in_fd, s->ahead, sizeof s->ahead);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        if (direct) {
            at += n;
            size -= (size_t)n;
        } else {
            s->ahead_at = 0;
            s->ahead_end = (size_t)n;
        }
    }
    return 0;
}

void wire_write(const void *from, size_t size) {
    const uint8_t *at = from;
    while (size) {
        ssize_t n = write(state()->out_fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(4);
        at += n;
        size -= (size_t)n;
    }
}

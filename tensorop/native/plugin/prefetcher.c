#include "prefetcher.h"

#include <string.h>

void prefetcher_init(struct prefetcher *prefetcher, const struct prefetch *how) {
    memset(prefetcher, 0, sizeof *prefetcher);
    prefetcher->how = *how;
}

static unsigned ask(struct prefetcher *p, struct stream *s, uint64_t line, uint64_t *wanted) {
    unsigned n = 0;
    if (s->seen < p->how.train)
        return 0;
    for (unsigned ahead = 1; ahead <= p->how.distance; ahead++) {
        uint64_t want = line + (uint64_t)((int64_t)ahead * s->direction);
        bool fresh = s->direction > 0 ? want > s->asked : want < s->asked;
        if (fresh)
            wanted[n++] = want;
    }
    if (n)
        s->asked = wanted[n - 1];
    return n;
}

unsigned prefetcher_touch(struct prefetcher *p, uint64_t line, uint64_t *wanted) {
    struct stream *oldest = p->streams;
    if (!p->how.streams)
        return 0;
    p->clock++;
    for (unsigned i = 0; i < p->how.streams; i++) {
        struct stream *s = &p->streams[i];
        if (s->used && s->direction && line == s->next) {
            s->next = line + (uint64_t)(int64_t)s->direction;
            s->seen++;
            s->used = p->clock;
            return ask(p, s, line, wanted);
        }
        if (s->used < oldest->used)
            oldest = s;
    }
    for (unsigned i = 0; i < p->how.streams; i++) { /* a second line fixes the direction */
        struct stream *s = &p->streams[i];
        if (s->used && !s->direction && (line == s->next + 1 || line + 1 == s->next)) {
            s->direction = line > s->next ? 1 : -1;
            s->next = line + (uint64_t)(int64_t)s->direction;
            s->asked = line;
            s->seen = 2;
            s->used = p->clock;
            return ask(p, s, line, wanted);
        }
    }
    *oldest = (struct stream){.next = line, .asked = line, .seen = 1, .used = p->clock};
    if (p->how.train <= 1) { /* next-line: a single miss is enough, upwards */
        oldest->direction = 1;
        oldest->next = line + 1;
        return ask(p, oldest, line, wanted);
    }
    return 0;
}

#include "forward.h"

/* The last stores, by line; another line with the same index replaces one. */
enum { PLACE_BITS = 8, PLACES = 1 << PLACE_BITS };

static struct {
    uint64_t line;
    uint16_t parts;
    vec at;
} places[PLACES];

static unsigned place_of(uint64_t line) {
    return (unsigned)(line * UINT64_C(0x9e3779b97f4a7c15) >> (64 - PLACE_BITS));
}

void forward_restart(void) {
    for (int i = 0; i < PLACES; i++)
        places[i].parts = 0;
}

void forward_rebase(const vec *by) {
    for (int i = 0; i < PLACES; i++)
        places[i].at = vsub(places[i].at, *by);
}

void forward_store(uint64_t line, uint16_t parts, vec at) {
    unsigned i = place_of(line);
    if (places[i].line != line || !places[i].parts) {
        places[i].line = line;
        places[i].parts = parts;
        places[i].at = at;
    } else {
        places[i].parts |= parts;
        places[i].at = vmax(places[i].at, at);
    }
}

vec forward_load(uint64_t line, uint16_t parts, vec t) {
    unsigned i = place_of(line);
    return places[i].line == line && places[i].parts & parts ? vmax(t, places[i].at) : t;
}

/* Reads a plan's timed problems and describes them in rows. */
#define TENSOROP_KIT_NAMES
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct held_type *type_at(int number) { return &held_types[number]; }

const struct held_type *timed_step(const char *step, int *layout, int *numbers) {
    char dtype[32];
    int taken = 0;
    if (sscanf(step, "time %31s%n", dtype, &taken) != 1)
        return NULL;
    for (int i = 0; i < LAYOUTS + NUMBERS; i++) {
        int more = 0;
        if (sscanf(step + taken, "%d%n", i < LAYOUTS ? &layout[i] : &numbers[i - LAYOUTS], &more) !=
            1)
            return NULL;
        taken += more;
    }
    for (int i = 0; i < TYPES; i++)
        if (!strcmp(dtype, held_types[i].dtype))
            return &held_types[i];
    return NULL;
}

void add_timed(const char *step) {
    int layout[LAYOUTS + 1], numbers[NUMBERS];
    const struct held_type *const type = timed_step(step, layout, numbers);
    if (!type)
        return;
    row_add("\"dtype\":\"%s\",\"options\":{", type->dtype);
    for (int i = 0; i < LAYOUTS; i++)
        row_add("%s\"%s\":%d", i ? "," : "", layout_names[i], layout[i]);
    row_add("},\"dims\":{");
    for (int i = 0; i < NUMBERS; i++)
        row_add("%s\"%s\":%d", i ? "," : "", number_names[i], numbers[i]);
    row_add("}");
}

/* The functions under test, linked statically: the controls, and the library, which the operator's
 * adapter binds for each dtype. tensorop/kits/program.py generates the tables. */
#include "kit.h"

#include <stdio.h>
#include <string.h>

struct kit_symbol {
    const char *name;
    void *at;
};
extern const struct kit_symbol kit_symbols[];
extern const unsigned kit_symbols_count;
extern const tensorop_entry kit_controls[];
extern const unsigned kit_controls_count;

static void *lookup(void *handle, const char *symbol) {
    (void)handle;
    for (unsigned i = 0; i < kit_symbols_count; i++)
        if (!strcmp(kit_symbols[i].name, symbol))
            return kit_symbols[i].at;
    return NULL;
}

static int nothing(void) { return 0; }

int entry_bind(unsigned number, const char *const text[5], char *error, size_t error_size) {
    if (number >= KIT_CONTROL ||
        tensorop_bind(&state()->bound[number], text[1], text[2], text[3], text[4], lookup, NULL)) {
        snprintf(error, error_size, "the kit has no %s function for %s", text[1], text[2]);
        return -1;
    }
    state()->empty[number] = (struct tensorop_bound){state()->bound[number].call, (void *)nothing};
    return 0;
}

int entry_known(unsigned number) {
    if (number >= KIT_CONTROL)
        return number - KIT_CONTROL < kit_controls_count;
    return state()->bound[number].call != NULL;
}

tensorop_entry entry_itself(unsigned number) {
    (void)number;
    return NULL;
}

void entry_call(unsigned number, const struct tensorop_call *call) {
    if (number >= KIT_CONTROL)
        kit_controls[number - KIT_CONTROL](call);
    else
        state()->bound[number].call(&state()->bound[number], call);
}

void entry_call_empty(unsigned number, const struct tensorop_call *call) {
    if (number < KIT_CONTROL)
        state()->empty[number].call(&state()->empty[number], call);
}

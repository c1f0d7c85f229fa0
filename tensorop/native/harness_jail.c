/* Puts the harness into its jail; jail.h has its rights there. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness.h"
#include "jail.h"

void confine_loading(unsigned needs) { jail_open(needs); }

int confine_calls(unsigned needs) { return jail_enter(needs); }

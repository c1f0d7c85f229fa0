/* Data on its way from a store to a load of the same place: a load has it no sooner than the store.
 */
#ifndef BOARD_FORWARD_H
#define BOARD_FORWARD_H

#include "board.h"

/* Nothing is on its way. */
void forward_restart(void);
void forward_rebase(const vec *by);

/* A store puts data into parts of a line (see struct touched) at a time. */
void forward_store(uint64_t line, uint16_t parts, vec at);

/* When the data of these parts is there; `t` where no store is known that is later. */
vec forward_load(uint64_t line, uint16_t parts, vec t);

#endif

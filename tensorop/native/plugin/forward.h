/* Store-to-load forwarding: a load of the same address gets the data at the earliest when the
 * store has it. */
#ifndef BOARD_FORWARD_H
#define BOARD_FORWARD_H

#include "board.h"

/* Forgets all stores. */
void forward_restart(void);
void forward_rebase(const vec *by);

/* A store writes data into parts of a line (see struct touched) at time `at`. */
void forward_store(uint64_t line, uint16_t parts, vec at);

/* The time at which the data of these parts is ready; `t` if no later store is known. */
vec forward_load(uint64_t line, uint16_t parts, vec t);

#endif

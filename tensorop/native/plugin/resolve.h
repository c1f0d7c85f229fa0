#ifndef BOARD_RESOLVE_H
#define BOARD_RESOLVE_H

#include "board.h"
#include "config.h"

/* An instruction with nothing in it: every operand absent, class unknown. */
void insn_clear(struct insn *insn);

/* The vector state after a vset instruction; `avl` is the requested length where the translator
 * knows it, else -1, and `seen` the elements a later access showed, else 0. */
void vstate_set(struct vstate *state, const struct insn *insn, int64_t avl, uint32_t seen,
                unsigned vlen);

/* The form of `insn` that a pipeline executes under `state`. */
void resolve(const struct insn *insn, const struct vstate *state, const struct config *config,
             struct uop *out);

#endif

#ifndef BOARD_RESOLVE_H
#define BOARD_RESOLVE_H

#include "board.h"
#include "config.h"

/* An empty instruction: no operands, class unknown. */
void insn_clear(struct insn *insn);

/* Sets the vector state after a vset instruction. `avl`: the requested length if the translator
 * knows it, else -1; `seen`: the elements of a later access, else 0. */
void vstate_set(struct vstate *state, const struct insn *insn, int64_t avl, uint32_t seen,
                unsigned vlen);

/* The form of `insn` that a pipeline executes under `state`. */
void resolve(const struct insn *insn, const struct vstate *state, const struct config *config,
             struct uop *out);

#endif

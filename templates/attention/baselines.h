/* Baselines: attention as a caller would compute it from products of matrices. */
#ifndef ATTENTION_BASELINES_H
#define ATTENTION_BASELINES_H

#include "call.h"
#include "slots.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "description.h"

#include "described.h"

void call_blocks_f32(const struct tensorop_bound *self, const struct tensorop_call *call);

#endif

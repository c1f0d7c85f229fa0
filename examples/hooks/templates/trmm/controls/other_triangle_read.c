/* fault: one diagonal of the other triangle is read
 * expect: wrong-result
 */
#include "trmm.h"

void tensorop_candidate_0(const struct tensorop_call *call) { trmm(call, ALPHA, UNIT_DIAGONAL, 1); }

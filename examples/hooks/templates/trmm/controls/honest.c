/* fault: none
 * expect: ok
 */
#include "trmm.h"

void tensorop_candidate_0(const struct tensorop_call *call) { trmm(call, ALPHA, UNIT_DIAGONAL, 0); }

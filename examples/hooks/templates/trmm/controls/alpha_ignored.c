/* fault: alpha is taken for 1
 * expect: wrong-result
 */
#include "trmm.h"

void tensorop_candidate_0(const struct tensorop_call *call) { trmm(call, 1, UNIT_DIAGONAL, 0); }

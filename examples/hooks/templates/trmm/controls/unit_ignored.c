/* fault: the diagonal is always read
 * expect: wrong-result
 */
#include "trmm.h"

void tensorop_candidate_0(const struct tensorop_call *call) { trmm(call, ALPHA, 0, 0); }

/* fault: beta is taken for 1
 * expect: wrong-result
 */
#include "syrk.h"

void tensorop_candidate_0(const struct tensorop_call *call) { syrk(call, ALPHA, 1, K, 0); }

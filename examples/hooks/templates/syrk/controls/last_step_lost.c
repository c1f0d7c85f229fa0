/* fault: the last step of k is left out
 * expect: wrong-result
 */
#include "syrk.h"

void tensorop_candidate_0(const struct tensorop_call *call) { syrk(call, ALPHA, BETA, K - 1, 0); }

/* fault: none
 * expect: ok
 */
#include "syrk.h"

void tensorop_candidate_0(const struct tensorop_call *call) { syrk(call, ALPHA, BETA, K, 0); }

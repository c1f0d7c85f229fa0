/* fault: one diagonal of the other triangle is written
 * expect: wrong-result
 */
#include "syrk.h"

void tensorop_candidate_0(const struct tensorop_call *call) { syrk(call, ALPHA, BETA, K, 1); }

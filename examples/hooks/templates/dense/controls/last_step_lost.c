/* fault: the last step of k is left out
 * expect: wrong-result
 */
#include "dense.h"

void tensorop_candidate_0(const struct tensorop_call *call) { dense(call, K - 1, M, RELU); }

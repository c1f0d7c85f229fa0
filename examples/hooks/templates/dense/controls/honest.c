/* fault: none
 * expect: ok
 */
#include "dense.h"

void tensorop_candidate_0(const struct tensorop_call *call) { dense(call, K, M, RELU); }

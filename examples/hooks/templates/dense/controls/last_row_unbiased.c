/* fault: the last row gets no bias
 * expect: wrong-result
 */
#include "dense.h"

void tensorop_candidate_0(const struct tensorop_call *call) { dense(call, K, M - 1, RELU); }

/* fault: the diagonal is left out
 * expect: wrong-result
 */
#include "trmm.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    trmm(call, ALPHA, UNIT_DIAGONAL, -1);
}

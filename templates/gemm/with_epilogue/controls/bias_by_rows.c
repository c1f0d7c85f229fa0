/* fault: the bias is read by rows
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(bias_by_rows) {
    struct finish f = finish_of(c);
    REAL more = f.bias ? f.bias[i % N] : 0;
    f.bias = 0;
    int activation = f.activation;
    f.activation = 0;
    return activate(finished(&f, row_major, sum, i, j) + more, activation);
}

CANDIDATE(bias_by_rows)

/* fault: ReLU is left out
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(relu_ignored) {
    struct finish f = finish_of(c);
    f.activation = f.activation == ACTIVATION_relu ? 0 : f.activation;
    return finished(&f, row_major, sum, i, j);
}

CANDIDATE(relu_ignored)

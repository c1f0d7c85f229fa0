/* fault: the bias is added after the ReLU
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    const int biased = z.biased;
    z.biased = 0;
    conv2d_all(&z);
    for (int64_t n = 0; n < z.n && biased; n++)
        for (int64_t k = 0; k < z.k; k++)
            for (int64_t i = 0; i < z.high; i++)
                for (int64_t j = 0; j < z.wide; j++)
                    z.y[conv2d_y(&z, n, k, i, j)] += z.bias[k];
}

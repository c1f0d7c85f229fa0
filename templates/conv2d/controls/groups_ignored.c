/* fault: every group reads the channels of the first
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    const int64_t of = z.c / z.g;
    for (int64_t n = 0; n < z.n; n++)
        for (int64_t k = 0; k < z.k; k++)
            for (int64_t i = 0; i < z.high; i++)
                for (int64_t j = 0; j < z.wide; j++) {
                    REAL sum = 0;
                    for (int64_t c = 0; c < of; c++)
                        for (int64_t r = 0; r < z.r; r++)
                            for (int64_t s = 0; s < z.s; s++) {
                                const int64_t a = i * z.u + r * z.d - z.p,
                                              b = j * z.v + s * z.e - z.l;
                                if (a >= 0 && a < z.h && b >= 0 && b < z.w)
                                    sum += z.taps[conv2d_tap(&z, k, c, r, s)] *
                                           z.x[conv2d_x(&z, n, c, a, b)];
                            }
                    z.y[conv2d_y(&z, n, k, i, j)] = conv2d_last(&z, k, sum);
                }
}

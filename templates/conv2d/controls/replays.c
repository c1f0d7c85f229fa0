/* fault: a call repeats an earlier output if the sizes are the same
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    static REAL kept[1 << 14];
    static int64_t size;
    struct conv2d z = conv2d_of(call);
    const int64_t all = z.n * z.k * z.high * z.wide;
    if (all != size) {
        conv2d_all(&z);
        size = all <= 1 << 14 ? all : 0;
    } else {
        for (int64_t i = 0; i < all; i++)
            z.y[i] = kept[i];
    }
    for (int64_t i = 0; i < size; i++)
        kept[i] = z.y[i];
}

/* A softmax of scores in memory, for the baseline's kernels and its host code. */
#ifndef TENSOROP_SOFTMAX_H
#define TENSOROP_SOFTMAX_H

#include <stdint.h>

/* `rows` rows of scores and of weights, ld elements apart. The rows of a product, `together`, are
 * those of each query's `shared` heads, one after the other. `lanes` threads take the keys of a row
 * in turn. */
struct softmax {
    int64_t rows, ld, together;
    int shared, lanes;
};

#endif

// Comparison with the exact result, and a plain kernel with an optional fault.
#include "kit.cuh"

#include "faults.h"
#include "judged.h"

// Counts elements that are off by more than one rounding to float and one to the type.
extern "C" __global__ void kit_compare(judged p, const uint16_t *x, const uint16_t *y,
                                       unsigned long long *wrong) {
    const int64_t one = int64_t(p.m) * p.n;
    for (int64_t i = first(); i < one * p.batch; i += all()) {
        const int64_t row = i % one / p.m, col = i % p.m;
        const double want = double(p.alpha) * read(x, i / one * one + col * p.n + row, p.format);
        const double bound =
            (p.format == BF16 ? 0x1p-8 : 0x1p-11) * fabs(want) * (1 + 0x1p-6) + 0x1p-25;
        if (!(fabs(read(y, i, p.format) - want) <= bound))
            atomicAdd(wrong, 1ull);
    }
}

extern "C" __global__ void kit_plain(judged p, const uint16_t *x, uint16_t *y, int fault) {
    const int64_t one = int64_t(p.m) * p.n;
    for (int64_t i = first(); i < one * p.batch; i += all()) {
        const int64_t row = i % one / p.m, col = i % p.m;
        if (fault == FAULT_LOSES_LAST_COLUMN && col == p.m - 1)
            continue;
        const double v = read(x, i / one * one + col * p.n + row, p.format);
        write(y, i, fault == FAULT_IGNORES_ALPHA ? v : p.alpha * v, p.format);
    }
}

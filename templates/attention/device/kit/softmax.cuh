// The softmax between the baseline's two products, in two kernels: what each lane of a row found,
// then the weights. Neighbouring threads read neighbouring keys.
#include "softmax.h"

namespace {

// The keys that the query of a row sees: from `begin` to before `end`.
struct Keys {
    int64_t begin, end;
};
__device__ Keys keys_of(const judged &p, const softmax &of, int64_t row) {
    const int64_t own = row % of.together / of.shared + (p.align ? 0 : int64_t(p.t) - p.s);
    const int64_t low = p.left < 0 || own < p.left ? 0 : own - p.left;
    const int64_t high = p.right < 0 || own + p.right >= p.t ? p.t : own + p.right + 1;
    return {low, high};
}

// Rounds a weight, from 0 to 1, to the nearest 16-bit element.
__device__ uint16_t weight(float x, int format) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (format == BF16)
        return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    if (x < 0x1p-14f) // subnormal in f16
        return uint16_t(rintf(x * 0x1p24f));
    return uint16_t((bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13);
}

} // namespace

// parts: the greatest score of each lane, and the sum of its weights relative to that.
extern "C" __global__ void kit_softmax_parts(judged p, softmax of, const float *scores,
                                             float *parts) {
    for (int64_t at = first(); at < of.rows * of.lanes; at += all()) {
        const float *const row = scores + at / of.lanes * of.ld;
        const Keys seen = keys_of(p, of, at / of.lanes);
        float most = -HUGE_VALF, total = 0;
        for (int64_t j = at % of.lanes; j < seen.end; j += of.lanes)
            most = j < seen.begin ? most : fmaxf(most, row[j]);
        for (int64_t j = at % of.lanes; j < seen.end; j += of.lanes)
            total += j < seen.begin ? 0 : expf(row[j] - most);
        parts[2 * at] = most, parts[2 * at + 1] = total;
    }
}

extern "C" __global__ void kit_softmax(judged p, softmax of, const float *scores,
                                       const float *parts, uint16_t *weights) {
    for (int64_t at = first(); at < of.rows * of.lanes; at += all()) {
        const int64_t number = at / of.lanes;
        const float *const row = scores + number * of.ld, *const part =
                                                              parts + 2 * number * of.lanes;
        uint16_t *const to = weights + number * of.ld;
        const Keys seen = keys_of(p, of, number);
        float most = -HUGE_VALF, total = 0;
        for (int i = 0; i < of.lanes; ++i)
            most = fmaxf(most, part[2 * i]);
        for (int i = 0; i < of.lanes; ++i)
            total += part[2 * i + 1] == 0 ? 0 : part[2 * i + 1] * expf(part[2 * i] - most);
        for (int64_t j = at % of.lanes; j < p.t; j += of.lanes)
            to[j] =
                j < seen.begin || j >= seen.end ? 0 : weight(expf(row[j] - most) / total, p.format);
    }
}

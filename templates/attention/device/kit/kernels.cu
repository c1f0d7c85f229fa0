// Attention in fp64 with its error bound, comparisons with it, and a plain kernel with an optional
// fault.
#include "kit.cuh"

#include "faults.h"
#include "judged.h"
#include "softmax.cuh"

namespace {

constexpr int BLOCK = 64; // keys that the plain kernel takes together
// Bounds as in templates/attention/reference.py.
constexpr double U = 0x1p-24, EXP = 4, LEAST_BLOCK = 16, MARGIN = 1.1;

__device__ const int32_t *table(uint64_t at) { return reinterpret_cast<const int32_t *>(at); }

// A row of O by its number: batch in memory, head and row; its sequence, the number of its query
// there, and what the sequence has.
struct Row {
    int64_t b, h, row, sequence, i, s, t, k0;
};
__device__ Row row_of(const judged &p, int64_t number) {
    Row r = {number / p.s / p.h, number / p.s % p.h, number % p.s};
    r.sequence = r.b, r.i = r.row, r.s = p.s, r.t = p.t, r.k0 = 0;
    if (p.starts_q) {
        const int32_t *const starts = table(p.starts_q);
        while (starts[r.sequence + 1] <= r.row)
            ++r.sequence;
        r.i = r.row - starts[r.sequence], r.s = starts[r.sequence + 1] - starts[r.sequence];
    }
    if (p.lengths)
        r.t = table(p.lengths)[r.sequence];
    if (p.starts_k) {
        r.k0 = table(p.starts_k)[r.sequence];
        r.t = table(p.starts_k)[r.sequence + 1] - r.k0;
    }
    return r;
}
__device__ int64_t at_q(const judged &p, Row r) {
    return r.b * p.q.batch + r.h * p.q.head + r.row * p.q.row;
}
__device__ int64_t at_o(const judged &p, Row r) {
    return r.b * p.o.batch + r.h * p.o.head + r.row * p.o.row;
}
__device__ int64_t at_kv(const judged &p, const lying &of, Row r, int64_t key) {
    const int64_t head = r.h / (p.h / p.g) * of.head;
    if (!p.pages)
        return (p.starts_k ? r.k0 * of.row : r.sequence * of.batch) + head + key * of.row;
    const int64_t page = table(p.pages)[r.sequence * p.pages_row + (key >> p.page)];
    return page * of.batch + head + (key & ((1 << p.page) - 1)) * of.row;
}
__device__ bool seen(const judged &p, Row r, int64_t key, int more) {
    const int64_t own = r.i + (p.align ? 0 : r.t - r.s);
    return (p.left < 0 || key >= own - p.left) && (p.right < 0 || key <= own + p.right + more);
}
__device__ int64_t number_of(picked of, int64_t i) { return i * of.step + of.shift; }
__device__ float score(const judged &p, const uint16_t *q, const uint16_t *k, Row r, int64_t key,
                       int more, float scale) {
    const int64_t from = at_q(p, r), to = at_kv(p, p.k, r, key);
    float sum = 0;
    for (int i = 0; i < p.d; ++i)
        sum += float(read(q, from + i, p.format) * read(k, to + i, p.format));
    return seen(p, r, key, more) ? sum * scale : -HUGE_VALF;
}
__device__ double gamma_of(double n) { return n * U / (1 - n * U); }

} // namespace

// Scores of picked rows and all keys, and the sums of the terms' magnitudes.
extern "C" __global__ void kit_scores(judged p, picked of, const uint16_t *q, const uint16_t *k,
                                      double *scores, double *sizes) {
    for (int64_t at = first(); at < of.count * p.t; at += all()) {
        const Row r = row_of(p, number_of(of, at / p.t));
        const int64_t key = at % p.t, from = at_q(p, r);
        const int64_t to = key < r.t ? at_kv(p, p.k, r, key) : 0;
        double sum = 0, size = 0;
        for (int c = 0; c < p.d && key < r.t; ++c) {
            const double x = read(q, from + c, p.format) * read(k, to + c, p.format);
            sum += x, size += fabs(x);
        }
        scores[at] = key < r.t && seen(p, r, key, 0) ? double(p.scale) * sum : -HUGE_VAL;
        sizes[at] = fabs(double(p.scale)) * size;
    }
}

// Makes weights of scores, and relative error bounds of magnitudes. rows: log-sum-exp, its bound,
// and the sum of all weights' errors.
extern "C" __global__ void kit_weights(judged p, picked of, double *scores, double *sizes,
                                       double *rows) {
    for (int64_t i = first(); i < of.count; i += all()) {
        double *const w = scores + i * p.t, *const e = sizes + i * p.t;
        double most = -HUGE_VAL, total = 0, errors = 0;
        for (int64_t j = 0; j < p.t; ++j)
            most = fmax(most, w[j]);
        const double shift = most == -HUGE_VAL ? 0 : most, blocks = ceil(p.t / LEAST_BLOCK) + 1;
        for (int64_t j = 0; j < p.t; ++j) {
            const double away = w[j] - shift;
            w[j] = exp(away), total += w[j];
            const double of_score = gamma_of(p.d + 3) * e[j] + (w[j] == 0 ? 0 : U * fabs(away));
            e[j] = w[j] == 0 ? 0 : expm1(of_score + blocks * (EXP + 3) * U) + gamma_of(p.t + 2);
        }
        for (int64_t j = 0; j < p.t; ++j)
            w[j] /= total == 0 ? 1 : total, errors += w[j] * e[j];
        const double lse = most + log(total);
        rows[3 * i] = total == 0 ? -HUGE_VAL : lse, rows[3 * i + 2] = errors;
        rows[3 * i + 1] = total == 0 ? 0 : MARGIN * (errors + U * (fabs(most) + fabs(lse) + 8));
    }
}

// found: of each element of picked rows the right value, its bound, and the variance of rounding.
extern "C" __global__ void kit_outputs(judged p, picked of, const uint16_t *v,
                                       const double *weights, const double *errors,
                                       const double *rows, double *found) {
    const double unit = p.format == BF16 ? 0x1p-8 : 0x1p-11,
                 tiny = p.format == BF16 ? 0x1p-126 : 0x1p-24;
    for (int64_t at = first(); at < of.count * p.dv; at += all()) {
        const int64_t i = at / p.dv, c = at % p.dv;
        const Row r = row_of(p, number_of(of, i));
        const double *const w = weights + i * p.t, *const e = errors + i * p.t;
        double o = 0, size = 0, error = 0, squares = 0, values = 0;
        for (int64_t j = 0; j < r.t; ++j) {
            const double x = read(v, at_kv(p, p.v, r, j) + c, p.format);
            o += w[j] * x, size += w[j] * fabs(x), error += w[j] * e[j] * fabs(x);
            squares += w[j] * w[j] * x * x, values += w[j] == 0 ? 0 : fabs(x);
        }
        double bound = MARGIN * (error + fabs(o) * rows[3 * i + 2] + unit * size + tiny * values) +
                       2 * U * fabs(o);
        bound += unit * (fabs(o) + bound) + tiny;
        found[3 * at] = o, found[3 * at + 1] = size == 0 ? 0 : bound;
        found[3 * at + 2] = unit * unit / 3 * (squares + o * o) + tiny * tiny;
    }
}

extern "C" __global__ void kit_compare(judged p, picked of, const uint16_t *o, const double *rows,
                                       const double *found, totals *sum) {
    double error2 = 0, ideal2 = 0, worst = 0;
    unsigned long long wrong = 0;
    for (int64_t at = first(); at < of.count * p.dv; at += all()) {
        const int64_t number = number_of(of, at / p.dv);
        const Row r = row_of(p, number);
        const double want = found[3 * at], bound = found[3 * at + 1];
        const double error = fabs(read(o, at_o(p, r) + at % p.dv, p.format) - want);
        const double relative = bound == 0 ? (error == 0 ? 0 : 2) : error / bound;
        wrong += !(relative <= 1);
        worst = fmax(worst, relative == relative ? relative : 1e300);
        error2 += error == error ? error * error : 0, ideal2 += found[3 * at + 2];
        if (at % p.dv == 0 && p.lse) {
            const double got = reinterpret_cast<const float *>(p.lse)[number],
                         lse = rows[3 * (at / p.dv)];
            wrong +=
                lse == -HUGE_VAL ? !(got == lse) : !(fabs(got - lse) <= rows[3 * (at / p.dv) + 1]);
        }
    }
    if (first() >= of.count * p.dv)
        return;
    atomicAdd(&sum->error2, error2);
    atomicAdd(&sum->ideal2, ideal2);
    atomicMax(&sum->worst, static_cast<unsigned long long>(__double_as_longlong(worst)));
    atomicAdd(&sum->wrong, wrong);
}

// One thread per element of O, which sums blocks of keys as a tuned kernel does.
extern "C" __global__ void kit_plain(judged p, const uint16_t *q, const uint16_t *k,
                                     const uint16_t *v, uint16_t *o, int fault, int call) {
    const float scale = p.scale * (fault == FAULT_WRONG_SCALE ? 1.03f : 1);
    const int more = fault == FAULT_MASK_OFF_BY_ONE;
    const int64_t rows = int64_t(p.b) * p.h * p.s;
    for (int64_t at = first(); at < rows * p.dv; at += all()) {
        Row r = row_of(p, at / p.dv);
        const int64_t c = at % p.dv;
        if (fault == FAULT_READS_ANOTHER_SEQUENCE)
            r.sequence = (r.sequence + 1) % p.sequences;
        const int64_t keys = r.t + (fault == FAULT_ONE_KEY_TOO_MANY);
        float most = -HUGE_VALF, total = 0, sum = 0;
        float total_before = 0, sum_before = 0; // of the first half of the keys
        for (int64_t begin = 0; begin < keys; begin += BLOCK) {
            const int64_t end = begin + BLOCK < keys ? begin + BLOCK : keys;
            if (fault == FAULT_SKIPS_A_BLOCK && begin == BLOCK)
                continue;
            const bool unscaled = fault == FAULT_ADDS_PARTS_AS_THEY_ARE;
            if ((unscaled || fault == FAULT_FORGETS_A_PART) && begin <= keys / 2 &&
                keys / 2 < begin + BLOCK) {
                if (unscaled)
                    total_before = total, sum_before = sum;
                most = -HUGE_VALF, total = 0, sum = 0;
            }
            float now = most;
            for (int64_t j = begin; j < end; ++j)
                now = fmaxf(now, score(p, q, k, r, j, more, scale));
            if (now == -HUGE_VALF)
                continue;
            const float factor = expf(most - now);
            total *= factor, sum *= fault == FAULT_DROPS_THE_RESCALE ? 1 : factor, most = now;
            for (int64_t j = begin; j < end; ++j) {
                const float w = expf(score(p, q, k, r, j, more, scale) - most);
                total += w;
                sum += float(rounded(w, p.format) * read(v, at_kv(p, p.v, r, j) + c, p.format));
            }
            if (fault == FAULT_COUNTS_PADDING)
                total += (begin + BLOCK - end) * expf(-most);
            if (fault == FAULT_SUMS_IN_16_BITS)
                total = float(rounded(total, p.format)), sum = float(rounded(sum, p.format));
        }
        total += total_before, sum += sum_before;
        float result = total > 0 ? sum / total : 0;
        if (fault == FAULT_ANOTHER_RESULT_EACH_TIME)
            result *= 1 + call * 0x1p-11f;
        write(o, at_o(p, r) + c, result, p.format);
        if (c == 0 && p.lse && fault != FAULT_FORGETS_THE_LOG_SUM_EXP)
            reinterpret_cast<float *>(p.lse)[at / p.dv] = most + logf(total);
    }
}

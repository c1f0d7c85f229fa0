// Products in fp64 with the magnitudes of their terms, comparisons with them, and a plain product
// with an optional fault.
#include "kit.cuh"

#include "faults.h"
#include "judged.h"

namespace {

__device__ double read_a(const judged &p, const uint16_t *a, int64_t part, int64_t row, int64_t k) {
    return read(a, part * p.stride_a + (p.a_along_m ? k * p.lda + row : row * p.lda + k), p.format);
}

__device__ double read_b(const judged &p, const uint16_t *b, int64_t part, int64_t k, int64_t col) {
    return read(b, part * p.stride_b + (p.b_along_k ? col * p.ldb + k : k * p.ldb + col), p.format);
}

} // namespace

// Sums of products and of their magnitudes, for chosen rows and columns (null: all). A block of 256
// threads computes 64 x 64 sums.
extern "C" __global__ void kit_reference(judged p, const uint16_t *a, const uint16_t *b,
                                         const int *rows, int row_count, const int *cols,
                                         int col_count, double *sums, double *magnitudes) {
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    const int64_t part = blockIdx.z;
    double sum[4][4] = {}, magnitude[4][4] = {};
    int64_t row[4], col[4];
    for (int i = 0; i < 4; ++i) {
        const int r = min(row0 + ty + 16 * i, row_count - 1),
                  c = min(col0 + tx + 16 * i, col_count - 1);
        row[i] = rows ? rows[r] : r, col[i] = cols ? cols[c] : c;
    }
    for (int k = 0; k < p.k; ++k) {
        double left[4], right[4];
        for (int i = 0; i < 4; ++i) {
            left[i] = read_a(p, a, part, row[i], k);
            right[i] = read_b(p, b, part, k, col[i]);
        }
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) {
                const double product = left[i] * right[j];
                sum[i][j] += product;
                magnitude[i][j] += fabs(product);
            }
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int64_t r = row0 + ty + 16 * i, c = col0 + tx + 16 * j;
            if (r < row_count && c < col_count) {
                const int64_t place = (part * row_count + r) * col_count + c;
                sums[place] = sum[i][j], magnitudes[place] = magnitude[i][j];
            }
        }
}

extern "C" __global__ void kit_compare(judged p, const uint16_t *before, const uint16_t *c,
                                       const int *rows, int row_count, const int *cols,
                                       int col_count, const double *sums, const double *magnitudes,
                                       totals *found) {
    const double unit = p.format_c == FLOAT  ? 0x1p-24
                        : p.format_c == BF16 ? 0x1p-8
                                             : 0x1p-11,
                 least = p.format_c == F16 ? 0x1p-25 : 0;
    double error2 = 0, ideal2 = 0, reference2 = 0, worst = 0;
    unsigned long long wrong = 0;
    const int64_t one = int64_t(row_count) * col_count;
    const int64_t end = one * p.batch;
    for (int64_t i = first(); i < end; i += all()) {
        const int64_t r = i % one / col_count, col = i % col_count;
        const int64_t place =
            i / one * p.stride_c + (rows ? rows[r] : r) * p.ldc + (cols ? cols[col] : col);
        double want = p.alpha * sums[i], magnitude = fabs(double(p.alpha)) * magnitudes[i];
        if (p.beta != 0) {
            const double old = p.beta * read(before, place, p.format_c);
            want += old, magnitude += fabs(old);
        }
        // The bound allows one rounding to the type of C, and fp32 sums in any order.
        const double bound = unit * fabs(want) * (1 + 0x1p-6) + least +
                             magnitude * (0x1p-24 * (4 + sqrt(double(p.k))) + p.coarse);
        const double error = fabs(read(c, place, p.format_c) - want);
        const double relative = magnitude == 0 ? (error == 0 ? 0 : 2) : error / bound;
        if (!(relative <= 1))
            ++wrong;
        worst = fmax(worst, relative == relative ? relative : 1e300);
        const double ideal = rounded(want, p.format_c) - want;
        if (error == error)
            error2 += error * error;
        ideal2 += ideal * ideal, reference2 += want * want;
    }
    if (first() >= end)
        return;
    atomicAdd(&found->error2, error2);
    atomicAdd(&found->ideal2, ideal2);
    atomicAdd(&found->reference2, reference2);
    atomicMax(&found->worst, static_cast<unsigned long long>(__double_as_longlong(worst)));
    atomicAdd(&found->wrong, wrong);
}

// y[r] += sum over c of M[r, c] x[c]; squares[r] += sum over c of M[r, c]^2. Both start as zeros.
// Lanes run along contiguous elements: one block per row, or if M is stored by columns one thread
// per row, with a part of the columns per blockIdx.y.
extern "C" __global__ void kit_matvec(const uint16_t *m, int rows, int cols, int64_t ld,
                                      int transposed, int format, const double *x, double *y,
                                      double *squares) {
    double s = 0, q = 0;
    const int64_t r = transposed ? first() : blockIdx.x;
    if (r >= rows)
        return;
    const int from = transposed ? blockIdx.y : threadIdx.x,
              step = transposed ? gridDim.y : blockDim.x;
    for (int c = from; c < cols; c += step) {
        const double v = read(m, transposed ? c * ld + r : r * ld + c, format);
        s += v * x[c], q += v * v;
    }
    if (q != 0)
        atomicAdd(&y[r], s);
    if (squares && q != 0)
        atomicAdd(&squares[r], q);
}

// One thread per element.
extern "C" __global__ void kit_plain(judged p, const uint16_t *a, const uint16_t *b, uint16_t *c,
                                     const float *workspace, int fault, int k_end, int call) {
    if (fault == FAULT_SKIPS_WHEN_C_IS_THERE && c[0] != 0xffff)
        return;
    const int64_t one = int64_t(p.m) * p.n;
    for (int64_t i = first(); i < one * p.batch; i += all()) {
        const int64_t part = i / one, row = i % one / p.n, col = i % p.n;
        float sum = 0;
        for (int k = 0; k < k_end; ++k) {
            float left = float(read_a(p, a, part, row, k)),
                  right = float(read_b(p, b, part, k, col));
            if (fault == FAULT_READS_BEYOND_A && row == p.m - 1 && k == k_end - 1)
                left += float(read(a, p.stride_a * p.batch, p.format));
            if (fault == FAULT_ROUNDS_TOO_MUCH && p.format == FLOAT) // as tf32 does
                left = float(rounded(left, F16)), right = float(rounded(right, F16));
            sum += left * right;
            if (fault == FAULT_ROUNDS_TOO_MUCH && p.format != FLOAT && k % 64 == 63)
                sum = float(rounded(sum, p.format));
        }
        const int64_t place = part * p.stride_c + row * p.ldc + col;
        float v = p.alpha * sum;
        if (p.beta != 0 && fault != FAULT_IGNORES_BETA)
            v += p.beta * float(read(c, place, p.format_c));
        if (fault == FAULT_NEEDS_ZEROED_WORKSPACE)
            v += workspace[0];
        if (fault == FAULT_ONE_ROW_WRONG_WHEN_LARGE && row == p.m / 4 * 3 && col % 2)
            v = -v;
        if (fault == FAULT_ANOTHER_RESULT_EACH_TIME)
            v *= 1 + call * 0x1p-11f;
        write(c, place, v, p.format_c);
    }
    if (first() == 0 && fault == FAULT_WRITES_BETWEEN_ROWS)
        c[p.n * (p.format_c == FLOAT ? 2 : 1)] = 0x3c00;
}

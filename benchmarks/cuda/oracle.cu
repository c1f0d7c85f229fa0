#include "oracle.h"
#include <cmath>
#include <cstring>
#include <random>

namespace oracle {
namespace {

constexpr int64_t EVERY_ELEMENT = int64_t(2048) * 2048 * 2048;

__host__ __device__ double widen(uint16_t bits, bool bf16) {
    if (bf16) {
        const uint32_t word = uint32_t(bits) << 16;
        float f;
        memcpy(&f, &word, 4);
        return f;
    }
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double value = exponent == 31  ? (mantissa ? NAN : INFINITY)
                   : exponent == 0 ? ldexp(double(mantissa), -24)
                                   : ldexp(1024.0 + mantissa, exponent - 25);
    return bits >> 15 ? -value : value;
}

// Round to nearest even at the precision of the type; its range is not reached by this data.
__host__ __device__ double rounded(double v, bool bf16) {
    if (v == 0)
        return 0;
    int e;
    frexp(v, &e);
    const int digits = bf16 ? 8 : 11;
    int unit = e - digits;
    if (!bf16 && unit < -24)
        unit = -24;
    return ldexp(rint(ldexp(v, -unit)), unit);
}

__host__ __device__ uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

__device__ uint16_t narrow(float f, bool bf16) {
    if (bf16) {
        const uint32_t word = __float_as_uint(f);
        return uint16_t((word + 0x7fff + (word >> 16 & 1)) >> 16);
    }
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(f));
    return bits;
}

__global__ void normal_kernel(uint16_t *p, int64_t count, uint64_t seed, bool bf16) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; 2 * i < count; i += step) {
        const uint64_t r = mix(seed ^ mix(i));
        const float u = (uint32_t(r) + 0.5f) * 2.3283064e-10f,
                    t = uint32_t(r >> 32) * 2.3283064e-10f;
        const float radius = sqrtf(-2 * logf(fminf(u, 0.99999994f)));
        p[2 * i] = narrow(radius * cospif(2 * t), bf16);
        if (2 * i + 1 < count)
            p[2 * i + 1] = narrow(radius * sinpif(2 * t), bf16);
    }
}

__global__ void hash_kernel(const uint16_t *p, int64_t rows, int64_t cols, int64_t ld,
                            unsigned long long *sum) {
    uint64_t mine = 0;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < rows * cols; i += step)
        mine += mix(p[i / cols * ld + i % cols] ^ uint64_t(i) << 16);
    atomicAdd(sum, static_cast<unsigned long long>(mine));
}

__global__ void differs_kernel(const uint16_t *p, int64_t rows, int64_t first, int64_t cols,
                               int64_t ld, uint16_t value, unsigned long long *sum) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < rows * cols; i += step)
        if (p[i / cols * ld + first + i % cols] != value)
            atomicAdd(sum, 1ull);
}

template <class Launch> uint64_t counted(Launch launch) {
    static unsigned long long *sum = nullptr;
    if (!sum)
        CHECK(cudaMalloc(&sum, 8));
    CHECK(cudaMemset(sum, 0, 8));
    launch(sum);
    CHECK(cudaGetLastError());
    uint64_t value;
    CHECK(cudaMemcpy(&value, sum, 8, cudaMemcpyDeviceToHost));
    return value;
}

template <class T> struct Device {
    T *p = nullptr;
    explicit Device(size_t count) { CHECK(cudaMalloc(&p, count * sizeof(T) + 8)); }
    Device(const Device &) = delete;
    ~Device() { CHECK(cudaFree(p)); }
    std::vector<T> host(size_t count) const {
        std::vector<T> v(count);
        CHECK(cudaMemcpy(v.data(), p, count * sizeof(T), cudaMemcpyDeviceToHost));
        return v;
    }
    void from(const std::vector<T> &v) {
        CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    }
};

// Sums of products, and of their magnitudes, of chosen rows and columns: 64 x 64 a block.
__global__ void reference_kernel(Problem p, const uint16_t *a, const uint16_t *b, const int *rows,
                                 int row_count, const int *cols, int col_count, double *sums,
                                 double *magnitudes) {
    __shared__ double sa[16][65], sb[16][65];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    double sum[4][4] = {}, magnitude[4][4] = {};
    for (int k0 = 0; k0 < p.k; k0 += 16) {
        for (int i = threadIdx.x; i < 1024; i += 256) {
            const int kk = p.a_km ? i / 64 : i % 16, r = p.a_km ? i % 64 : i / 16;
            double v = 0;
            if (row0 + r < row_count && k0 + kk < p.k) {
                const int64_t row = rows ? rows[row0 + r] : row0 + r;
                v = widen(a[p.a_km ? (k0 + kk) * p.lda + row : row * p.lda + k0 + kk], p.bf16);
            }
            sa[kk][r] = v;
        }
        for (int i = threadIdx.x; i < 1024; i += 256) {
            const int kk = p.b_nk ? i % 16 : i / 64, r = p.b_nk ? i / 16 : i % 64;
            double v = 0;
            if (col0 + r < col_count && k0 + kk < p.k) {
                const int64_t col = cols ? cols[col0 + r] : col0 + r;
                v = widen(b[p.b_nk ? col * p.ldb + k0 + kk : (k0 + kk) * p.ldb + col], p.bf16);
            }
            sb[kk][r] = v;
        }
        __syncthreads();
        for (int kk = 0; kk < 16; ++kk)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) {
                    const double product = sa[kk][ty + 16 * i] * sb[kk][tx + 16 * j];
                    sum[i][j] += product;
                    magnitude[i][j] += fabs(product);
                }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int r = row0 + ty + 16 * i, c = col0 + tx + 16 * j;
            if (r < row_count && c < col_count) {
                sums[int64_t(r) * col_count + c] = sum[i][j];
                magnitudes[int64_t(r) * col_count + c] = magnitude[i][j];
            }
        }
}

void reference(const Problem &p, const uint16_t *a, const uint16_t *b, const int *rows,
               int row_count, const int *cols, int col_count, double *sums, double *magnitudes) {
    const dim3 grid(ceil_div(col_count, 64), ceil_div(row_count, 64));
    reference_kernel<<<grid, 256>>>(p, a, b, rows, row_count, cols, col_count, sums, magnitudes);
    CHECK(cudaGetLastError());
}

struct Totals {
    double error2, ideal2, reference2;
    unsigned long long worst; // bits of a double >= 0, which order as the doubles do
    unsigned long long wrong;
};

__global__ void compare_kernel(Problem p, const uint16_t *before, const uint16_t *c,
                               const int *rows, int row_count, const int *cols, int col_count,
                               const double *sums, const double *magnitudes, Totals *totals) {
    const double unit = p.bf16 ? 0x1p-8 : 0x1p-11, least = p.bf16 ? 0 : 0x1p-25;
    double error2 = 0, ideal2 = 0, reference2 = 0, worst = 0;
    unsigned long long wrong = 0;
    const int64_t step = int64_t(gridDim.x) * blockDim.x, count = int64_t(row_count) * col_count;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += step) {
        const int64_t row = rows ? rows[i / col_count] : i / col_count;
        const int64_t col = cols ? cols[i % col_count] : i % col_count;
        double want = p.alpha * sums[i], magnitude = fabs(p.alpha) * magnitudes[i];
        if (p.beta != 0) {
            const double old = p.beta * widen(before[row * p.ldc + col], p.bf16);
            want += old, magnitude += fabs(old);
        }
        // One rounding to the type of C, and sums in fp32 whose order is the candidate's.
        const double bound = unit * fabs(want) * (1 + 0x1p-6) + least +
                             magnitude * 0x1p-24 * (4 + sqrt(double(p.k)));
        const double error = fabs(widen(c[row * p.ldc + col], p.bf16) - want);
        const double relative = magnitude == 0 ? (error == 0 ? 0 : 2) : error / bound;
        if (!(relative <= 1))
            ++wrong;
        worst = fmax(worst, relative == relative ? relative : 1e300);
        const double ideal = rounded(want, p.bf16) - want;
        error2 += error * error, ideal2 += ideal * ideal, reference2 += want * want;
    }
    atomicAdd(&totals->error2, error2);
    atomicAdd(&totals->ideal2, ideal2);
    atomicAdd(&totals->reference2, reference2);
    atomicMax(&totals->worst, static_cast<unsigned long long>(__double_as_longlong(worst)));
    atomicAdd(&totals->wrong, wrong);
}

// y[r] += sum over c of M[r, c] x[c]; squares[r] likewise of M[r, c]^2.
__global__ void matvec_kernel(const uint16_t *m, int rows, int cols, int64_t ld, bool transposed,
                              bool bf16, const double *x, double *y, double *squares) {
    __shared__ double sum[8][33], square[8][33];
    // Along a stored row the lanes run over columns; along a stored column, over rows.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t base = blockIdx.x * int64_t(transposed ? 32 : 8);
    double s = 0, q = 0;
    if (transposed) {
        if (base + lane < rows)
            for (int c = warp; c < cols; c += 8) {
                const double v = widen(m[c * ld + base + lane], bf16);
                s += v * x[c], q += v * v;
            }
        sum[warp][lane] = s, square[warp][lane] = q;
        __syncthreads();
        if (warp == 0 && base + lane < rows) {
            for (int w = 1; w < 8; ++w)
                s += sum[w][lane], q += square[w][lane];
            y[base + lane] = s;
            if (squares)
                squares[base + lane] = q;
        }
        return;
    }
    if (base + warp < rows)
        for (int c = lane; c < cols; c += 32) {
            const double v = widen(m[(base + warp) * ld + c], bf16);
            s += v * x[c], q += v * v;
        }
    for (int o = 16; o; o /= 2)
        s += __shfl_xor_sync(~0u, s, o), q += __shfl_xor_sync(~0u, q, o);
    if (lane == 0 && base + warp < rows) {
        y[base + warp] = s;
        if (squares)
            squares[base + warp] = q;
    }
}

void matvec(const uint16_t *m, int rows, int cols, int64_t ld, bool transposed, bool bf16,
            const double *x, double *y, double *squares = nullptr) {
    matvec_kernel<<<ceil_div(rows, transposed ? 32 : 8), 256>>>(m, rows, cols, ld, transposed, bf16,
                                                                x, y, squares);
    CHECK(cudaGetLastError());
}

// A (B x), for x of n signs.
void project(const Problem &p, const uint16_t *a, const uint16_t *b, const double *x, double *y) {
    Device<double> t(p.k);
    matvec(b, p.k, p.n, p.ldb, p.b_nk, p.bf16, x, t.p);
    matvec(a, p.m, p.k, p.lda, p.a_km, p.bf16, t.p, y);
}

std::vector<double> signs(int n, uint64_t seed) {
    std::vector<double> x(n);
    for (int i = 0; i < n; ++i)
        x[i] = mix(seed ^ mix(i)) & 1 ? 1 : -1;
    return x;
}

std::vector<int> chosen(int extent, uint64_t seed) {
    std::vector<int> v{0, extent - 1};
    for (int at : {64, 128, 256, extent / 2, extent - 2, extent - 65})
        if (at > 0 && at < extent)
            v.push_back(at);
    for (int i = 0; v.size() < 32; ++i)
        v.push_back(static_cast<int>(mix(seed + i) % extent));
    return v;
}

} // namespace

void fill_normal(uint16_t *p, int64_t count, uint64_t seed, bool bf16) {
    normal_kernel<<<1056, 256>>>(p, count, seed, bf16);
    CHECK(cudaGetLastError());
}

void fill_bytes(void *p, size_t bytes, int value) { CHECK(cudaMemset(p, value, bytes)); }

uint64_t hash(const void *p, size_t bytes) {
    const int64_t count = static_cast<int64_t>(bytes / 2);
    return counted([&](unsigned long long *sum) {
        hash_kernel<<<528, 256>>>(static_cast<const uint16_t *>(p), 1, count, count, sum);
    });
}

uint64_t hash_c(const Problem &p, const uint16_t *c) {
    uint64_t all = 0;
    for (int i = 0; i < p.batch; i += p.stride_c == p.m * p.ldc ? p.batch : 1) {
        const int64_t rows = p.stride_c == p.m * p.ldc ? int64_t(p.m) * p.batch : p.m;
        all = mix(all ^ counted([&](unsigned long long *sum) {
                      hash_kernel<<<528, 256>>>(c + i * p.stride_c, rows, p.n, p.ldc, sum);
                  }));
    }
    return all;
}

bool all_bytes(const void *p, size_t bytes, int value) {
    const int64_t count = static_cast<int64_t>(bytes / 2);
    const uint16_t word = static_cast<uint16_t>(value << 8 | value);
    return counted([&](unsigned long long *sum) {
               differs_kernel<<<64, 256>>>(static_cast<const uint16_t *>(p), 1, 0, count, count,
                                           word, sum);
           }) == 0;
}

bool padding_is(const Problem &p, const uint16_t *c, uint16_t value) {
    if (p.ldc == p.n)
        return true;
    return counted([&](unsigned long long *sum) {
               differs_kernel<<<64, 256>>>(c, int64_t(p.m) * p.batch, p.n, p.ldc - p.n, p.ldc,
                                           value, sum);
           }) == 0;
}

Error judge(const Problem &whole, const uint16_t *a0, const uint16_t *b0, const uint16_t *before0,
            const uint16_t *c0, uint64_t seed) {
    Problem p = whole;
    p.batch = 1;
    Error e;
    Device<Totals> totals(1);
    CHECK(cudaMemset(totals.p, 0, sizeof(Totals)));
    const bool every = int64_t(p.m) * p.n * p.k <= EVERY_ELEMENT;
    const int64_t long_side = p.m > p.n ? p.m : p.n;
    const int64_t cells = every ? int64_t(p.m) * p.n : 32 * long_side;
    Device<double> sums(cells), magnitudes(cells), x(p.n), want(p.m), got(p.m), squares(p.m),
        old(p.m);
    Device<int> picks(64);
    auto part = [&](const uint16_t *a, const uint16_t *b, const uint16_t *before, const uint16_t *c,
                    const int *rows, int row_count, const int *cols, int col_count) {
        reference(p, a, b, rows, row_count, cols, col_count, sums.p, magnitudes.p);
        compare_kernel<<<264, 256>>>(p, before, c, rows, row_count, cols, col_count, sums.p,
                                     magnitudes.p, totals.p);
        CHECK(cudaGetLastError());
        e.compared += int64_t(row_count) * col_count;
    };
    for (int i = 0; i < whole.batch; ++i) {
        const uint16_t *a = a0 + i * p.stride_a, *b = b0 + i * p.stride_b, *c = c0 + i * p.stride_c;
        const uint16_t *before = before0 ? before0 + i * p.stride_c : nullptr;
        if (every) {
            part(a, b, before, c, nullptr, p.m, nullptr, p.n);
            continue;
        }
        picks.from(chosen(p.m, seed));
        part(a, b, before, c, picks.p, 32, nullptr, p.n);
        picks.from(chosen(p.n, seed + 1));
        part(a, b, before, c, nullptr, p.m, picks.p, 32);
    }
    const Totals t = totals.host(1)[0];
    memcpy(&e.worst, &t.worst, 8);
    e.rms = std::sqrt(t.error2 / t.reference2), e.ideal = std::sqrt(t.ideal2 / t.reference2);
    if (!every)
        for (int i = 0; i < whole.batch; ++i)
            for (int trial = 0; trial < 3; ++trial) {
                const uint16_t *c = c0 + i * p.stride_c;
                x.from(signs(p.n, seed + 17 * trial + i));
                project(p, a0 + i * p.stride_a, b0 + i * p.stride_b, x.p, want.p);
                matvec(c, p.m, p.n, p.ldc, false, p.bf16, x.p, got.p, squares.p);
                if (p.beta != 0)
                    matvec(before0 + i * p.stride_c, p.m, p.n, p.ldc, false, p.bf16, x.p, old.p);
                const auto w = want.host(p.m), g = got.host(p.m), q = squares.host(p.m),
                           o = old.host(p.m);
                double sum = 0;
                for (int r = 0; r < p.m; ++r) {
                    // Signs turn a row's rounding errors into a sum of independent ones.
                    const double expected = p.alpha * w[r] + (p.beta != 0 ? p.beta * o[r] : 0);
                    const double sigma = e.ideal * std::sqrt(q[r]);
                    const double residual = sigma > 0 ? std::fabs(g[r] - expected) / sigma : 1e300;
                    e.projected = residual <= e.projected ? e.projected : residual;
                    sum += residual * residual;
                }
                const double rms = std::sqrt(sum / p.m);
                e.projected_rms = rms <= e.projected_rms ? e.projected_rms : rms;
            }
    char text[200] = "";
    const double slack = 4 / std::sqrt(2.0 * p.m);
    if (t.wrong)
        snprintf(text, sizeof text, "%llu of %lld elements beyond the bound, the worst %.3g times",
                 t.wrong, static_cast<long long>(e.compared), e.worst);
    else if (!(e.rms <= 1.15 * e.ideal + 1e-7) && e.compared > 1000)
        snprintf(text, sizeof text, "error %.3g where rounding once makes %.3g", e.rms, e.ideal);
    else if (!(e.projected <= 7.5))
        snprintf(text, sizeof text, "a row of C x is off by %.3g standard deviations", e.projected);
    else if (!(e.projected_rms <= 1.15 + slack))
        snprintf(text, sizeof text, "C x is off by %.3g times the rounding", e.projected_rms);
    e.refused = text;
    return e;
}

void held_against_host(uint64_t seed) {
    for (const char *layout : {"NN", "TN", "NT", "TT"})
        for (bool bf16 : {true, false}) {
            const Problem p = make_problem(97, 83, 1031, layout, bf16, 1, 3);
            Device<uint16_t> a(p.a_elements()), b(p.b_elements());
            Device<double> sums(p.m * p.n), magnitudes(p.m * p.n), x(p.n), y(p.m);
            fill_normal(a.p, p.a_elements(), seed, bf16);
            fill_normal(b.p, p.b_elements(), seed + 1, bf16);
            reference(p, a.p, b.p, nullptr, p.m, nullptr, p.n, sums.p, magnitudes.p);
            const auto signed_x = signs(p.n, seed);
            x.from(signed_x);
            project(p, a.p, b.p, x.p, y.p);
            const auto ha = a.host(p.a_elements()), hb = b.host(p.b_elements());
            const auto s = sums.host(p.m * p.n), q = magnitudes.host(p.m * p.n), hy = y.host(p.m);
            double worst = 0, mean = 0, square = 0;
            for (int r = 0; r < p.m; ++r) {
                double row = 0, row_magnitude = 0;
                for (int c = 0; c < p.n; ++c) {
                    double sum = 0, magnitude = 0;
                    for (int k = 0; k < p.k; ++k) {
                        const double v = widen(ha[p.a_km ? k * p.lda + r : r * p.lda + k], bf16) *
                                         widen(hb[p.b_nk ? c * p.ldb + k : k * p.ldb + c], bf16);
                        sum += v, magnitude += std::fabs(v);
                    }
                    worst = std::fmax(worst, std::fabs(sum - s[r * p.n + c]) / magnitude);
                    worst = std::fmax(worst, std::fabs(magnitude - q[r * p.n + c]) / magnitude);
                    row += sum * signed_x[c], row_magnitude += magnitude;
                }
                worst = std::fmax(worst, std::fabs(row - hy[r]) / row_magnitude);
            }
            for (uint16_t v : ha)
                mean += widen(v, bf16) / ha.size(),
                    square += std::pow(widen(v, bf16), 2) / ha.size();
            if (!(worst < 1e-12) || std::fabs(mean) > 0.02 || std::fabs(square - 1) > 0.03) {
                fprintf(stderr,
                        "oracle: %s: device and host differ by %.3g; data have mean %.3g, square "
                        "%.3g: no verdict of this run counts\n",
                        layout, worst, mean, square);
                exit(2);
            }
        }
}

} // namespace oracle

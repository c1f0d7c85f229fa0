#include "../../templates/gemm/device/kit/kernels.cu"
#include "oracle.h"
#include <cmath>
#include <cstring>
#include <random>

namespace oracle {
namespace {

constexpr int64_t EVERY_ELEMENT = int64_t(2048) * 2048 * 2048;

judged of(const Problem &p) {
    judged q{};
    q.m = p.m, q.n = p.n, q.k = p.k, q.batch = p.batch;
    q.a_along_m = p.a_km, q.b_along_k = p.b_nk, q.bf16 = q.format_c = p.bf16;
    q.alpha = p.alpha, q.beta = p.beta;
    q.lda = p.lda, q.ldb = p.ldb, q.ldc = p.ldc;
    q.stride_a = p.stride_a, q.stride_b = p.stride_b, q.stride_c = p.stride_c;
    return q;
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

void reference(const Problem &p, const uint16_t *a, const uint16_t *b, const int *rows,
               int row_count, const int *cols, int col_count, double *sums, double *magnitudes) {
    const dim3 grid(ceil_div(col_count, 64), ceil_div(row_count, 64));
    kit_reference<<<grid, 256>>>(of(p), a, b, rows, row_count, cols, col_count, sums, magnitudes);
    CHECK(cudaGetLastError());
}

void matvec(const uint16_t *m, int rows, int cols, int64_t ld, bool transposed, bool bf16,
            const double *x, double *y, double *squares = nullptr) {
    CHECK(cudaMemset(y, 0, rows * sizeof *y));
    if (squares)
        CHECK(cudaMemset(squares, 0, rows * sizeof *squares));
    const dim3 grid(transposed ? ceil_div(rows, 256) : rows, transposed ? ceil_div(cols, 64) : 1);
    kit_matvec<<<grid, 256>>>(m, rows, cols, ld, transposed, bf16, x, y, squares);
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
    kit_normal<<<1056, 256>>>(p, count, seed, bf16);
    CHECK(cudaGetLastError());
}

void fill_bytes(void *p, size_t bytes, int value) { CHECK(cudaMemset(p, value, bytes)); }

uint64_t hash(const void *p, size_t bytes) {
    const int64_t count = static_cast<int64_t>(bytes / 2);
    return counted([&](unsigned long long *sum) {
        kit_hash<<<528, 256>>>(static_cast<const uint16_t *>(p), 1, count, count, sum);
    });
}

uint64_t hash_c(const Problem &p, const uint16_t *c) {
    uint64_t all = 0;
    for (int i = 0; i < p.batch; i += p.stride_c == p.m * p.ldc ? p.batch : 1) {
        const int64_t rows = p.stride_c == p.m * p.ldc ? int64_t(p.m) * p.batch : p.m;
        all = mix(all ^ counted([&](unsigned long long *sum) {
                      kit_hash<<<528, 256>>>(c + i * p.stride_c, rows, p.n, p.ldc, sum);
                  }));
    }
    return all;
}

bool all_bytes(const void *p, size_t bytes, int value) {
    const int64_t count = static_cast<int64_t>(bytes / 2);
    const uint16_t word = static_cast<uint16_t>(value << 8 | value);
    return counted([&](unsigned long long *sum) {
               kit_differs<<<64, 256>>>(static_cast<const uint16_t *>(p), 1, 0, count, count, word,
                                        sum);
           }) == 0;
}

bool padding_is(const Problem &p, const uint16_t *c, uint16_t value) {
    if (p.ldc == p.n)
        return true;
    return counted([&](unsigned long long *sum) {
               kit_differs<<<64, 256>>>(c, int64_t(p.m) * p.batch, p.n, p.ldc - p.n, p.ldc, value,
                                        sum);
           }) == 0;
}

Error judge(const Problem &whole, const uint16_t *a0, const uint16_t *b0, const uint16_t *before0,
            const uint16_t *c0, uint64_t seed) {
    Problem p = whole;
    p.batch = 1;
    Error e;
    Device<::totals> totals(1);
    CHECK(cudaMemset(totals.p, 0, sizeof(::totals)));
    const bool every = int64_t(p.m) * p.n * p.k <= EVERY_ELEMENT;
    const int64_t long_side = p.m > p.n ? p.m : p.n;
    const int64_t cells = every ? int64_t(p.m) * p.n : 32 * long_side;
    Device<double> sums(cells), magnitudes(cells), x(p.n), want(p.m), got(p.m), squares(p.m),
        old(p.m);
    Device<int> picks(64);
    auto part = [&](const uint16_t *a, const uint16_t *b, const uint16_t *before, const uint16_t *c,
                    const int *rows, int row_count, const int *cols, int col_count) {
        reference(p, a, b, rows, row_count, cols, col_count, sums.p, magnitudes.p);
        kit_compare<<<264, 256>>>(of(p), before, c, rows, row_count, cols, col_count, sums.p,
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
    const ::totals t = totals.host(1)[0];
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

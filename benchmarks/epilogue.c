/* Times calls with an epilogue against the product and then the same epilogue in a pass of its own,
 * and against the product and then a plain loop: medians of interleaved calls, in processor time.
 *
 * cc -O3 -march=native -I DIR/include benchmarks/epilogue.c DIR/lib/libtensorop_gemm.a -pthread -lm
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tensorop/gemm.h>
#include <time.h>

enum { MOST = 101, WAYS = 4 };
static const int SHAPES[][3] = {
    {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {4096, 4096, 64}};
static const char *const NAMES[] = {"none", "relu", "gelu", "silu"};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *of, int count) {
    qsort(of, (size_t)count, sizeof *of, by_size);
    return of[count / 2];
}

static float *drawn(size_t count) {
    float *made = aligned_alloc(64, (count * sizeof *made + 63) / 64 * 64);
    for (size_t i = 0; i < count; i++)
        made[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    return made;
}

static float activated(float x, int activation) {
    float e = activation == TENSOROP_GEMM_SILU ? x : 1.5957691216f * x + 0.0713548163f * x * x * x;
    return activation == TENSOROP_GEMM_RELU ? (x < 0 ? 0 : x) : x / (1 + expf(-e));
}

static void loop(int m, int n, float *c, const float *bias, int activation) {
    for (int i = 0; i < m; i++, c += n) {
        if (activation == TENSOROP_GEMM_RELU)
            for (int j = 0; j < n; j++)
                c[j] = activated(c[j] + bias[j], TENSOROP_GEMM_RELU);
        else
            for (int j = 0; j < n; j++)
                c[j] = activated(c[j] + bias[j], activation);
    }
}

static void compare(int m, int n, int k, int activation) {
    float *a = drawn((size_t)m * k), *b = drawn((size_t)k * n), *c = drawn((size_t)m * n),
          *bias = drawn((size_t)n);
    struct tensorop_gemm_f32_call call = {101, 111, 111, 1, 0, m, n, k, k, n, n}, pass = call;
    struct tensorop_gemm_f32_epilogue e = {.activation = activation, .bias = bias};
    pass.alpha = 0, pass.beta = 1;
    double times[WAYS][MOST], ratios[WAYS][MOST], began = now();
    int count = 0;
    for (; count < MOST && (count < 7 || now() - began < 6); count++)
        for (int turn = 0; turn < WAYS; turn++) {
            int way = (turn + count) % WAYS;
            double start = now();
            if (way == 0)
                tensorop_gemm_f32_epilogue(&call, &e, a, b, c);
            else
                tensorop_gemm_f32_call(&call, a, b, c);
            if (way == 1)
                tensorop_gemm_f32_epilogue(&pass, &e, a, b, c);
            else if (way == 2)
                loop(m, n, c, bias, activation);
            times[way][count] = now() - start;
        }
    for (int way = 1; way < WAYS; way++)
        for (int i = 0; i < count; i++)
            ratios[way][i] = times[way][i] / times[0][i];
    printf("%dx%dx%d bias+%s: %.3f ms; then the same pass %.2f times as long, then a plain loop "
           "%.2f, the product alone %.2f\n",
           m, n, k, NAMES[activation], 1e3 * median(times[0], count), median(ratios[1], count),
           median(ratios[2], count), median(ratios[3], count));
    free(a), free(b), free(c), free(bias);
}

int main(void) {
    tensorop_set_num_threads(1);
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++)
        for (int activation = TENSOROP_GEMM_RELU; activation <= TENSOROP_GEMM_SILU; activation++)
            compare(SHAPES[i][0], SHAPES[i][1], SHAPES[i][2], activation);
    return 0;
}

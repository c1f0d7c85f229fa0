/* A tuning kit for a GPU library: one program with the library, its judge and its clock. It opens
 * the machine's driver and cuBLASLt with dlopen. For each line of its plan it appends a line to a
 * file of results. */
#ifndef TENSOROP_DEVICE_KIT_H
#define TENSOROP_DEVICE_KIT_H

#include "judged.h"
#include "kit_rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tensorop/gemm_cuda.h>

/* A library has one type of C. C_WORDS: 16-bit words per element of C. */
#if defined TENSOROP_GEMM_CUDA_HAS_BF16_F32 || defined TENSOROP_GEMM_CUDA_HAS_F16_F32
enum { FLOAT_C = 1, C_WORDS = 2 };
#else
enum { FLOAT_C = 0, C_WORDS = 1 };
#endif

typedef uint64_t pointer; /* to device memory */
typedef void *stream;

/* driver.c */
struct cuda {
    int (*cuInit)(unsigned);
    int (*cuDriverGetVersion)(int *);
    int (*cuDeviceGet)(int *, int);
    int (*cuDeviceGetName)(char *, int, int);
    int (*cuDeviceGetAttribute)(int *, int, int);
    int (*cuDeviceGetPCIBusId)(char *, int, int);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxSetCurrent)(void *);
    int (*cuCtxSynchronize)(void);
    int (*cuMemGetInfo_v2)(size_t *, size_t *);
    int (*cuMemAlloc_v2)(pointer *, size_t);
    int (*cuMemFree_v2)(pointer);
    int (*cuMemHostAlloc)(void **, size_t, unsigned);
    int (*cuMemcpyHtoD_v2)(pointer, const void *, size_t);
    int (*cuMemcpyDtoH_v2)(void *, pointer, size_t);
    int (*cuMemcpyDtoDAsync_v2)(pointer, pointer, size_t, stream);
    int (*cuMemsetD8_v2)(pointer, unsigned char, size_t);
    int (*cuModuleLoadData)(void **, const void *);
    int (*cuModuleGetFunction)(void **, void *, const char *);
    int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, stream, void **, void **);
    int (*cuStreamCreate)(stream *, unsigned);
    int (*cuStreamSynchronize)(stream);
    int (*cuStreamBeginCapture_v2)(stream, int);
    int (*cuStreamEndCapture)(stream, void **);
    int (*cuGraphInstantiateWithFlags)(void **, void *, unsigned long long);
    int (*cuGraphLaunch)(void *, stream);
    int (*cuGraphDestroy)(void *);
    int (*cuGraphExecDestroy)(void *);
    int (*cuEventCreate)(void **, unsigned);
    int (*cuEventRecord)(void *, stream);
    int (*cuEventSynchronize)(void *);
    int (*cuEventElapsedTime)(float *, void *, void *);
};
extern struct cuda cu;
const char *driver_open(void);            /* NULL, or an error message */
void must(int status, const char *doing); /* on an error, ends the worker process */
void launch(const char *kernel, unsigned x, unsigned y, unsigned z, unsigned threads, stream on,
            void **arguments);
void board_members(void); /* writes device, driver and power limit to the row */
void board_sample(void);  /* samples clock, power and temperature with NVML, if it is installed */
void board_forget(void);
void board_sampled(void); /* writes their medians to the row */

/* judge.c: device memory between two guards of NaNs. */
struct buffer {
    pointer base, at;
    size_t bytes, total;
};
struct buffer buffer_make(size_t bytes, size_t shift);
void buffer_free(struct buffer *b);
bool buffer_intact(const struct buffer *b);
void fill_normal(pointer at, int64_t count, uint64_t seed, int format);

/* A kernel or library function that computes products. */
struct arm {
    const char *name;
    int number; /* number of the variant, cuBLASLt answer or fault */
    int (*run)(const struct arm *arm, const struct judged *p, pointer a, pointer b, pointer c,
               pointer workspace, stream on); /* 0: enqueued */
    size_t (*needs)(const struct arm *arm, const struct judged *p);
    void *more;
};

struct judged problem_of(int m, int n, int k, int batch, int bf16, int a_along_m, int b_along_k,
                         int pad);
int64_t a_size(const struct judged *p), b_size(const struct judged *p),
    c_size(const struct judged *p);
extern double judge_every; /* up to so many multiply-adds, every element is compared; for larger
                              products, some elements and products C x */
/* The reference for C, for all arms with these operands. */
struct reference {
    bool every;
    int64_t compared;
    pointer a, b, sums[2], magnitudes[2], picks[2], signs[3], want[3];
};
struct reference reference_make(const struct judged *p, pointer a, pointer b, uint64_t seed);
void reference_free(struct reference *r);
/* NULL if C is correct, else the reason. before: C before the call, used if beta is not 0. */
const char *judge_c(const struct reference *r, const struct judged *p, pointer before, pointer c);
/* Judges one arm on one problem: result, bounds, stream, and reproducibility. shift: misalignment
 * in elements. */
const char *judge_arm(const struct arm *arm, const struct judged *p, uint64_t seed, int shift);
const char *
judge_oracle(uint64_t seed); /* compares the device's references with sums of the host */

/* variants.c */
struct arm arm_of_variant(int variant);
struct arm arm_of_fault(int fault);
const char *fault_name(int fault);
struct judged fault_problem(int fault);
bool variant_serves(int variant, const struct judged *p, int shift);
int variant_chosen(const struct judged *p);
void variants_open(void);

/* lt.c: cuBLASLt's distinct answers to seven queries; 0 if the library is not installed. */
int lt_arms(const struct judged *p, struct arm *arms, int most);
void lt_release(struct arm *arms, int count);
size_t lt_version(void); /* 0: not installed */
const char *lt_said(void);

/* clock.c: writes the fields of a row of results. Returns the outcome. */
const char *clock_problem(const struct judged *p, int rounds, uint64_t seed);

/* worker.c: executes the steps from `first` on, and writes a line for each to a pipe. */
void worker(char **steps, unsigned count, unsigned first, int to);

#endif

/* A tuning kit of a library for a GPU: the library, what judges it and what times it, in one
 * program that takes the driver and cuBLASLt from the machine by dlopen. It reads a plan of lines
 * and appends a line to a file of results for each. */
#ifndef TENSOROP_DEVICE_KIT_H
#define TENSOROP_DEVICE_KIT_H

#include "judged.h"
#include "kit_rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tensorop/gemm_cuda.h>

/* A library holds one type of C. C_WORDS: of 16 bits in an element of it. */
#if defined TENSOROP_GEMM_CUDA_HAS_BF16_F32 || defined TENSOROP_GEMM_CUDA_HAS_F16_F32
enum { FLOAT_C = 1, C_WORDS = 2 };
#else
enum { FLOAT_C = 0, C_WORDS = 1 };
#endif

typedef uint64_t pointer; /* in the device's memory */
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
const char *driver_open(void);            /* NULL, or what is wrong */
void must(int status, const char *doing); /* ends the process, which is a worker */
void launch(const char *kernel, unsigned x, unsigned y, unsigned z, unsigned threads, stream on,
            void **arguments);
void board_members(void); /* device, driver, power limit: into the row */
void board_sample(void);  /* clock, power and temperature, by NVML where it is */
void board_forget(void);
void board_sampled(void); /* their medians: into the row */

/* judge.c: device memory between two guards of NaNs. */
struct buffer {
    pointer base, at;
    size_t bytes, total;
};
struct buffer buffer_make(size_t bytes, size_t shift);
void buffer_free(struct buffer *b);
bool buffer_intact(const struct buffer *b);
void fill_normal(pointer at, int64_t count, uint64_t seed, int format);

/* Something that computes products. */
struct arm {
    const char *name;
    int number; /* of a variant, an answer or a fault */
    int (*run)(const struct arm *arm, const struct judged *p, pointer a, pointer b, pointer c,
               pointer workspace, stream on); /* 0: enqueued */
    size_t (*needs)(const struct arm *arm, const struct judged *p);
    void *more;
};

struct judged problem_of(int m, int n, int k, int batch, int bf16, int a_along_m, int b_along_k,
                         int pad);
int64_t a_size(const struct judged *p), b_size(const struct judged *p),
    c_size(const struct judged *p);
extern double judge_every; /* multiply-adds up to which each element is compared; beyond, products
                              of all of C */
/* What C is held against, which serves all arms that have these operands. */
struct reference {
    bool every;
    int64_t compared;
    pointer a, b, sums[2], magnitudes[2], picks[2], signs[3], want[3];
};
struct reference reference_make(const struct judged *p, pointer a, pointer b, uint64_t seed);
void reference_free(struct reference *r);
/* NULL where C is right, else why not. before: C as it was, read where beta is not 0. */
const char *judge_c(const struct reference *r, const struct judged *p, pointer before, pointer c);
/* One arm on one problem: right, in bounds, on its stream, the same twice. shift: elements off
 * their alignment. */
const char *judge_arm(const struct arm *arm, const struct judged *p, uint64_t seed, int shift);
const char *judge_oracle(uint64_t seed); /* the device's references against sums made by the host */

/* variants.c */
struct arm arm_of_variant(int variant);
struct arm arm_of_fault(int fault);
const char *fault_name(int fault);
struct judged fault_problem(int fault);
bool variant_serves(int variant, const struct judged *p, int shift);
int variant_chosen(const struct judged *p);
void variants_open(void);

/* lt.c: cuBLASLt's answers to seven queries, each once; 0 where the library is not here. */
int lt_arms(const struct judged *p, struct arm *arms, int most);
void lt_release(struct arm *arms, int count);
size_t lt_version(void); /* 0: not here */
const char *lt_said(void);

/* clock.c: writes the members of a row of results. Returns how it ended. */
const char *clock_problem(const struct judged *p, int rounds, uint64_t seed);

/* worker.c: from step `first` on, a line for each, into a pipe. */
void worker(char **steps, unsigned count, unsigned first, int to);

#endif

/* A tuning kit for a GPU library: one program with the library, its judge and its clock. It opens
 * the machine's driver and the baseline's library with dlopen. For each line of its plan it appends
 * a line to a file of results. */
#ifndef TENSOROP_DEVICE_KIT_H
#define TENSOROP_DEVICE_KIT_H

#include "faults.h"
#include "judged.h"
#include "kit_rows.h"
#include "library.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* buffer.c: device memory between two guards of NaNs. */
struct buffer {
    pointer base, at;
    size_t bytes, total;
};
enum { POISON = 0xff /* a NaN in all types */ };
pointer reserve(size_t bytes);
void release(pointer at);
struct buffer buffer_make(size_t bytes, size_t shift);
void buffer_free(struct buffer *b);
bool buffer_intact(const struct buffer *b);
void fill_normal(pointer at, int64_t count, uint64_t seed, int format);
/* Rows of 16-bit words, `pitch` words apart. */
struct lines {
    int64_t rows, words, pitch;
};
uint64_t lines_hash(pointer at, struct lines of);
/* The number of words in the gaps between rows that differ from poison. */
uint64_t gaps_changed(pointer at, struct lines of);
uint64_t mixed(uint64_t x); /* a hash, for random choices */

/* A kernel or library function that computes problems. at: the operands, the result last */
struct arm {
    const char *name;
    int number; /* number of the variant, answer of the baseline, or fault */
    int (*run)(const struct arm *arm, const struct judged *p, const pointer *at, pointer workspace,
               stream on); /* 0: enqueued */
    size_t (*needs)(const struct arm *arm, const struct judged *p);
    void *more;
    const char *refused; /* why the baseline does not compute this problem; NULL: it does */
};

/* The operator's own, oracle.c. struct judged (judged.h) is a problem with the places of its
 * operands. type: of the library; layout, numbers: as in a plan's steps; form: further properties
 * of a call, which are verified in turn, 0: those of a timed call */
extern const int forms; /* their number */
struct judged problem_of(const struct held_type *type, const int *layout, const int *numbers,
                         int form);
int form_shift(int form); /* elements by which operands are misaligned */
void case_text(const struct judged *p, char *text, size_t room);
library_problem called(const struct judged *p);
size_t operand_bytes(const struct judged *p, int operand);
size_t operand_element(const struct judged *p, int operand); /* bytes of an element */
void operand_fill(const struct judged *p, int operand, pointer at, uint64_t seed);
struct lines result_lines(const struct judged *p);
bool reads_result(const struct judged *p); /* whether it depends on what the result held before */
double work_of(const struct judged *p);    /* floating-point operations */
extern double judge_every; /* up to so many multiply-adds, every element is compared */
struct reference;          /* for the result, for all arms with these operands */
struct reference *reference_make(const struct judged *p, const pointer *at, uint64_t seed);
void reference_free(struct reference *r);
/* NULL if the result is correct, else the reason. before: the result before the call, if it is
 * read. */
const char *judge_result(const struct reference *r, const struct judged *p, pointer before,
                         pointer result);
const char *judge_oracle(uint64_t seed); /* compares the device's references with the host's */
struct judged fault_problem(int fault);  /* a problem on which the fault must be found */
/* Enqueues the plain kernel. fault: an own one, or FAULT_PLAIN; call: a number that differs each
 * time */
void plain(const struct judged *p, const pointer *at, pointer workspace, int fault, int call,
           stream on);

/* judge.c: judges one arm on one problem: result, bounds, stream, and reproducibility. */
const char *judge_arm(const struct arm *arm, const struct judged *p, uint64_t seed, int shift);

/* soak.c: judges `calls` calls without a pause, of which each must give the first one's result. */
const char *soak_arm(const struct arm *arm, const struct judged *p, int calls, uint64_t seed,
                     int shift);

/* variants.c */
struct arm arm_of_variant(int variant);
struct arm arm_of_fault(int fault);
const char *fault_name(int fault);
bool variant_serves(int variant, const struct judged *p, int shift);
int variant_chosen(const struct judged *p);
void variants_open(void);

/* baseline.c: the answers of a library to compare with; an operator may have its own file. */
extern const char baseline_name[];
int baseline_arms(const struct judged *p, struct arm *arms, int most);
void baseline_release(struct arm *arms, int count);
size_t baseline_version(void); /* 0: not installed */

/* clock.c: writes the fields of a row of results. Returns the outcome. */
const char *clock_problem(const struct judged *p, int rounds, uint64_t seed);

/* steps.c: a step of a plan that times, "time DTYPE layout... numbers...". */
const struct held_type *timed_step(const char *step, int *layout, int *numbers); /* NULL: damaged */
const struct held_type *type_at(int number); /* from 0 to TYPES - 1 */
void add_timed(const char *step);            /* its problem, as members of a row */

/* worker.c: executes the steps from `first` on, and writes a line for each to a pipe. */
void worker(char **steps, unsigned count, unsigned first, int to);

#endif

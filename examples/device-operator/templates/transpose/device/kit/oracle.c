/* What a kit has to know of transposed copies. */
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>

double judge_every;
static const float alphas[] = {1, -0.625f};
const int forms = sizeof alphas / sizeof *alphas;
struct reference {
    pointer x;
};
int form_shift(int form) { return form; }
struct judged problem_of(const struct held_type *type, const int *layout, const int *numbers,
                         int form) {
    return (void)layout, (struct judged){numbers[0],   numbers[1],   numbers[2],
                                         type->format, type->number, alphas[form]};
}

void case_text(const struct judged *p, char *text, size_t room) {
    snprintf(text, room, "%dx%dx%d type %d alpha %g", p->m, p->n, p->batch, p->type,
             (double)p->alpha);
}
library_problem called(const struct judged *p) {
    return (library_problem){p->type, p->alpha, p->m, p->n, p->batch};
}
size_t operand_element(const struct judged *p, int operand) { return (void)p, (void)operand, 2; }
size_t operand_bytes(const struct judged *p, int operand) {
    return (void)operand, 2 * (size_t)p->m * (size_t)p->n * (size_t)p->batch;
}
void operand_fill(const struct judged *p, int operand, pointer at, uint64_t seed) {
    fill_normal(at, (int64_t)operand_bytes(p, operand) / 2, seed, p->format);
}
struct lines result_lines(const struct judged *p) {
    return (struct lines){(int64_t)p->n * p->batch, p->m, p->m};
}
bool reads_result(const struct judged *p) { return (void)p, false; }
double work_of(const struct judged *p) { return (double)p->m * p->n * p->batch; }

struct reference *reference_make(const struct judged *p, const pointer *at, uint64_t seed) {
    struct reference *made = malloc(sizeof *made);
    return (void)p, (void)seed, made->x = at[0], made;
}
void reference_free(struct reference *r) { free(r); }

const char *judge_result(const struct reference *r, const struct judged *p, pointer before,
                         pointer result) {
    static char text[80];
    struct judged of = *p;
    pointer x = r->x, wrong = reserve(8);
    uint64_t found = 0;
    must(cu.cuMemsetD8_v2(wrong, 0, 8), "a sum is begun");
    launch("kit_compare", 264, 1, 1, 256, NULL, (void *[]){&of, &x, &result, &wrong});
    must(cu.cuMemcpyDtoH_v2(&found, wrong, 8), "the comparison");
    release(wrong);
    snprintf(text, sizeof text, "%llu elements exceed the error bound", (unsigned long long)found);
    return (void)before, found ? text : NULL;
}

/* A matrix of ones and twos, and its transpose. */
const char *judge_oracle(uint64_t seed) {
    const struct judged p = {2, 3, 1, BF16, 0, 2};
    uint16_t x[] = {0x3f80, 0x4000, 0x3f80, 0x4000, 0x4000, 0x3f80},
             y[] = {0x4000, 0x4080, 0x4080, 0x4080, 0x4000, 0x4000};
    const pointer at[] = {reserve(sizeof x), reserve(sizeof y)};
    struct reference *r = reference_make(&p, at, seed);
    must(cu.cuMemcpyHtoD_v2(at[0], x, sizeof x), "copy"),
        must(cu.cuMemcpyHtoD_v2(at[1], y, sizeof y), "copy");
    const char *wrong = judge_result(r, &p, 0, at[1]);
    return reference_free(r), release(at[0]), release(at[1]), wrong;
}

struct judged fault_problem(int fault) {
    return (void)fault, (struct judged){64, 72, 2, BF16, 0, -0.75f};
}

void plain(const struct judged *p, const pointer *at, pointer workspace, int fault, int call,
           stream on) {
    struct judged of = *p;
    pointer x = at[0], y = at[1];
    (void)workspace, (void)call;
    launch("kit_plain", 264, 1, 1, 256, on, (void *[]){&of, &x, &y, &fault});
}

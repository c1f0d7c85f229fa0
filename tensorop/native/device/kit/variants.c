/* The functions that are judged and timed: each variant of the library, and the kit's plain kernel
 * with its faults. */
#define TENSOROP_KIT_FAULT_NAMES
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>

static library_handle handle;

void variants_open(void) {
    const int status = LIBRARY(create)(&handle, 0);
    if (status) {
        fprintf(stderr, "kit: %s\n", LIBRARY(message)(status));
        exit(3);
    }
}

static void as_pointers(const pointer *at, void **pointers) {
    for (int i = 0; i < OPERANDS; i++)
        pointers[i] = (void *)(uintptr_t)at[i];
}

/* Addresses with the alignment of a call, for queries before the operands exist. */
static void like(const struct judged *p, int shift, void **pointers) {
    for (int i = 0; i < OPERANDS; i++)
        pointers[i] = (void *)(uintptr_t)(4096 + (size_t)shift * operand_element(p, i));
}

static int asked(int variant, const struct judged *p, int shift) {
    const library_problem problem = called(p);
    void *at[OPERANDS];
    like(p, shift, at);
    must(LIBRARY(force)(handle, variant), "a variant is forced");
    return LIBRARY(chosen_variant)(handle, &problem, POINTERS(at), SIZE_MAX);
}

bool variant_serves(int variant, const struct judged *p, int shift) {
    return asked(variant, p, shift) >= 0;
}

int variant_chosen(const struct judged *p) { return asked(-1, p, 0); }

/* Queries the workspace of this call first, as a user does. */
static int run_variant(const struct arm *arm, const struct judged *p, const pointer *operands,
                       pointer workspace, stream on) {
    const library_problem problem = called(p);
    void *at[OPERANDS];
    size_t bytes = 0;
    as_pointers(operands, at);
    int status = LIBRARY(force)(handle, arm->number);
    if (!status)
        status = LIBRARY(workspace)(handle, &problem, POINTERS(at), &bytes);
    if (!status)
        status = LIBRARY(ex)(handle, on, &problem, POINTERS(at),
                             bytes ? (void *)(uintptr_t)workspace : NULL, bytes);
    if (status)
        fprintf(stderr, "kit: %s: %s\n", arm->name, LIBRARY(message)(status));
    return status;
}

static size_t variant_needs(const struct arm *arm, const struct judged *p) {
    const library_problem problem = called(p);
    size_t most = 0;
    must(LIBRARY(force)(handle, arm->number), "a variant is forced");
    for (int shift = 0; shift < 2; shift++) {
        void *at[OPERANDS];
        size_t bytes = 0;
        like(p, shift, at);
        LIBRARY(workspace)(handle, &problem, POINTERS(at), &bytes);
        most = bytes > most ? bytes : most;
    }
    return most;
}

struct arm arm_of_variant(int variant) {
    return (struct arm){.name = LIBRARY(variant)(variant),
                        .number = variant,
                        .run = run_variant,
                        .needs = variant_needs};
}

const char *fault_name(int fault) { return fault_names[fault]; }

static void poke(pointer at, int value, stream on) {
    launch("kit_poke", 1, 1, 1, 1, on, (void *[]){&at, &value});
}

/* The faults before OWN_FAULTS are made here, around the operator's plain kernel. */
static int run_fault(const struct arm *arm, const struct judged *p, const pointer *at,
                     pointer workspace, stream on) {
    static stream known;
    static pointer seen;
    static int calls, own;
    const int fault = arm->number;
    ++calls;
    if (!known)
        known = on;
    if (fault == FAULT_RUNS_ONCE_A_POINTER && seen == at[RESULT])
        return 0;
    seen = at[RESULT];
    if (fault == FAULT_WRONG_ON_SECOND_STREAM)
        on = known;
    if (fault == FAULT_RUNS_ON_LEGACY_STREAM)
        on = NULL;
    plain(p, at, workspace, fault < OWN_FAULTS ? FAULT_PLAIN : fault, calls, on);
    if (fault == FAULT_WRITES_PAST_EDGE)
        poke(at[RESULT] + operand_bytes(p, RESULT), 0x3c00, on);
    if (fault == FAULT_CHANGES_AN_INPUT)
        poke(at[0], 0x4000, on);
    if (fault == FAULT_WRONG_IN_SOME_CALLS && ++own % 16 == 0) /* the judge makes three */
        poke(at[RESULT], 0x4000, on);
    return 0;
}

static size_t fault_needs(const struct arm *arm, const struct judged *p) {
    return (void)arm, (void)p, 256;
}

struct arm arm_of_fault(int fault) {
    return (struct arm){
        .name = fault_name(fault), .number = fault, .run = run_fault, .needs = fault_needs};
}

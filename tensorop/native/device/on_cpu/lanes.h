/* The threads of a block, on one thread of an x86-64: each has a stack of its own and runs until it
 * waits for its warp or its block. Blocks run one after the other. Every other block runs its
 * threads in reverse order, so that a missing barrier shows in one of the two orders.
 *
 * A collective primitive is a rendezvous: all 32 threads of a warp must come to it with the same
 * arguments. Breaking a primitive's rules is a trap. C++ without its library, whose headers take a
 * compiler most of a minute. */
#ifndef TENSOROP_LANES_H
#define TENSOROP_LANES_H

#include <stddef.h>
#include <stdint.h>

enum { LANES = 32, MOST_LANES = 512, STACK_BYTES = 1 << 16, MOST_COPIES = 1024, MOST_GROUPS = 8 };
enum Waiting {
    READY,
    AT_WARP,
    AT_BLOCK,
    AT_PHASE,
    ENDED
}; /* of a warp, the block, a barrier in shared memory */

/* What a block did, of which the cost model makes cycles. `on_cpu.cpp.j2` of an operator returns
 * them in this order. */
enum Counted {
    PRODUCTS,      /* products of a warp */
    TILE_LOADS,    /* of a warp */
    SHARED_CYCLES, /* of the block's shared memory, with bank conflicts */
    COPIED_BYTES,  /* by copies that do not wait */
    SINGLE,        /* elements that were copied or converted one by one */
    WAITS,         /* for copies */
    AHEAD,         /* groups of copies in flight after each of these, summed */
    SUM_TILES,     /* of a warp */
    COUNTERS
};

struct Copied {
    void *to;
    const void *from;
    int bytes, whole; /* that are copied, and with the zeros behind them */
};

/* A collective primitive, as a thread comes to it. */
struct Meeting {
    int primitive;
    void *fragment;
    const void *more[2];
    int64_t same[2]; /* arguments that all threads of the warp must agree on */
};

struct Lane {
    void *stack; /* the stack pointer while it waits */
    unsigned number;
    Waiting waiting;
    Meeting meeting;
    Copied copy[MOST_COPIES]; /* begun and not yet there, a ring */
    unsigned begun, there;
    unsigned group[MOST_GROUPS]; /* `begun` at the end of each group */
    unsigned committed, done;
};

static Lane lane[MOST_LANES];
static Lane *current;
static void *between; /* the stack pointer of `run_lanes` */
static void (*work)(unsigned number);
static uint64_t counted[COUNTERS];
static uint8_t stacks[MOST_LANES][STACK_BYTES] __attribute__((aligned(64)));

__attribute__((noreturn)) static inline void broken() { __builtin_trap(); }

/* Keeps the stack pointer in *from and goes on with the stack `to`. */
__attribute__((naked, noinline)) static void change_stack(void **from, void *to) {
    __asm__("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
            "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
            "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n retq\n");
}

static void wait_for(Waiting others) {
    current->waiting = others;
    change_stack(&current->stack, between);
}

static void begin_lane() {
    work(current->number);
    wait_for(ENDED);
    broken();
}

static void meet(const Meeting &meeting) {
    current->meeting = meeting;
    wait_for(AT_WARP);
}

static void
together(Lane *warp); /* carries out a primitive that a warp came to: the primitive set's */

/* Lets a warp go on that came to one primitive; 1 if it did. */
static int release_warp(Lane *warp) {
    for (int i = 0; i < LANES; ++i)
        if (warp[i].waiting != AT_WARP)
            return 0;
    for (int i = 1; i < LANES; ++i)
        if (warp[i].meeting.primitive != warp->meeting.primitive ||
            warp[i].meeting.same[0] != warp->meeting.same[0] ||
            warp[i].meeting.same[1] != warp->meeting.same[1])
            broken();
    together(warp);
    for (int i = 0; i < LANES; ++i)
        warp[i].waiting = READY;
    return 1;
}

/* Runs a warp's threads one after the other, up to what they wait for; 1 if any could. */
static int run_warp(Lane *warp, int reversed) {
    int going = 0;
    for (int i = 0; i < LANES; ++i) {
        current = warp + (reversed ? LANES - 1 - i : i);
        if (current->waiting == READY) {
            going = 1;
            change_stack(&between, current->stack);
        }
    }
    return release_warp(warp) || going;
}

/* Runs `of` in each of `count` threads, a multiple of 32, until all have ended. */
static void run_lanes(void (*of)(unsigned), unsigned count, int reversed) {
    work = of;
    for (unsigned i = 0; i < count; ++i) {
        lane[i].number = i, lane[i].waiting = READY;
        lane[i].begun = lane[i].there = lane[i].committed = lane[i].done = 0;
        void **top = (void **)(stacks[i] + STACK_BYTES) - 8;
        top[6] = (void *)begin_lane; /* six registers, then the return address */
        lane[i].stack = top;
    }
    for (;;) {
        int going = 0;
        unsigned ended = 0, waiting = 0;
        for (unsigned w = 0; w < count / LANES;
             ++w) /* each as far as it comes without the others */
            while (run_warp(lane + (reversed ? count / LANES - 1 - w : w) * LANES, reversed))
                going = 1;
        for (unsigned i = 0; i < count; ++i)
            ended += lane[i].waiting == ENDED, waiting += lane[i].waiting == AT_BLOCK;
        if (ended == count)
            return;
        if (waiting == count)
            for (unsigned i = 0; i < count; ++i)
                lane[i].waiting = READY;
        else if (!going)
            broken(); /* some wait for others that never come */
    }
}

#endif

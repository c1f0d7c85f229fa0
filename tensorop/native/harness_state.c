/* Protects the harness from a callee: its state is in pages that are read-only during calls, and
 * the callee has a stack of its own. */
#include "harness.h"

#include <string.h>
#include <sys/mman.h>

enum { STACK = 8 << 20, SPOILED = 1 << 18, DENSE = 1 << 16, GUARD = 1 << 16 };

/* The state begins at the next multiple of STATE_ALIGN, for every page size. */
__attribute__((visibility("hidden"))) uint8_t tensorop_room[sizeof(struct state) + 2 * STATE_ALIGN];

_Static_assert(STATE_ALIGN == 65536, "the assembly below rounds up to it");
_Static_assert(offsetof(struct state, stack) == 0, "the assembly below reads it there");

static size_t state_size(void) {
    return (sizeof(struct state) + STATE_ALIGN - 1) / STATE_ALIGN * STATE_ALIGN;
}

void state_writable(int writable) {
    struct state *s = state();
    int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    if (s->sample)
        mprotect(s->sample, s->sample_size, access);
    if (s->request.book)
        mprotect(s->request.book, s->request.book_size, access);
    mprotect(s, state_size(), access);
}

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014), with a seed from the parent. */
uint64_t state_draw(void) {
    uint64_t z = state()->drawn += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t spoiling(void) { return state_draw() | 0x7ff0000000000000u; }

/* Overwrites a random line in every KiB, so that data from an earlier call is useless. */
void spoil(void *at, size_t size) {
    uint64_t value = spoiling();
    for (size_t step = value / 64 % 16 * 64; step + 64 <= size; step += 1024)
        for (size_t i = 0; i < 64; i += 8)
            memcpy((uint8_t *)at + step + i, &value, sizeof value);
}

/* Overwrites the stack that ends at `top`: the largest frames of a candidate completely, and
 * lines below. It writes words: vector stores would change vl and vtype, which costs a modelled
 * call time. */
static void spoil_stack(uint8_t *top) {
    uint64_t value = spoiling();
    spoil(top - SPOILED, SPOILED - DENSE);
    for (uint8_t *at = top - DENSE; at < top; at += sizeof value) {
        memcpy(at, &value, sizeof value);
        __asm__ volatile("" : : : "memory");
    }
}

int apart_open(void) {
    /* at one address in every program, since its place in modelled caches shows in cycles */
    void *wanted = guarded_place(PLACE_OF_STACK);
    uint8_t *map = mmap(wanted, STACK + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + GUARD, STACK, PROT_READ | PROT_WRITE))
        return -1;
    state()->top = map + GUARD + STACK;
    return 0;
}

/* Overwrites the data that calls left on the stack below the caller. */
__attribute__((noinline)) void spoil_below(void) {
    uint8_t below[SPOILED];
    spoil_stack(below + sizeof below);
    __asm__ volatile("" : : "r"(below) : "memory");
}

void apart_spoil(void) { spoil_stack(state()->top); }

/* void tensorop_apart(entry_way way, unsigned number, const struct tensorop_call *call, void
 * *top): calls way(number, call) on the stack that ends at top. The first call records the
 * caller's stack pointer in the state while it is writable; each call reads it back from there.
 * So the callee cannot change the place to return to. All calls after a recording must come from
 * the same frame. */
#if defined(__x86_64__)
__asm__(".text\n.hidden tensorop_apart\n.globl tensorop_apart\n.type tensorop_apart, @function\n"
        "tensorop_apart:\n"
        "push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "lea tensorop_room+65535(%rip), %rax\nand $-65536, %rax\n"
        "cmp (%rax), %rsp\nje 1f\nmov %rsp, (%rax)\n1:\n"
        "mov %rdi, %rax\nmov %esi, %edi\nmov %rdx, %rsi\nmov %rcx, %rsp\n"
        "call *%rax\n"
        "lea tensorop_room+65535(%rip), %rax\nand $-65536, %rax\nmov (%rax), %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n"
        ".size tensorop_apart, .-tensorop_apart\n");
#elif defined(__aarch64__)
__asm__(".text\n.hidden tensorop_apart\n.globl tensorop_apart\n.type tensorop_apart, %function\n"
        "tensorop_apart:\n"
        "sub sp, sp, #160\nstp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
        "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\n"
        "stp d14, d15, [sp, #144]\n"
        "adrp x9, tensorop_room\nadd x9, x9, :lo12:tensorop_room\n"
        "mov x10, #65535\nadd x9, x9, x10\nand x9, x9, #0xffffffffffff0000\n"
        "ldr x10, [x9]\nmov x11, sp\ncmp x10, x11\nb.eq 1f\nstr x11, [x9]\n1:\n"
        "mov x9, x0\nmov w0, w1\nmov x1, x2\nmov sp, x3\n"
        "blr x9\n"
        "adrp x9, tensorop_room\nadd x9, x9, :lo12:tensorop_room\n"
        "mov x10, #65535\nadd x9, x9, x10\nand x9, x9, #0xffffffffffff0000\n"
        "ldr x10, [x9]\nmov sp, x10\n"
        "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\n"
        "ldp x25, x26, [sp, #48]\nldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\n"
        "ldp d14, d15, [sp, #144]\nadd sp, sp, #160\nret\n"
        ".size tensorop_apart, .-tensorop_apart\n");
#elif defined(__riscv) && __riscv_xlen == 64
#define EACH_SAVED(op)                                                                             \
    op " ra, 0(sp)\n" op " s0, 8(sp)\n" op " s1, 16(sp)\n" op " s2, 24(sp)\n" op                   \
       " s3, 32(sp)\n" op " s4, 40(sp)\n" op " s5, 48(sp)\n" op " s6, 56(sp)\n" op                 \
       " s7, 64(sp)\n" op " s8, 72(sp)\n" op " s9, 80(sp)\n" op " s10, 88(sp)\n" op                \
       " s11, 96(sp)\n"
#define EACH_SAVED_FLOAT(op)                                                                       \
    op " fs0, 104(sp)\n" op " fs1, 112(sp)\n" op " fs2, 120(sp)\n" op " fs3, 128(sp)\n" op         \
       " fs4, 136(sp)\n" op " fs5, 144(sp)\n" op " fs6, 152(sp)\n" op " fs7, 160(sp)\n" op         \
       " fs8, 168(sp)\n" op " fs9, 176(sp)\n" op " fs10, 184(sp)\n" op " fs11, 192(sp)\n"
#define ROOM "lla t1, tensorop_room\nli t2, 65535\nadd t1, t1, t2\nli t2, -65536\nand t1, t1, t2\n"
__asm__(".text\n.hidden tensorop_apart\n.globl tensorop_apart\n.type tensorop_apart, @function\n"
        "tensorop_apart:\n"
        "addi sp, sp, -208\n" EACH_SAVED("sd") EACH_SAVED_FLOAT("fsd") ROOM
        "ld t2, 0(t1)\nbeq t2, sp, 1f\nsd sp, 0(t1)\n1:\n"
        "mv t1, a0\nmv a0, a1\nmv a1, a2\nmv sp, a3\n"
        "jalr t1\n" ROOM "ld sp, 0(t1)\n" EACH_SAVED("ld")
            EACH_SAVED_FLOAT("fld") "addi sp, sp, 208\nret\n"
                                    ".size tensorop_apart, .-tensorop_apart\n");
#endif

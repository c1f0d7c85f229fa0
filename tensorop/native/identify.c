/* Prints facts of a core, one `key value` a line; unknown facts are left out.
 *
 *   vlen   bits of a vector register, if the ISA lets cores choose; on RISC-V only with V 1.0:
 *          the draft 0.7.1 has no vlenb
 *   page   bytes; cores, online
 *   vendor, architecture, implementation    identity registers of RISC-V, from Linux 6.4 on
 *   clock  MHz, measured by additions.h
 */
#define _GNU_SOURCE
#include "additions.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static sigjmp_buf resume;

static void refused(int signal) { siglongjmp(resume, signal); }

static void tell_vector(void) {
#if defined(__riscv)
    uint64_t bytes = 0;
    signal(SIGILL, refused);
    if (!sigsetjmp(resume, 1)) {
        __asm__ volatile("csrr %0, 0xc22" : "=r"(bytes)); /* vlenb */
        printf("vlen %d\n", (int)bytes * 8);
    }
    signal(SIGILL, SIG_DFL);
#elif defined(__aarch64__)
    puts("vlen 128"); /* Advanced SIMD */
    (void)refused;
#else
    (void)refused;
#endif
}

static void tell_identity(void) {
#if defined(__riscv)
    static const char *const name[] = {"vendor", "architecture", "implementation"};
    struct {
        int64_t key;
        uint64_t value;
    } pair[3] = {{.key = 0}, {.key = 1}, {.key = 2}};
    if (syscall(258, pair, 3, 0, NULL, 0)) /* riscv_hwprobe */
        return;
    for (int i = 0; i < 3; i++)
        if (pair[i].key >= 0)
            printf("%s 0x%llx\n", name[i], (unsigned long long)pair[i].value);
#endif
}

int main(void) {
    tell_vector();
    printf("page %ld\ncores %ld\n", sysconf(_SC_PAGESIZE), sysconf(_SC_NPROCESSORS_ONLN));
    tell_identity();
    long rounds = 1000;
    while (additions(rounds) < 2e-3)
        rounds *= 4;
    double best = 1e9;
    for (int i = 0; i < 15; i++) {
        double took = additions(rounds);
        best = took < best ? took : best;
    }
    printf("clock %.0f\n", 100e-6 * (double)rounds / best);
    return 0;
}

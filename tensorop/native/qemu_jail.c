/* A QEMU plug-in that confines the emulator itself: a guest's system calls become the host's,
 * and its stores can reach the emulator's memory, so a filter within the guest is useless.
 *
 * The jail opens when the first block is translated: QEMU has started then, and no instruction
 * of the guest has run. It closes when the guest requests it, by an instruction that does
 * nothing elsewhere (see region.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "jail.h"
#include "plugin/qemu_plugin_api.h"

#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

QEMU_PLUGIN_EXPORT int qemu_plugin_version = 1;

static unsigned needs = JAIL_EMULATOR;
static bool opened, closed;
static const uint8_t *mark;
static size_t mark_size;
static enum { RISCV, AARCH64, X86 } target;

static void on_close(unsigned cpu, void *data) {
    (void)cpu, (void)data;
    if (!closed)
        jail_close(needs);
    closed = true;
}

#if defined(__x86_64__)
/* QEMU's code leaves the upper halves of its 256-bit vectors in use, and its helpers call libm's
 * fma for each element. On some processors each change between SSE and AVX then costs as much as
 * ten of these calls. With clear upper halves it costs nothing. */
static bool avx; /* whether this processor has AVX */

static void look(void) {
    unsigned a, b, c, d, saved;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_AVX) || !(c & bit_OSXSAVE))
        return;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
    avx = (saved & 6) == 6; /* and the operating system saves its registers */
}

static void on_run(unsigned cpu, void *data) {
    (void)cpu, (void)data;
    __asm__ volatile("vzeroupper");
}

/* Whether an instruction may multiply floats: of RISC-V those that compute with F, D and V
 * registers, of AArch64 with SIMD and FP ones. */
static bool computes(const struct qemu_plugin_insn *insn) {
    uint32_t word = 0;
    if (qemu_plugin_insn_size(insn) != sizeof word)
        return target == X86;
    memcpy(&word, qemu_plugin_insn_data(insn), sizeof word);
    unsigned opcode = word & 0x7f;
    bool riscv = (opcode & 0x73) == 0x43 || opcode == 0x53 || opcode == 0x57;
    return target == X86 || (target == RISCV ? riscv : (word >> 25 & 7) == 7);
}
#endif

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    if (!opened)
        jail_open(needs);
    opened = true;
#if defined(__x86_64__)
    size_t n = avx ? qemu_plugin_tb_n_insns(tb) : 0, first = 0;
    while (first < n && !computes(qemu_plugin_tb_get_insn(tb, first)))
        first++;
    if (first < n)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, on_run, QEMU_PLUGIN_CB_NO_REGS, NULL);
#endif
    for (size_t i = 0; !closed && i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        if (qemu_plugin_insn_size(insn) == mark_size &&
            !memcmp(qemu_plugin_insn_data(insn), mark, mark_size))
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_close, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                                           char **argv) {
    static const uint8_t riscv[] = {0x13, 0x20, 0x30, 0x41};   /* slti x0, x0, 1043 */
    static const uint8_t aarch64[] = {0xdf, 0x2c, 0x03, 0xd5}; /* hint #102 */
    static const uint8_t x86[] = {0x0f, 0x1f, 0x80, 0x13, 0x04, 0x00, 0x00};
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "threads=on"))
            needs |= JAIL_THREADS;
        else if (!strcmp(argv[i], "reads=on"))
            needs |= JAIL_READS;
        else if (!strcmp(argv[i], "forks=on"))
            needs |= JAIL_FORKS;
    }
    if (!strcmp(info->target_name, "x86_64"))
        target = X86;
    else if (!strcmp(info->target_name, "aarch64"))
        target = AARCH64;
    mark = target == X86 ? x86 : target == AARCH64 ? aarch64 : riscv;
    mark_size = target == X86 ? sizeof x86 : sizeof riscv;
#if defined(__x86_64__)
    look();
#endif
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    return 0;
}

/* QEMU's plug-in that confines the emulator itself: a guest's system calls are the host's, and its
 * stores reach the emulator's own memory, so that no filter within the guest is worth anything.
 *
 * The jail opens when the first block is translated, when QEMU is up and no instruction of the
 * guest has run. It closes when the guest asks for it, by an instruction that does nothing
 * elsewhere (see region.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "jail.h"
#include "plugin/qemu_plugin_api.h"

#include <stdbool.h>
#include <string.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = 1;

static unsigned needs = JAIL_EMULATOR;
static bool opened, closed;
static const uint8_t *mark;
static size_t mark_size;

static void on_close(unsigned cpu, void *data) {
    (void)cpu, (void)data;
    if (!closed)
        jail_close(needs);
    closed = true;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    if (!opened)
        jail_open(needs);
    opened = true;
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
    }
    bool is_x86 = !strcmp(info->target_name, "x86_64");
    mark = is_x86 ? x86 : !strcmp(info->target_name, "aarch64") ? aarch64 : riscv;
    mark_size = is_x86 ? sizeof x86 : sizeof riscv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    return 0;
}

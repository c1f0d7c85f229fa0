/* A QEMU plug-in that counts a marked region's instructions before its first access to an operand
 * and after its last one, for regions on one thread. It writes a line a region (see region.h). */
#include "plugin/qemu_plugin_api.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Where the harness places operands at fixed addresses: `guarded_place` of harness_memory.c. */
enum { OPERANDS_AT = 34, OPERANDS_END = 36 };

QEMU_PLUGIN_EXPORT int qemu_plugin_version = 1;

static FILE *output;
static uint32_t begin, warm, end; /* the words of the marks */
static uint64_t made, first, last;

static void on_run(unsigned cpu, void *data) {
    (void)cpu, (void)data;
    made++;
}

static void on_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    (void)cpu, (void)info, (void)data;
    if (address >> OPERANDS_AT == 0 || address >> OPERANDS_END != 0)
        return;
    first = first ? first : made;
    last = made;
}

static void on_begin(unsigned cpu, void *data) {
    (void)cpu, (void)data;
    made = first = last = 0;
}

static void on_end(unsigned cpu, void *data) {
    (void)cpu, (void)data;
    fprintf(output, "%" PRIu64 "\n", first ? made - (last - first + 1) : made);
    fflush(output);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint32_t word = 0;
        if (qemu_plugin_insn_size(insn) == sizeof word)
            memcpy(&word, qemu_plugin_insn_data(insn), sizeof word);
        qemu_plugin_register_vcpu_insn_exec_cb(insn,
                                               word == begin || word == warm ? on_begin
                                               : word == end                 ? on_end
                                                                             : on_run,
                                               QEMU_PLUGIN_CB_NO_REGS, NULL);
        qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, NULL);
    }
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                                           char **argv) {
    const bool riscv = !strcmp(info->target_name, "riscv64");
    begin = riscv ? 0x41102013 : 0xd5032c9f;
    warm = riscv ? 0x41402013 : 0xd5032cff;
    end = riscv ? 0x41202013 : 0xd5032cbf;
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "out=", 4))
            output = fopen(argv[i] + 4, "w");
    if (!output)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    return 0;
}

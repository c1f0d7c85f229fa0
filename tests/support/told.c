/* To be preloaded: what a kernel would say of a processor. TOLD_HWCAP, TOLD_HWCAP2: the words of
 * the auxiliary vector; TOLD_HWPROBE: RISC-V's IMA_EXT_0, or `none`; TOLD_VECTORS: what prctl says
 * of this process's. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

static unsigned long word(const char *name) {
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 0) : 0;
}

unsigned long getauxval(unsigned long type) {
    return type == AT_HWCAP ? word("TOLD_HWCAP") : type == AT_HWCAP2 ? word("TOLD_HWCAP2") : 0;
}

/* The library's only one is riscv_hwprobe. */
long syscall(long number, ...) {
    const char *text = getenv("TOLD_HWPROBE");
    va_list arguments;
    va_start(arguments, number);
    struct {
        int64_t key;
        uint64_t value;
    } *pair = va_arg(arguments, void *);
    va_end(arguments);
    if (number != 258 || !text || !strcmp(text, "none")) {
        errno = ENOSYS;
        return -1;
    }
    pair->value = strtoul(text, NULL, 0);
    return 0;
}

int prctl(int option, ...) {
    if (option == 70 && getenv("TOLD_VECTORS"))
        return (int)word("TOLD_VECTORS");
    errno = EINVAL;
    return -1;
}

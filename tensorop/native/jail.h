/* The rights of a process that runs untrusted code. The harness, other programs and QEMU's plug-
 * in share this header; the plug-in is linked without a C library of its own.
 *
 * jail_open: from here on the process can neither execute, start, trace, connect to nor write
 * anything. It can read files, to load libraries and to set up an emulator's guest. jail_close:
 * it keeps only the needs of a computation. Both are permanent, and use every guard that the
 * kernel has: system call filters (seccomp), Landlock, limits, and another user in place of
 * root. */
#ifndef TENSOROP_JAIL_H
#define TENSOROP_JAIL_H

#ifndef _GNU_SOURCE
#error "jail.h needs _GNU_SOURCE before any header"
#endif
#include "region.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* THREADS: calls use several threads; READS: libraries load parts of themselves at their first
 * call; EMULATOR: the process is an emulator with a guest; FORKS: calls are made after fork. */
enum jail_need { JAIL_THREADS = 1, JAIL_READS = 2, JAIL_EMULATOR = 4, JAIL_FORKS = 8 };

#if defined(__x86_64__)
#define JAIL_AUDIT AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define JAIL_AUDIT AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define JAIL_AUDIT AUDIT_ARCH_RISCV64
#endif

enum {
    JAIL_NOBODY = 65534,
    JAIL_INSTRUCTIONS = 768,
    /* The errno of getpgid in a closed jail. So a process can test for the jail, also in an
     * emulator. */
    JAIL_ANSWER = ENOTUNIQ,
};

struct jail_filter {
    struct sock_filter code[JAIL_INSTRUCTIONS];
    unsigned short n;
};

#define JAIL_ERRNO(number) (SECCOMP_RET_ERRNO | (number))
#define JAIL_LOW(i) (offsetof(struct seccomp_data, args) + 8 * (i))
#define JAIL_HIGH(i) (JAIL_LOW(i) + 4)

static void jail_put(struct jail_filter *f, unsigned short code, uint8_t yes, uint8_t no,
                     uint32_t k) {
    if (f->n < JAIL_INSTRUCTIONS)
        f->code[f->n++] = (struct sock_filter){code, yes, no, k};
}

static void jail_answer(struct jail_filter *f, const int *numbers, size_t count, uint32_t answer) {
    for (size_t i = 0; i < count; i++) {
        jail_put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)numbers[i]);
        jail_put(f, BPF_RET | BPF_K, 0, 0, answer);
    }
}

/* Allows a call whose argument has these bits under a mask, and answers others. */
static void jail_check(struct jail_filter *f, int number, uint32_t at, uint32_t mask, uint32_t bits,
                       uint32_t otherwise) {
    jail_put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 5, (uint32_t)number);
    jail_put(f, BPF_LD | BPF_W | BPF_ABS, 0, 0, at);
    jail_put(f, BPF_ALU | BPF_AND | BPF_K, 0, 0, mask);
    jail_put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, bits);
    jail_put(f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
    jail_put(f, BPF_RET | BPF_K, 0, 0, otherwise);
}

/* Memory, time, open files, and exit. */
static const int jail_computing[] = {
    SYS_read,
    SYS_readv,
    SYS_write,
    SYS_writev,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_clock_gettime,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
#ifdef __riscv
    258 /* riscv_hwprobe */,
    259 /* riscv_flush_icache */,
#endif
};

/* Further calls of emulators, threads and large libraries: signals to themselves, their
 * identity, their CPU. */
static const int jail_hosting[] = {
    SYS_pread64,
    SYS_lseek,
    SYS_close,
    SYS_fstat,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_times,
    SYS_getrusage,
    SYS_rt_sigaction,
    SYS_rt_sigsuspend,
    SYS_rt_sigpending,
    SYS_sigaltstack,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_getcpu,
    SYS_sysinfo,
    SYS_uname,
    SYS_getrandom,
    SYS_membarrier,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_rseq,
    SYS_getpid,
    SYS_getppid,
    SYS_gettid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
#ifdef SYS_getrlimit
    SYS_getrlimit,
#endif
#ifdef SYS_time
    SYS_time,
#endif
#ifdef SYS_arch_prctl
    SYS_arch_prctl,
#endif
};

/* Looking up files, without opening them. */
static const int jail_reading[] = {
    SYS_newfstatat, SYS_statx,      SYS_statfs,    SYS_fstatfs,
    SYS_getdents64, SYS_readlinkat, SYS_faccessat, SYS_getcwd,
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_stat
    SYS_stat,       SYS_lstat,      SYS_access,    SYS_readlink,
#endif
};

/* Set-up, and the calls that close the jail. */
static const int jail_opening[] = {
    SYS_prctl,          SYS_seccomp,           444,           445,
    446 /* Landlock */, SYS_setresuid,         SYS_setresgid, SYS_setgroups,
    SYS_setrlimit,      SYS_prlimit64,         SYS_fcntl,     SYS_dup,
    SYS_dup3,           SYS_sched_setaffinity, SYS_getpgid,
#ifdef SYS_dup2
    SYS_dup2,
#endif
};

/* Libraries and emulators try these calls, but do not need them. */
static const int jail_denied[] = {
    SYS_prctl,
    SYS_fcntl,
    SYS_mbind,
    SYS_set_mempolicy,
    SYS_get_mempolicy,
    SYS_sched_setaffinity,
    SYS_sched_setscheduler,
    SYS_memfd_create,
    SYS_shmget,
    SYS_setpriority,
};

static int jail_install(struct jail_filter *f) {
    struct sock_fprog program = {.len = f->n, .filter = f->code};
    if (f->n == JAIL_INSTRUCTIONS || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    /* On all threads. Older kernels enable a mitigation with a filter, which slows down memory
     * and would change all times; the flag disables it. */
    unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0)
        return 0;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ? -1
                                                                                              : 0;
}

static int jail_filter(int closed, unsigned needs) {
    struct jail_filter f = {.n = 0};
    /* A refused call of a candidate raises a signal, which the harness reports. An emulator is
     * killed: it would continue as if the call had been made. */
    const uint32_t refused = !closed                 ? JAIL_ERRNO(EPERM)
                             : needs & JAIL_EMULATOR ? SECCOMP_RET_KILL_PROCESS
                                                     : SECCOMP_RET_TRAP;
    const uint32_t self = (uint32_t)getpid();
    const int ioctls[] = {SYS_ioctl}, newer[] = {435 /* clone3 */}, asked[] = {SYS_getpgid};
#define JAIL_LIST(list, answer) jail_answer(&f, list, sizeof list / sizeof *list, answer)
    jail_put(&f, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
    jail_put(&f, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, JAIL_AUDIT);
    jail_put(&f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
    jail_put(&f, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
    JAIL_LIST(jail_computing, SECCOMP_RET_ALLOW);
    JAIL_LIST(ioctls, JAIL_ERRNO(ENOTTY)); /* stdio tests whether its file is a terminal */
    JAIL_LIST(newer, JAIL_ERRNO(ENOSYS));  /* a filter cannot read its flags; clone replaces it */
    if (closed)
        JAIL_LIST(asked, JAIL_ERRNO(JAIL_ANSWER));
    if (!closed || needs) {
        JAIL_LIST(jail_hosting, SECCOMP_RET_ALLOW);
        jail_check(&f, SYS_kill, JAIL_LOW(0), UINT32_MAX, self, refused);
        jail_check(&f, SYS_tgkill, JAIL_LOW(0), UINT32_MAX, self, refused);
    }
    if (needs & JAIL_FORKS) {
        /* The flags of the C library's fork. The child has the same jail, session and group, and
         * the parent waits for it. The open jail allows it too, since its filter stays. */
        const int waits[] = {SYS_wait4};
        JAIL_LIST(waits, SECCOMP_RET_ALLOW);
        jail_put(&f, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_clone);
        jail_put(&f, BPF_LD | BPF_W | BPF_ABS, 0, 0, JAIL_LOW(0));
        jail_put(&f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1,
                 CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD);
        jail_put(&f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
        jail_put(&f, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
    }
    if (needs & JAIL_THREADS) {
        const uint32_t thread = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
        const uint32_t other = CLONE_VFORK | CLONE_PTRACE | CLONE_NEWNS | CLONE_NEWCGROUP |
                               CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                               CLONE_NEWNET;
        jail_check(&f, SYS_clone, JAIL_LOW(0), thread | other, thread, refused);
        if (closed && !(needs & JAIL_READS)) {
            /* glibc's free in a thread tries to read /proc/sys/vm/overcommit_memory before it
             * shrinks a heap, and an emulator first looks for that file in its root. Neither
             * needs it. */
            const int opening[] = {SYS_openat, SYS_faccessat,
#ifdef SYS_open
                                   SYS_open, SYS_access
#endif
            };
            JAIL_LIST(opening, JAIL_ERRNO(EACCES));
        }
    }
    if (!closed)
        JAIL_LIST(jail_opening, SECCOMP_RET_ALLOW);
    if (!closed || needs & JAIL_READS) {
        const uint32_t writes = O_ACCMODE | O_CREAT | O_TRUNC | 020000000 /* O_TMPFILE's own bit */;
        JAIL_LIST(jail_reading, SECCOMP_RET_ALLOW);
        jail_check(&f, SYS_openat, JAIL_LOW(2), writes, O_RDONLY, JAIL_ERRNO(EACCES));
#ifdef SYS_open
        jail_check(&f, SYS_open, JAIL_LOW(1), writes, O_RDONLY, JAIL_ERRNO(EACCES));
#endif
    } else if (needs) {
        /* The C library's fstat, which has no path. */
        jail_check(&f, SYS_newfstatat, JAIL_LOW(3), 0x1000 /* AT_EMPTY_PATH */, 0x1000, refused);
    }
    if (closed && needs) {
        /* Limits can only be read: the pointer to a new one must be NULL, in both halves. */
        jail_put(&f, BPF_JMP | BPF_JEQ | BPF_K, 0, 6, SYS_prlimit64);
        jail_put(&f, BPF_LD | BPF_W | BPF_ABS, 0, 0, JAIL_LOW(2));
        jail_put(&f, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 0);
        jail_put(&f, BPF_LD | BPF_W | BPF_ABS, 0, 0, JAIL_HIGH(2));
        jail_put(&f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
        jail_put(&f, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
        jail_put(&f, BPF_RET | BPF_K, 0, 0, refused);
        JAIL_LIST(jail_denied, JAIL_ERRNO(EPERM));
    }
#undef JAIL_LIST
    jail_put(&f, BPF_RET | BPF_K, 0, 0, refused);
    return jail_install(&f);
}

/* Removes the rights to change or execute files, to bind and to connect; with `all`, also to
 * read files. -1 if the kernel has no Landlock. It applies to this thread and the threads that
 * it starts. */
static int jail_landlock(int all) {
    enum { RIGHTS_OF_ABI = 5, READ_FILE = 1 << 2, READ_DIR = 1 << 3 };
    static const uint64_t rights[] = {0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};
    struct {
        uint64_t files, net;
    } handled;
    long abi = syscall(444, NULL, (size_t)0, 1u /* returns the ABI version */);
    if (abi < 1 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    handled.files = rights[abi < RIGHTS_OF_ABI ? abi : RIGHTS_OF_ABI];
    handled.files &= all ? ~(uint64_t)0 : ~(uint64_t)(READ_FILE | READ_DIR);
    handled.net = 3;
    long rules = syscall(444, &handled, abi < 4 ? sizeof handled.files : sizeof handled, 0u);
    if (rules < 0)
        return -1;
    long bound = syscall(446, (int)rules, 0u);
    close((int)rules);
    return bound ? -1 : 0;
}

/* Limits, which every kernel supports. A thread counts as a process. */
static void jail_limit(unsigned needs) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (!(needs & JAIL_READS))
        setrlimit(RLIMIT_NOFILE, &none);
    if (!(needs & (JAIL_THREADS | JAIL_FORKS)))
        setrlimit(RLIMIT_NPROC, &none);
}

/* Root becomes nobody, in all threads. */
static void jail_become_nobody(void) {
    if (geteuid() != 0)
        return;
    pid_t parent = getppid();
    (void)!setgroups(0, NULL);
    (void)!setresgid(JAIL_NOBODY, JAIL_NOBODY, JAIL_NOBODY);
    (void)!setresuid(JAIL_NOBODY, JAIL_NOBODY, JAIL_NOBODY);
    /* A change of user clears the signal at the parent's death. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(3);
}

/* Whether the process is in a closed jail. */
static inline int jail_closed(void) {
    return syscall(SYS_getpgid, 0) == -1 && errno == JAIL_ANSWER;
}

static inline int jail_open(unsigned needs) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    jail_landlock(0);
    return jail_filter(0, needs);
}

static inline int jail_close(unsigned needs) {
    const int reads = (needs & JAIL_READS) != 0;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    jail_landlock(!reads); /* before the limits, since its rules need a file descriptor */
    jail_limit(needs);
    if (!reads) /* root's files may be needed */
        jail_become_nobody();
    return jail_filter(1, needs);
}

/* Closes the jail, by QEMU's plug-in if there is one; 0 if it is closed. */
static inline int jail_enter(unsigned needs) {
    TENSOROP_JAIL();
    if (!jail_closed())
        jail_close(needs);
    return jail_closed() ? 0 : -1;
}

#endif

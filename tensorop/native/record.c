/* libtensorop_record.so: counts and times a program's calls of BLAS in front of any library.
 *
 * wrappers.h is generated from the table of routines. It has a function for each name of a routine,
 * which calls the function of that name that the program would have called, and the table of
 * routines by number. Kinds of calls are in a hash table of fixed size, in memory that forked
 * processes share; it needs no locks. The calling thread writes the record once a second, and the
 * process writes it when it ends.
 *
 *   TENSOROP_RECORD  file to which libtensorop_record.so writes the calls; %p: the process
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { MOST = 1 << 14, FLAGS = 5, NUMBERS = 6, PATIENCE = 100000 };
static const uint64_t SECOND = 1000000000;

/* A kind of calls: the key of the table. It has no padding. */
typedef struct {
    uint16_t routine;
    char layout; /* 'r', 'c', 0: the routine has none */
    char flags[FLAGS];
    int64_t numbers[NUMBERS]; /* sizes and increments */
} Kind;

typedef struct {
    _Atomic uint32_t state; /* EMPTY, CLAIMED, READY */
    Kind kind;
    _Atomic uint64_t calls, nanoseconds;
    _Atomic uint64_t served; /* those that went to a libtensorop_cblas */
} Slot;
enum { EMPTY, CLAIMED, READY };

typedef struct {
    Slot slots[MOST];
    Slot more;                /* calls of further kinds */
    _Atomic uint64_t written; /* when the record was last written */
    _Atomic uint32_t failed;  /* 1: a failure to write it was reported */
    _Atomic uint32_t changed; /* 1: since it was last written */
} Table;

/* A routine in the record: its name, and the names of its flags and numbers, with spaces between.
 */
typedef struct {
    const char *name, *flags, *numbers;
} Routine;

/* A name that a program calls, and its function. ours: 1: of a libtensorop_cblas. */
typedef struct {
    const char *name;
    void *_Atomic real;
    _Atomic char ours;
} Target;

static Table *table;
static char path[PATH_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread int depth
    __attribute__((tls_model("initial-exec"))); /* a BLAS may call its own names */

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* Reads TENSOROP_RECORD. %p in it is the process. */
static void prepare(void) {
    const char *given = getenv("TENSOROP_RECORD");
    if (given == NULL || *given == '\0')
        return;
    char folder[PATH_MAX] = "";
    if (*given != '/' && getcwd(folder, sizeof folder) == NULL)
        folder[0] = '\0';
    const char *process = strstr(given, "%p");
    int until = process ? (int)(process - given) : (int)strlen(given);
    int length = snprintf(path, sizeof path, "%s%s%.*s", folder, *folder ? "/" : "", until, given);
    if (process && length < (int)sizeof path)
        length += snprintf(path + length, sizeof path - (size_t)length, "%d%s", (int)getpid(),
                           process + 2);
    void *memory = MAP_FAILED;
    if (length < (int)sizeof path - 32)
        memory =
            mmap(NULL, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        fprintf(
            stderr,
            "tensorop record: no memory, or TENSOROP_RECORD is too long; nothing is recorded\n");
        return;
    }
    table = memory;
    table->written = now();
}

static char letter(int value) {
    switch (value) {
    case 111:
    case 131:
        return 'N';
    case 112:
        return 'T';
    case 113:
        return 'C';
    case 121:
    case 132:
        return 'U';
    case 122:
    case 141:
        return 'L';
    case 142:
        return 'R';
    default:
        return '?';
    }
}

static char order(int value) { return value == 101 ? 'r' : value == 102 ? 'c' : '?'; }

static char upper(const void *flag) {
    char c = *(const char *)flag;
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c > ' ' && c <= '~' ? c : '?';
}

static uint64_t hashed(const Kind *kind) {
    uint64_t words[sizeof *kind / 8], found = 14695981039346656037u;
    memcpy(words, kind, sizeof words);
    for (size_t i = 0; i < sizeof words / 8; i++)
        found = ((found ^ words[i]) * 0x9E3779B97F4A7C15u) ^ (found >> 29);
    return found ^ (found >> 32);
}

/* The slot of a kind. A process that was killed may leave a slot claimed; others pass it after a
 * while. */
static Slot *slot_of(const Kind *kind) {
    uint64_t place = hashed(kind);
    for (int tries = 0; tries < MOST; tries++, place++) {
        Slot *slot = &table->slots[place % MOST];
        uint32_t state = EMPTY;
        if (atomic_compare_exchange_strong(&slot->state, &state, CLAIMED)) {
            slot->kind = *kind;
            atomic_store(&slot->state, READY);
            return slot;
        }
        for (int i = 0; i < PATIENCE && state == CLAIMED; i++)
            state = atomic_load(&slot->state);
        if (state == READY && memcmp(&slot->kind, kind, sizeof *kind) == 0)
            return slot;
    }
    return &table->more;
}

/* Appends " NAME=VALUE" for each of the names. */
static int fields(char *line, size_t size, const char *names, const Kind *kind, int letters) {
    int length = 0;
    for (int i = 0; *names; i++) {
        int name = (int)strcspn(names, " ");
        char *to = line + length;
        length += letters
                      ? snprintf(to, size - (size_t)length, " %.*s=%c", name, names, kind->flags[i])
                      : snprintf(to, size - (size_t)length, " %.*s=%lld", name, names,
                                 (long long)kind->numbers[i]);
        names += name + (names[name] == ' ');
    }
    return length;
}

/* Ends a line. */
static int counts(char *line, size_t size, const Slot *slot) {
    char served[32] = "";
    if (slot->served)
        snprintf(served, sizeof served, " served=%llu", (unsigned long long)slot->served);
    return snprintf(line, size, " calls=%llu seconds=%.9f%s\n", (unsigned long long)slot->calls,
                    (double)slot->nanoseconds / 1e9, served);
}

static const Routine routines[];

static int line_of(char *line, size_t size, const Slot *slot) {
    const Kind *kind = &slot->kind;
    const Routine *routine = &routines[kind->routine];
    int length = snprintf(line, size, "%s", routine->name);
    if (kind->layout)
        length += snprintf(line + length, size - (size_t)length, " layout=%s",
                           kind->layout == 'r'   ? "row"
                           : kind->layout == 'c' ? "col"
                                                 : "?");
    length += fields(line + length, size - (size_t)length, routine->flags, kind, 1);
    length += fields(line + length, size - (size_t)length, routine->numbers, kind, 0);
    return length + counts(line + length, size - (size_t)length, slot);
}

/* Writes all of the text; 0 if it could not. */
static int put(int file, const char *text, size_t size) {
    while (size > 0) {
        ssize_t done = write(file, text, size);
        if (done < 0 && errno != EINTR)
            return 0;
        text += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return 1;
}

static int write_lines(int file, char *buffer, size_t size) {
    enum { LINE = 512 };
    size_t length = (size_t)snprintf(
        buffer, size, "# tensorop record 1; docs/reference/shapes-file.md explains its lines\n");
    for (int i = 0; i < MOST; i++) {
        Slot *slot = &table->slots[i];
        if (atomic_load(&slot->state) != READY || slot->calls == 0)
            continue;
        length += (size_t)line_of(buffer + length, LINE, slot);
        if (length + LINE > size) {
            if (!put(file, buffer, length))
                return 0;
            length = 0;
        }
    }
    if (table->more.calls) {
        length += (size_t)snprintf(buffer + length, LINE, "# beyond %d kinds of calls:", MOST);
        length += (size_t)counts(buffer + length, LINE / 2, &table->more);
    }
    return put(file, buffer, length);
}

/* Replaces the record by the table's present state, so that a reader never sees a part. */
static void write_record(void) {
    enum { SIZE = 1 << 16 };
    atomic_store(&table->changed, 0); /* before the table is read */
    char temporary[PATH_MAX];
    snprintf(temporary, sizeof temporary, "%.*s.%ld", PATH_MAX - 32, path, syscall(SYS_gettid));
    char *buffer = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int done = file >= 0 && buffer != MAP_FAILED && write_lines(file, buffer, SIZE);
    if (file >= 0)
        close(file);
    done = done && rename(temporary, path) == 0;
    if (!done && atomic_exchange(&table->failed, 1) == 0)
        fprintf(stderr, "tensorop record: cannot write %s: %s\n", path, strerror(errno));
    if (!done)
        unlink(temporary);
    if (buffer != MAP_FAILED)
        munmap(buffer, SIZE);
}

/* The function of a name in a loaded object and the libraries that it needs; NULL: none has it, or
 * it is ours. The object stays loaded, since its function is called from now on. */
static void *found_in(const char *file, const char *name) {
    void *object = file && *file ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = object ? dlsym(object, name) : NULL;
    Dl_info ours, theirs;
    if (found && dladdr(found, &theirs) && dladdr((void *)found_in, &ours) &&
        theirs.dli_fbase != ours.dli_fbase)
        return found;
    if (object)
        dlclose(object);
    return NULL;
}

typedef struct {
    int before; /* loaded objects before this one */
    char file[PATH_MAX];
} Loaded;

static int one_of_all(struct dl_phdr_info *info, size_t size, void *data) {
    Loaded *loaded = data;
    (void)size;
    if (loaded->before-- > 0)
        return 0;
    snprintf(loaded->file, sizeof loaded->file, "%s", info->dlpi_name ? info->dlpi_name : "");
    return 1;
}

/* The function that the program would have called: of the global scope, else of the caller's
 * libraries, since an extension module of Python has them in a scope of its own, else of any. */
static void resolve(Target *target, void *caller) {
    void *found = dlsym(RTLD_NEXT, target->name);
    Dl_info from;
    if (found == NULL && dladdr(caller, &from))
        found = found_in(from.dli_fname, target->name);
    Loaded loaded;
    for (int place = 0; found == NULL; place++) {
        loaded.before = place;
        if (dl_iterate_phdr(one_of_all, &loaded) == 0)
            break;
        found = found_in(loaded.file, target->name); /* outside of the loader's lock */
    }
    if (found == NULL) {
        fprintf(stderr, "tensorop record: the program calls %s, and no library has it\n",
                target->name);
        abort();
    }
    Dl_info of;
    if (dladdr(found, &of) && of.dli_fname && strstr(of.dli_fname, "/libtensorop_cblas.so"))
        atomic_store(&target->ours, 1);
    atomic_store(&target->real, found);
}

/* Before a call: when it began; 0 for one that is not recorded. */
static uint64_t begin(Target *target, void *caller) {
    int error = errno;
    pthread_once(&once, prepare);
    if (atomic_load_explicit(&target->real, memory_order_acquire) == NULL)
        resolve(target, caller);
    errno = error;
    return depth++ == 0 && table ? now() : 0;
}

/* After a call; its arguments may be read if it is recorded. */
static int end(uint64_t began) {
    depth--;
    return began != 0;
}

static void add(const Target *target, uint64_t began, Kind kind) {
    int error = errno;
    uint64_t ended = now(), written = atomic_load(&table->written);
    Slot *slot = slot_of(&kind);
    atomic_fetch_add(&slot->nanoseconds, ended > began ? ended - began : 1);
    atomic_fetch_add(&slot->calls, 1);
    if (target->ours)
        atomic_fetch_add(&slot->served, 1);
    atomic_store(&table->changed, 1);
    if (ended > written + SECOND &&
        atomic_compare_exchange_strong(&table->written, &written, ended))
        write_record();
    errno = error;
}

/* Before the program runs: processes that it forks share the table, and it may change its folder.
 */
__attribute__((constructor)) static void start(void) { pthread_once(&once, prepare); }

__attribute__((destructor)) static void finish(void) {
    if (table && table->changed)
        write_record();
}

/* Forked processes often end so, as those of Python's multiprocessing. */
EXPORT void _exit(int status) {
    finish();
    for (;;)
        syscall(SYS_exit_group, status);
}

#include "wrappers.h"

"""Finds a library's BLAS names, and writes the harness's adapter that calls every function by a record of numbers.

A record has one number for each argument: flag[FIRST + i] has integers, letters, and the numbers of operands' buffers;
scalar[2 * i] and scalar[2 * i + 1] have the parts of a scalar. So operands may share a buffer. A call of the harness
has several records of one form: it begins with their number, how many flags, scalars and buffers one has, and whether
the process forks first. Then the child makes this call and all later ones. Several are called at once, on threads
with small stacks.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tensorop.blas.routines import COMPLEX, LAYOUTS, BlasInterface, BlasRoutine, Role, functions, real
from tensorop.errors import UsageError
from tensorop.model.architecture import ARCHITECTURES
from tensorop.toolchain import shared_library

HEAD = 5  # flags before the records
BY_ARGUMENT = -1  # reported: the function writes its complex result where a first argument points
FUNCTION, LAYOUT, RESULT, FIRST = range(4)  # flags: the function, 0 or CBLAS's layout, a buffer for a result
_NAMES = "|".join(sorted((re.escape(name) for name in functions()), key=len, reverse=True))
_SYMBOL = re.compile(rf"((?:[A-Za-z]\w*?_)??)(cblas_)?({_NAMES})(?:_sub)?(_?(?:64)?_?)")
_WIDE_FILE = re.compile("blas64|ilp64")  # files with 64-bit integers and plain names, as in Debian
_HINT = "pass the shared library (.so) of a BLAS"


@dataclass(frozen=True)
class BlasLibrary:
    """A library with names of a BLAS."""

    path: Path
    arch: str
    fortran: BlasInterface | None
    cblas: BlasInterface | None
    exports: frozenset[str]

    def interfaces(self) -> Iterator[BlasInterface]:
        yield from (one for one in (self.fortran, self.cblas) if one is not None)

    def layouts(self, routine: BlasRoutine, dtype: str) -> tuple[str, ...]:
        """The ways to call a function: `fortran`, and `col` and `row` by CBLAS."""
        found: list[str] = []
        of_cblas = self.cblas is not None and self.cblas.symbol(routine, dtype) in self.exports
        if self.fortran is not None and self.fortran.symbol(routine, dtype) in self.exports:
            found.append("fortran")
        if of_cblas:
            found += ["col", "row"] if routine.level > 1 else ["col"]
        return tuple(found)


def find(path: Path) -> BlasLibrary:
    """Reads the names of a library. Raises UsageError for a file that is none, or that has no BLAS."""
    try:
        facts = shared_library.facts(path)
        exports, arch = facts.exports, facts.machine
    except OSError as error:
        raise UsageError(f"--blas {path} cannot be read: {error.strerror or error}", hint=_HINT) from None
    except Exception as error:  # the reader raises any exception for bytes that are not ELF
        why = str(error) or type(error).__name__
        raise UsageError(f"--blas {path} is not a shared library: {why}", hint=_HINT) from None
    known = {one.elf_machine: name for name, one in ARCHITECTURES.items()}
    if arch not in known:
        raise UsageError(f"--blas {path} is for {arch}; expected one of {', '.join(known)}", hint=_HINT)
    counts: dict[tuple[str, bool, str], int] = defaultdict(int)
    for name in exports:
        if match := _SYMBOL.fullmatch(name):
            counts[match[1], match[2] is not None, match[4]] += 1
    best: dict[bool, BlasInterface] = {}
    # of equally many names those without a prefix, with integers of 32 bits
    order = sorted(counts.items(), key=lambda item: (item[1], not item[0][0], "64" not in item[0][2]))
    for (prefix, cblas, suffix), _ in order:
        best[cblas] = BlasInterface(cblas, prefix, suffix, "64" in suffix or _WIDE_FILE.search(path.name) is not None)
    if not best:
        raise UsageError(
            f"--blas {path} exports no name of a BLAS, such as dscal_ or cblas_dscal, of {len(exports)} names",
            hint=_HINT,
        )
    return BlasLibrary(path, known[arch], best.get(False), best.get(True), exports)


INDEX = {name: number for number, name in enumerate(functions())}  # of a function in the adapter


_HEAD = """\
#include "bind.h"

#include <pthread.h>
#include <stdio_ext.h>
#include <sys/wait.h>
#include <unistd.h>

typedef {integer} integer;
enum {{ RESULT = {RESULT}, BY_ARGUMENT = {BY_ARGUMENT} }};
static int64_t reported;
static char printed[2][4096]; /* to stdout and stderr */
"""
_FORTRAN_REPORT = """
void {name}(const char *name, const integer *info, size_t length) {{
    (void)name, (void)length;
    reported = *info;
}}
"""
_CBLAS_REPORT = """
void {name}(integer info, const char *name, const char *form, ...) {{
    (void)name, (void)form;
    reported = info;
}}
"""
_BIND = """
struct way {{
    const char *fortran, *cblas;
    void (*call[2])(const struct tensorop_call *c, void *function);
}};
static const struct way ways[] = {{
{rows}}};
static void *found[sizeof ways / sizeof *ways][2];

/* The number in a message such as "parameter number 8 had an illegal value", of a library that
 * calls its own xerbla, or "Parameter 8 was incorrect"; 0 without one. */
static int64_t printed_number(void) {{
    int64_t number = 0;
    for (int i = 0; i < 2; i++) {{
        FILE *stream = i ? stderr : stdout;
        const size_t size = __fpending(stream);
        printed[i][size < sizeof printed[i] ? size : sizeof printed[i] - 1] = 0;
        const char *at = strstr(printed[i], "arameter ");
        for (; at && *at && !number; at++)
            number = strtoll(at, NULL, 10);
        __fpurge(stream);
    }}
    return number;
}}

static pthread_barrier_t begin;

static void *one(void *given) {{
    const struct tensorop_call *c = given;
    const int64_t number = c->flag[{FUNCTION}];
    const int cblas = c->flag[{LAYOUT}] != 0;
    ways[number].call[cblas](c, found[number][cblas]);
    return NULL;
}}

static void *with_others(void *given) {{
    pthread_barrier_wait(&begin);
    return one(given);
}}

/* Continues in a child. The parent ends as the child does. */
static void continue_after_fork(void) {{
    const pid_t child = fork();
    int status = 0;
    if (child) {{
        if (child < 0 || waitpid(child, &status, 0) != child)
            abort();
        _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    }}
}}

static void call(const struct tensorop_bound *self, const struct tensorop_call *c) {{
    enum {{ MOST = 16, STACK = 256 << 10 }};
    struct tensorop_call each[MOST];
    pthread_t thread[MOST];
    pthread_attr_t small;
    (void)self;
    const int64_t *head = c->flag, count = head[0] < MOST ? head[0] : MOST;
    for (int64_t i = 0; i < count; i++)
        each[i] = (struct tensorop_call){{c->dim, c->ld, c->scalar + i * head[2],
                                         head + {HEAD} + i * head[1], c->buffer + i * head[3]}};
    if (head[4])
        continue_after_fork();
    if (count == 1) {{
        reported = 0;
        one(&each[0]);
        const int64_t number = printed_number();
        reported = reported ? reported : number;
        memcpy(c->buffer[each[0].flag[{RESULT}] + 1], &reported, sizeof reported);
        return;
    }}
    pthread_barrier_init(&begin, NULL, (unsigned)count);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (int64_t i = 0; i < count; i++)
        if (pthread_create(&thread[i], &small, with_others, &each[i]))
            abort();
    for (int64_t i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&begin);
}}

int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype,
                  const char *prefix, const char *suffix,
                  void *(*lookup)(void *handle, const char *symbol), void *handle) {{
    (void)api, (void)dtype, (void)prefix, (void)suffix;
    out->call = call;
    out->function = handle;
    setvbuf(stdout, printed[0], _IOFBF, sizeof printed[0]);
    setvbuf(stderr, printed[1], _IOFBF, sizeof printed[1]);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {{
        found[i][0] = *ways[i].fortran ? lookup(handle, ways[i].fortran) : NULL;
        found[i][1] = *ways[i].cblas ? lookup(handle, ways[i].cblas) : NULL;
    }}
    return 0;
}}
"""


# Compilers return complex values, or write them where a first argument points. With a first argument of zeros, a
# function that returns its value takes them for n, and reads no vector.
_BY_ARGUMENT = """\
{real} zeros[4] = {{0}}, one[2] = {{1, 1}};
    const integer single = 1;
    ((void (*)({real} *, {types}))function)(zeros, &single, one, &single, one, &single);
    if (zeros[0] != 0 || zeros[1] != 0) {{
        reported = BY_ARGUMENT;
        ((void (*)({real} *, {types}))function)(c->buffer[c->flag[RESULT]], {words});
        return;
    }}"""


def _wrapper(interface: BlasInterface, routine: BlasRoutine, dtype: str, name: str) -> str:
    """A C function that makes one call."""
    lines, words, lengths = [], [], []
    if interface.laid_out(routine):
        words.append(f"(int)c->flag[{LAYOUT}]")
    for number, one in enumerate(routine.arguments):
        given, value = f"c->flag[{FIRST + number}]", f"p{number}"
        if one.role is Role.OPERAND:
            words.append(f"c->buffer[{given}]")
            continue
        if one.role is Role.SCALAR:
            parts = [f"c->scalar[{2 * number + part}]" for part in range(2)]
            wide = dtype in COMPLEX and not one.real
            lines.append(f"const {real(dtype)} {value}[2] = {{{parts[0]}, {parts[1] if wide else 0}}};")
            words.append(f"{value}[0]" if interface.by_value(one, dtype) else value)
            continue
        kind = "integer" if one.role is not Role.FLAG else "int" if interface.cblas else "char"
        lines.append(f"const {kind} {value} = ({kind}){given};")
        words.append(value if interface.cblas else f"&{value}")
        lengths += ["(size_t)1"] if one.role is Role.FLAG and not interface.cblas else []
    returned = interface.returns(routine, dtype)
    two_ways = returned.endswith("_Complex")
    types = [word.rpartition(" ")[0] + "*" * word.count("*") for word in interface.parameters(routine, dtype)]
    if routine.result and returned == "void":
        words.append(f"c->buffer[c->flag[{RESULT}]]")
    types += ["size_t"] * len(lengths)
    made = f"(({returned} (*)({', '.join(types)}))function)({', '.join([*words, *lengths])});"
    if returned != "void":
        made = f"const {returned} result = {made}\n    memcpy(c->buffer[c->flag[{RESULT}]], &result, sizeof result);"
    if two_ways:
        lines.append(_BY_ARGUMENT.format(real=real(dtype), types=", ".join(types), words=", ".join(words)))
    body = "".join(f"    {line}\n" for line in (*lines, made))
    return f"\nstatic void {name}(const struct tensorop_call *c, void *function) {{\n{body}}}\n"


def adapter(library: BlasLibrary) -> str:
    """The C of the adapter for a library's names; equal for all libraries with the same names."""
    wide = any(one.wide for one in library.interfaces())
    text = [_HEAD.format(integer="int64_t" if wide else "int32_t", RESULT=RESULT, BY_ARGUMENT=BY_ARGUMENT)]
    rows = []
    for name, (routine, dtype) in functions().items():
        row = {False: ('""', "NULL"), True: ('""', "NULL")}
        for one in library.interfaces():
            own = f"{'cblas' if one.cblas else 'fortran'}_{name}"
            text.append(_wrapper(one, routine, dtype, own))
            row[one.cblas] = (f'"{one.symbol(routine, dtype)}"', own)
        rows.append(f"    {{{row[False][0]}, {row[True][0]}, {{{row[False][1]}, {row[True][1]}}}}},\n")
    for one in library.interfaces():
        report, name = (_CBLAS_REPORT, "cblas_xerbla") if one.cblas else (_FORTRAN_REPORT, "xerbla")
        text.append(report.format(name=f"{one.prefix}{name}{one.suffix}"))
    text.append(_BIND.format(rows="".join(rows), HEAD=HEAD, FUNCTION=FUNCTION, LAYOUT=LAYOUT, RESULT=RESULT))
    return "".join(text)


def layout_number(layout: str) -> int:
    """CBLAS's number of a layout; 0 for Fortran."""
    return LAYOUTS.get(layout, 0)

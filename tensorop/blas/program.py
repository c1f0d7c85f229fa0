"""Writes a C program of at most 40 lines that makes one call of a library again and shows the fault."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from math import isinf, isnan

from tensorop.blas.binding import BlasLibrary, layout_number
from tensorop.blas.call import POSITIVE, BlasCase
from tensorop.blas.routines import COMPLEX, Argument, BlasInterface, Role, cblas_flag, real
from tensorop.blas.ruling import BY_ARGUMENT, BlasFault, Ruled

MOST_LINES = 40
_HEAD = """\
/* {function} of {library}: {fault}.
 * Build and run: cc -w call.c -ldl -lm && {environment}./a.out {path} */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static double value(uint32_t i, uint32_t salt) {{
    uint32_t h = i * 2654435761u + salt;
    h = (h ^ h >> 16) * 2246822507u;
    return ((h ^ h >> 13) % 2001 - 1000.5) / 1000.5;
}}

static void *memory(size_t size, int byte) {{ /* between inaccessible pages; 255: NaN */
    size_t pages = (size + 4095) / 4096 * 4096;
    char *at = mmap(0, pages + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(at + 4096, pages, PROT_READ | PROT_WRITE);
    return memset(at + 4096{offset}, byte, size);
}}

int main(int argc, char **argv) {{
"""


def write(library: BlasLibrary, ruled: Ruled, variables: Sequence[tuple[str, str]] = ()) -> str:
    """The program for a call with a fault. variables: further environment of the library"""
    case = ruled.case
    interface = library.fortran if case.layout == "fortran" else library.cblas
    assert interface is not None
    at_end = case.placement.value == "end"
    threads = [(f"{name}_NUM_THREADS", str(ruled.threads)) for name in ("OPENBLAS", "OMP") if ruled.threads > 1]
    where = f", of {ruled.together} calls at once" if ruled.together > 1 else ""
    where += f", at VLEN {ruled.vlen}" if ruled.vlen else ""
    head = _HEAD.format(
        function=case.function,
        library=library.path.name,
        fault=f"{ruled.fault}{where}",
        environment="".join(f"{name}={shlex.quote(value)} " for name, value in (*threads, *variables)),
        path=shlex.quote(str(library.path)).replace("*/", "*''/"),  # equal for a shell; the comment goes on
        offset=" + pages - size" if at_end else "",
    )
    by_argument = ruled.differs == BY_ARGUMENT
    kind, returned = real(case.dtype), "void" if by_argument else interface.returns(case.routine, case.dtype)
    declared = [
        f"*{_name(one)} = memory({case.parts(one)} * sizeof({kind}), {case.filling(one)})"
        for one in case.routine.operands
    ]
    lines = [f"{kind} {', '.join(declared)};"]
    pointer = f"{returned} (*call)({', '.join(['void *'] * by_argument + _types(interface, case))})"
    lines.append(f'{pointer} = dlsym(dlopen(argv[1], RTLD_NOW), "{interface.symbol(case.routine, case.dtype)}");')
    if returned != "void":
        lines.append(f"{returned} result;")
    elif case.routine.result:
        lines.append(f"{kind} result[2];")
    body = [line for name in case.routine.operands for line in _fill(case, name)]
    if ruled.fault is BlasFault.OUTSIDE and not ruled.again:  # inputs must not be written
        inputs = [_name(name) for name, one in case.routine.operands.items() if not one.written]
        page = "(void *)((uintptr_t){0} / 4096 * 4096)"
        body += [
            f"mprotect({page.format(one)}, {case.parts(one.lower())} * sizeof({kind}), PROT_READ);" for one in inputs
        ]
    made = f"call({', '.join(['result'] * by_argument + _arguments(interface, case))});"
    body.append(f"result = {made}" if returned != "void" else made)
    if ruled.after_fork:
        fork = "if (again && fork()) return wait(&status) < 0 || status != 0;"
        loop = "for (int again = 0, status; again < 2; again++) {"
        body = [loop, f"    {fork}", "    alarm(15 * again);", *(f"    {line}" for line in body), "}"]
    elif ruled.again:
        body = [f"for (int again = 0; again <= {ruled.again}; again++) {{", *(f"    {line}" for line in body), "}"]
    lines += [*body, *_shown(case, ruled)]
    if ruled.after_fork:
        head = head.replace(
            "#include <sys/mman.h>\n", "#include <sys/mman.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
        )
    return head + "".join(f"    {line}\n" for line in lines) + "}\n"


def _name(operand: str) -> str:
    return operand.upper()


def _types(interface: BlasInterface, case: BlasCase) -> list[str]:
    words = interface.parameters(case.routine, case.dtype)
    types = [word.rpartition(" ")[0] + " *" * word.count("*") for word in words]
    return types + ["size_t"] * (0 if interface.cblas else len(case.flags))


def _fill(case: BlasCase, name: str) -> list[str]:
    """The statements that fill an operand as `BlasCase.memory`."""
    where, to, salt = case.places[name], _name(name), case.salt_of(name)
    if case.unset(name) or (case.shared and name == case.sharing[1]):
        return []
    at, scale, two = f"({where.at})", case.scale(name), not case.real(name)
    own = "" if where.own in ("r >= 0", "(r >= 0)") else f"if ({where.own}) "
    loops = f"for (long c = 0; c < {where.columns}; c++) for (long r = 0; r < {where.rows}; r++) {own}"
    parts = []
    for part in range(2 if two else 1):
        place = f"2 * {at} + {part}" if two else at
        text = f"value({place}, {salt}u)"
        if scale:
            first = f"value({'2 * ' if two else ''}{at}, {salt}u)"
            moved = f" + ({first} > 0 ? 1 : -1)" if part == 0 else ""
            text = f"r == c ? {text}{moved} : {text} / {scale}"
        parts.append(f"{to}[{place}] = {f'fabs({text})' if name in POSITIVE else text};")
    lines = [loops + (f"{{ {' '.join(parts)} }}" if two else parts[0])]
    if name in case.special:
        number, value = case.special_place(name), _c_number(case.special[name])
        lines.append(
            f"{to}[{2 * number}] = {value}; {to}[{2 * number + 1}] = 0;" if two else f"{to}[{number}] = {value};"
        )
    return [*lines, f"{to}[0] = {case.salt % 4 - 2};"] if name == "param" else lines


def _arguments(interface: BlasInterface, case: BlasCase) -> list[str]:
    words = [str(layout_number(case.layout))] if interface.laid_out(case.routine) else []
    words += [_argument(interface, case, one) for one in case.routine.arguments]
    if case.routine.result and interface.returns(case.routine, case.dtype) == "void":
        words.append("result")
    return words + ["1"] * (0 if interface.cblas else len(case.flags))


def _argument(interface: BlasInterface, case: BlasCase, one: Argument) -> str:
    if one.role is Role.OPERAND:
        return _name(case.sharing[0] if case.shared and one.name == case.sharing[1] else one.name)
    if one.role is Role.SCALAR:
        value, kind = complex(case.scalars[one.name]), real(case.dtype)
        if interface.by_value(one, case.dtype):
            return repr(value.real)
        parts = [value.real] if one.real or case.dtype not in COMPLEX else [value.real, value.imag]
        return f"({kind}[]){{{', '.join(map(repr, parts))}}}"
    found = case.value(one)
    if isinstance(found, str):
        return str(cblas_flag(one.name, found)) if interface.cblas else f'"{found}"'
    return str(found) if interface.cblas else f"&({interface.integer}){{{found}}}"


def _shown(case: BlasCase, ruled: Ruled) -> list[str]:
    """The statements that print the fault; the exit status is 1 if it is there."""
    place = ruled.place
    if place is None:
        text = {
            BlasFault.REPORT: "a message with another number of the wrong argument stands above",
            BlasFault.SILENT: "no message about a wrong argument stands above",
        }.get(ruled.fault or BlasFault.CRASH, "the call came back without a crash")
        return [f'puts("{text}");', f"return {int(ruled.fault in (BlasFault.REPORT, BlasFault.SILENT))};"]
    if place.output == "result":
        if case.routine.result == "element" and case.dtype in COMPLEX:
            kind = real(case.dtype)
            got = [f"(({kind} *)&result)[{part}]" for part in range(2)]
        else:
            got = [f"result{' + 1' if case.routine.result == 'index' and case.layout != 'fortran' else ''}", "0"]
    elif case.real(place.output):
        got = [f"{_name(place.output)}[{place.at}]", "0"]
    else:
        got = [f"{_name(place.output)}[{2 * place.at + part}]" for part in range(2)]
    wanted = [_c_number(place.wanted.real), _c_number(place.wanted.imag)]
    if ruled.fault is BlasFault.WRITES and isnan(place.wanted.real):  # NaN of all bits set; another NaN is a change
        bits = f"*(unsigned *)&{got[0]}"
        return [f'printf("bits of {got[0]} are %08x, expected ffffffff\\n", {bits});', f"return {bits} != ~0u;"]
    shown = "the result" if place.output == "result" else f"{_name(place.output)}[{place.at}]"
    return [
        f"double re = {got[0]}, im = {got[1]}, wanted[] = {{{', '.join(wanted)}}};",
        f'printf("{shown} is (%.17g, %.17g), expected (%.17g, %.17g)\\n", re, im, wanted[0], wanted[1]);',
        f"const double error = hypot(re - wanted[0], im - wanted[1]), bound = {_c_number(place.bound)};",
        "if (isinf(wanted[0])) return re != wanted[0];",
        "return isnan(wanted[0]) ? isfinite(re + im) : !(error <= bound);",
    ]


def _c_number(value: float) -> str:
    return "NAN" if value != value else f"{'-' * (value < 0)}INFINITY" if isinf(value) else repr(float(value))

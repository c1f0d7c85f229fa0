"""Builds libtensorop_record.so, whose functions count and time a program's calls of BLAS; sums up its records."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from tensorop import paths
from tensorop.blas.routines import COMPLEX, Argument, BlasInterface, BlasRoutine, Role, functions, real
from tensorop.model.kernel import Artifact, Source
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.toolchain import cache, tool
from tensorop.toolchain.cache import BuildLog
from tensorop.toolchain.compile import LEAN, compile_source

LIBRARY = "libtensorop_record.so"
_PREFIXES = ("", "scipy_")  # plain, and as in the wheels of NumPy and SciPy
INTERFACES = tuple(
    BlasInterface(cblas, prefix, suffix, "64" in suffix)
    for prefix in _PREFIXES
    for cblas, suffixes in ((False, ("_", "_64_")), (True, ("", "64_", "_64")))
    for suffix in suffixes
)
_NUMBERS = (Role.SIZE, Role.INCREMENT)


def _recorded(interface: BlasInterface, routine: BlasRoutine, dtype: str) -> bool:
    """Compilers disagree on how a Fortran function returns a complex number, so these are left alone."""
    return interface.cblas or routine.result != "element" or dtype not in COMPLEX


def _type(interface: BlasInterface, argument: Argument, dtype: str) -> str:
    """The type in which an argument is passed on: integers in whole registers, whatever their width."""
    if not interface.by_value(argument, dtype):
        return "void *"
    return f"{real(dtype)} " if argument.role is Role.SCALAR else "int64_t "


def _value(interface: BlasInterface, argument: Argument) -> str:
    """A flag or number of the kind of a call."""
    name, integer = argument.name, interface.integer
    if argument.role is Role.FLAG:
        return f"letter((int){name})" if interface.cblas else f"upper({name})"
    return f"({integer}){name}" if interface.cblas else f"*({integer} *){name}"


def _wrapper(number: int, interface: BlasInterface, routine: BlasRoutine, dtype: str) -> str:
    """The function of one name. A real result is passed on as a double, which has the same register."""
    result = {"": "void", "index": "uint64_t"}.get(routine.result, "double")
    passed = [(_type(interface, one, dtype), one.name) for one in routine.arguments]
    layout, flags = "0", routine.of_role(Role.FLAG)
    if interface.cblas and routine.result == "element" and dtype in COMPLEX:
        result, passed = "void", [*passed, ("void *", "result")]
    if interface.laid_out(routine):
        layout, passed = "order((int)layout)", [("int64_t ", "layout"), *passed]
    elif routine.level > 1:
        layout = "'c'"
    if not interface.cblas:  # lengths of the flags, which Fortran compilers add
        passed += [("size_t ", f"length{place}") for place in range(len(flags))]
    letters = ", ".join(_value(interface, one) for one in flags)
    numbers = ", ".join(_value(interface, one) for one in routine.of_role(*_NUMBERS))
    kind = f"(Kind){{{number}, {layout}, {{{letters}}}, {{{numbers}}}}}"
    names, types = ", ".join(name for _, name in passed), ", ".join(of.strip() for of, _ in passed)
    symbol, declared = interface.symbol(routine, dtype), ", ".join(f"{of}{name}" for of, name in passed)
    keep, back = ("", "") if result == "void" else (f"{result} made = ", "    return made;\n")
    return (
        f"EXPORT {result} {symbol}({declared})\n{{\n"
        f'    static Target target = {{"{symbol}", NULL, 0}};\n'
        "    uint64_t began = begin(&target, __builtin_return_address(0));\n"
        f"    {keep}(({result} (*)({types}))target.real)({names});\n"
        f"    if (end(began))\n        add(&target, began, {kind});\n{back}}}\n"
    )


def _wrappers() -> Iterator[str]:
    known = [*functions().items()]
    yield "static const Routine routines[] = {\n"
    for name, (routine, _) in known:
        flags, numbers = (" ".join(one.name for one in routine.of_role(*of)) for of in ((Role.FLAG,), _NUMBERS))
        yield f'    {{"{name}", "{flags}", "{numbers}"}},\n'
    yield "};\n"
    for interface, (number, (_, (routine, dtype))) in itertools.product(INTERFACES, enumerate(known)):
        if _recorded(interface, routine, dtype):
            yield "\n" + _wrapper(number, interface, routine, dtype)


def source() -> Source:
    """The C of the recorder."""
    main = (paths.native_dir() / "record.c").read_text(encoding="utf-8")
    return Source((("record.c", main), ("wrappers.h", "".join(_wrappers()))))


def library(platform: Platform) -> Artifact:
    """The recorder for a platform's programs, built once. Raises JobError, MissingTool."""
    target = platform.compiler.shared_target
    flags = ("-target", target, *LEAN, "-std=gnu11", "-Os", "-g0", "-fPIC", "-fvisibility=hidden")
    made = tool.required(compile_source(source(), flags, timeout_s=300), "the recorder")

    def fill(folder: Path) -> BuildLog | Outcome:
        argv = tool.cc(
            "-target", target, "-Os", "-g0", "-shared", f"-Wl,-soname,{LIBRARY}", "-Wl,--strip-debug", "-Wl,-z,defs",
            str(made.path), "-ldl", "-lpthread", "-o", LIBRARY,
        )  # fmt: skip
        return tool.run(argv, folder, timeout_s=120, doing=f"linking {LIBRARY}")

    return tool.required(cache.entry("recorder", cache.key_of(made.key), LIBRARY, fill), "the recorder")

"""The C of a set's check program: every primitive as a function over arrays, in a table that the program reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tensorop import paths
from tensorop.commands.primitive_cases import ARRAYS, PrimitiveEntry
from tensorop.model.kernel import Source
from tensorop.model.number import NUMBERS
from tensorop.model.primitive import ARGUMENTS, Primitives, shape_of
from tensorop.render import render
from tensorop.toolchain import harness

MAIN = "primitive_check.c"
NEEDED = ("full", "tail", "splat", "load", "store", "store_tail")  # the check of every primitive uses these


def source(primitives: Primitives, entries: Iterable[PrimitiveEntry]) -> Source:
    """The source of the check program. Raises RenderError for a primitive that is called with wrong arguments."""
    functions = render.functions(primitives)
    table = list(entries)
    parts = [f"#include <{header}>" for header in primitives.headers]
    parts += [
        f"typedef {primitives.element} element;",
        f"typedef {primitives.vector} vector;",
        f"typedef {primitives.compute} compute;",
        f"typedef {primitives.compute_vector} compute_vector;",
        f"typedef {primitives.storage} storage;",
        f"typedef {primitives.storage_vector} storage_vector;",
        f"typedef {primitives.predicate} predicate;",
        primitives.support,
        *(one.support for one in primitives.by_name.values()),
        f"static size_t check_lanes(void)\n{{\n    return {primitives.lanes};\n}}",
        *(_function(entry, functions, primitives) for entry in table),
        "static const struct check_entry check_entries[] = {",
        *(f"    {{ {', '.join(map(str, _row(e, primitives)))} }}," for e in table),
        "};",
    ]
    main = (paths.native_dir() / MAIN).read_text(encoding="utf-8")
    jail = ((path.name, path.read_text(encoding="utf-8")) for path in harness.jail())
    return Source(((MAIN, main), ("primitives.h", "\n".join(parts) + "\n"), *jail))


def _name(entry: PrimitiveEntry) -> str:
    return f"check_{entry.primitive.name}" + ("" if entry.constant is None else f"_{entry.constant}")


def _row(entry: PrimitiveEntry, primitives: Primitives) -> tuple[str, int, int, int]:
    """The fields of `struct check_entry` in primitive_check.c."""
    primitive = entry.primitive
    arrays = sum(shape_of(a) in ARRAYS for a in primitive.args)
    size = NUMBERS[primitives.formats.answer(primitive)].size
    return _name(entry), arrays, int(primitive.returns in ("memory", "none")), size


def _function(entry: PrimitiveEntry, functions: Mapping[str, Callable[..., str]], primitives: Primitives) -> str:
    lines = [f"static void {_name(entry)}(const struct check_case *c)", "{", "const size_t lanes = check_lanes();"]
    lines += [f"const predicate full = {functions['full']()};", f"const predicate vl = {functions['tail']('c->vl')};"]
    passed: list[str] = []
    index = 0
    for argument in entry.primitive.args:
        kind = shape_of(argument)
        if kind in ARRAYS:
            kind_of = ARGUMENTS[argument].partition(" ")[0]
            of = kind_of if kind_of in ("compute", "storage") else "element"
            at = f"(({of} *)c->array[{index}])"
            index += 1
            if argument == "x":
                lines.append(f"const compute_vector x = {functions['load_packed'](at, 'full')};")
            elif argument == "raw":
                lines.append(f"const storage_vector raw = {functions['load_raw'](at, 'full')};")
            elif kind == "vector":
                lines.append(f"const vector {argument} = {functions['load'](at, 'full')};")
            elif kind == "half":
                lines.append(f"const uint64_t {argument} = {functions['load_half'](at, 'lanes / 2')};")
            elif kind == "element":
                lines.append(f"const {of} {argument} = *{at};")
            else:
                lines.append(f"{of} *const {argument} = {at};")
            passed.append(argument)
        elif kind == "constant":
            passed.append(str(entry.constant))
        elif kind == "predicate":
            passed.append("vl")
        elif kind == "leading dimension" or argument in ("rows", "cols"):
            passed.append(f"(size_t)c->{argument}")
        else:
            passed.append("c->vl")  # count
    text = functions[entry.primitive.name](*passed)
    out = "((element *)c->out)"
    match entry.primitive.returns:
        case "vec":
            lines += [f"const vector result = {text};", f"{functions['store'](out, 'result', 'full')};"]
        case "compute" | "storage" as kind:
            widened = "result" if kind == "compute" else functions["widen"]("result", "full")
            kept = functions["store_packed"]("((compute *)c->out)", widened, "full")
            lines += [f"const {kind}_vector result = {text};", f"{kept};"]
        case "half":
            lines.append(f"const uint64_t result = {text};")
            lines.append("memcpy(c->out, &result, sizeof result);")
        case "elem":
            lines.append(f"*{out} = {text};")
        case "pred":
            one = functions["splat"]("1", "full")
            lines += [f"const predicate result = {text};", f"{functions['store_tail'](out, one, 'result')};"]
        case _:
            lines.append(f"{text};")
    lines.append("(void)lanes, (void)full, (void)vl;")
    body = [lines[0], lines[1], *(f"    {line}" for line in lines[2:]), "}"]
    return "\n".join(body)

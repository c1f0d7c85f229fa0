"""The C of a set's check: every word as a function over arrays, in a table the checking program walks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tensorop import paths
from tensorop.build import harness
from tensorop.commands.primitive_cases import ARRAYS, Entry
from tensorop.model.kernel import Source
from tensorop.model.number import NUMBERS
from tensorop.model.primitive import ARGUMENTS, Vocabulary, shape_of
from tensorop.render import render

MAIN = "primitive_check.c"
NEEDED = ("full", "tail", "splat", "load", "store", "store_tail")  # with these the others are observed


def source(vocabulary: Vocabulary, entries: Iterable[Entry]) -> Source:
    """The checking program for a vocabulary; raises RenderError for a word called with the wrong arguments."""
    words = render.words(vocabulary)
    table = list(entries)
    parts = [f"#include <{header}>" for header in vocabulary.headers]
    parts += [
        f"typedef {vocabulary.element} element;",
        f"typedef {vocabulary.vector} vector;",
        f"typedef {vocabulary.packed} packed;",
        f"typedef {vocabulary.packed_vector} packed_vector;",
        f"typedef {vocabulary.stored} stored;",
        f"typedef {vocabulary.stored_vector} stored_vector;",
        f"typedef {vocabulary.predicate} predicate;",
        vocabulary.support,
        f"static size_t check_lanes(void)\n{{\n    return {vocabulary.lanes};\n}}",
        *(_function(entry, words, vocabulary) for entry in table),
        "static const struct check_entry check_entries[] = {",
        *(f"    {{ {', '.join(map(str, _row(e, vocabulary)))} }}," for e in table),
        "};",
    ]
    main = (paths.native_dir() / MAIN).read_text(encoding="utf-8")
    jail = ((path.name, path.read_text(encoding="utf-8")) for path in harness.jail())
    return Source(((MAIN, main), ("words.h", "\n".join(parts) + "\n"), *jail))


def _name(entry: Entry) -> str:
    return f"check_{entry.word.name}" + ("" if entry.constant is None else f"_{entry.constant}")


def _row(entry: Entry, vocabulary: Vocabulary) -> tuple[str, int, int, int]:
    """As struct check_entry of primitive_check.c has it."""
    word = entry.word
    arrays = sum(shape_of(a) in ARRAYS for a in word.args)
    size = NUMBERS[vocabulary.formats.answer(word)].size
    return _name(entry), arrays, int(word.returns in ("memory", "none")), size


def _function(entry: Entry, words: dict[str, Callable[..., str]], vocabulary: Vocabulary) -> str:
    lines = [f"static void {_name(entry)}(const struct check_case *c)", "{", "const size_t lanes = check_lanes();"]
    lines += [f"const predicate full = {words['full']()};", f"const predicate vl = {words['tail']('c->vl')};"]
    said: list[str] = []
    index = 0
    for argument in entry.word.args:
        kind = shape_of(argument)
        if kind in ARRAYS:
            word = ARGUMENTS[argument].partition(" ")[0]
            of = word if word in ("packed", "stored") else "element"
            at = f"(({of} *)c->array[{index}])"
            index += 1
            if argument == "x":
                lines.append(f"const packed_vector x = {words['load_packed'](at, 'full')};")
            elif argument == "raw":
                lines.append(f"const stored_vector raw = {words['load_raw'](at, 'full')};")
            elif kind == "vector":
                lines.append(f"const vector {argument} = {words['load'](at, 'full')};")
            elif kind == "half":
                lines.append(f"const uint64_t {argument} = {words['load_half'](at, 'lanes / 2')};")
            elif kind == "element":
                lines.append(f"const {of} {argument} = *{at};")
            else:
                lines.append(f"{of} *const {argument} = {at};")
            said.append(argument)
        elif kind == "constant":
            said.append(str(entry.constant))
        elif kind == "predicate":
            said.append("vl")
        elif kind == "leading dimension" or argument in ("rows", "cols"):
            said.append(f"(size_t)c->{argument}")
        else:
            said.append("c->vl")  # count
    text = words[entry.word.name](*said)
    out = "((element *)c->out)"
    match entry.word.returns:
        case "vec":
            lines += [f"const vector result = {text};", f"{words['store'](out, 'result', 'full')};"]
        case "packed" | "stored" as kind:
            widened = "result" if kind == "packed" else words["widen"]("result", "full")
            stored = words["store_packed"]("((packed *)c->out)", widened, "full")
            lines += [f"const {kind}_vector result = {text};", f"{stored};"]
        case "half":
            lines.append(f"const uint64_t result = {text};")
            lines.append("memcpy(c->out, &result, sizeof result);")
        case "elem":
            lines.append(f"*{out} = {text};")
        case "pred":
            one = words["splat"]("1", "full")
            lines += [f"const predicate result = {text};", f"{words['store_tail'](out, one, 'result')};"]
        case _:
            lines.append(f"{text};")
    lines.append("(void)lanes, (void)full, (void)vl;")
    body = [lines[0], lines[1], *(f"    {line}" for line in lines[2:]), "}"]
    return "\n".join(body)

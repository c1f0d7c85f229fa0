"""The size and the shape of the code: how many lines, one meaning a class name, records instead of long signatures."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tensorop"
PLUGINS = {"Backend"}  # what each file of a kind is looked up by

# What a change may not pass without saying why in its commit.
MOST_LINES = {
    ".": 1_202,
    "author": 6_318,
    "backends": 369,
    "blas": 2_158,
    "calibration": 404,
    "cli": 2_402,
    "cluster": 394,
    "commands": 3_925,
    "costs": 463,
    "cuda": 2_432,
    "dispatch": 1_263,
    "job": 1_226,
    "kits": 1_570,
    "measure": 1_028,
    "model": 3_535,
    "package": 1_790,
    "policies": 118,
    "process": 478,
    "provision": 1_119,
    "render": 954,
    "report": 1_180,
    "runners": 1_156,
    "search": 879,
    "space": 721,
    "specs": 2_410,
    "store": 618,
    "toolchain": 983,
    "trial": 1_114,
    "verify": 435,
    "warm": 405,
}
MOST_LINES_OF_THE_PROVER = 1_926  # author/addresses, part of author
MOST_LINES_OF_BENCHMARKS = 8_425
MOST_PARAMETERS, MANY_PARAMETERS, FEW_FUNCTIONS = 10, 7, 15
FEW_UNTYPED = 70
NO_NAMES = re.compile(r"(^|_)(told|said|odd|owed|spared)(_|$)")  # verbs of speech, adjectives as nouns
MAY_STAND = {"told"}  # what operators of others implement, and what their prompts read

UNTYPED = re.compile(r"\b(dict|Mapping|MutableMapping)\[str, Any\]")
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@cache
def modules() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def code_lines(path: Path) -> int:
    """Without docstrings, comments and blank lines."""
    of_docstrings: set[int] = set()
    for node in ast.walk(modules()[path]):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        if documented and ast.get_docstring(node, clean=False) is not None:
            of_docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    of_code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type not in _NO_CODE:
            of_code.update(range(token.start[0], token.end[0] + 1))
    return len(of_code - of_docstrings)


def package_of(path: Path) -> str:
    """The folder of a module; `.` for modules beside the folders."""
    folders = path.relative_to(PACKAGE).parts[:-1]
    return folders[0] if folders else "."


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, list[ast.arg]]]:
    """With where each stands and its parameters but `self` and `cls`."""
    for path, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                place = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
                yield place, node, [one for one in given if one.arg not in ("self", "cls")]


def test_lines_of_code() -> None:
    lines: dict[str, int] = defaultdict(int)
    for path in modules():
        lines[package_of(path)] += code_lines(path)
    assert lines.keys() == MOST_LINES.keys()
    assert {name: n for name, n in lines.items() if n > MOST_LINES[name]} == {}


def test_lines_of_the_prover() -> None:
    """Whoever trusts the proof reads all of it."""
    of_prover = [path for path in modules() if path.parent == PACKAGE / "author" / "addresses"]
    assert sum(map(code_lines, of_prover)) <= MOST_LINES_OF_THE_PROVER


def test_lines_of_benchmarks() -> None:
    sources = [p for p in (ROOT / "benchmarks").rglob("*") if p.suffix in (".py", ".c", ".h", ".cu", ".cuh")]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in sources) <= MOST_LINES_OF_BENCHMARKS


def test_a_class_name_stands_once() -> None:
    places = defaultdict(list)
    for path, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not {name: at for name, at in places.items() if len(at) > 1 and name not in PLUGINS}


def test_a_long_signature_is_a_record() -> None:
    """But for commands, whose parameters are their options."""
    wide = {
        place: len(given)
        for place, node, given in functions()
        if len(given) >= MANY_PARAMETERS and not any("command" in ast.unparse(one) for one in node.decorator_list)
    }
    assert not [place for place, number in wide.items() if number > MOST_PARAMETERS]
    assert len(wide) <= FEW_FUNCTIONS, wide


def test_what_crosses_modules_has_a_type() -> None:
    def untyped(annotation: ast.expr | None) -> bool:
        return annotation is not None and UNTYPED.search(ast.unparse(annotation)) is not None

    found = [
        place
        for place, node, given in functions()
        if not node.name.startswith("_") and (untyped(node.returns) or any(untyped(one.annotation) for one in given))
    ]
    for path, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and untyped(node.annotation):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(found) <= FEW_UNTYPED, found


def test_names_are_of_things() -> None:
    name = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.keyword: "arg", ast.FunctionDef: "name"}
    found = []
    for path, tree in modules().items():
        for node in ast.walk(tree):
            given = getattr(node, name.get(type(node), ""), None) or ""
            if NO_NAMES.search(given) and not (given in MAY_STAND and path.name in ("contract.py", "prompt.py")):
                found.append(f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)} {given}")
    assert not found

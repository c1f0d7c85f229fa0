"""What `make test` has to cover: a list of things by kind, and the marks of the tests that cover them.

A test says what it covers: `@pytest.mark.covers("platform {platform}", "dtype gemm/{dtype}")`. Its parameters fill the
braces, and `*` stands for all: `control gemm/*` is a test that runs each control of gemm.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

from tensorop.cli.main import cli
from tensorop.specs import catalog, operators
from tests.support.docs import blocks

ROOT = Path(__file__).resolve().parents[2]
STARTS = {
    "tensorop",
    "refused",
    "start",
    "Watched",
    "invoke",
    "run",
    "usage",
    "command",
}  # what takes a command's words
PAGES_OF_EXAMPLES = ("docs/tutorial.md",)


def things() -> list[str]:
    """Everything that has to be covered, each with its kind before its name."""
    found = [f"platform {name}" for name in catalog.names("platforms")]
    found += [f"primitives {name}" for name in catalog.names("primitives")]
    for name in catalog.names("templates"):
        operator = operators.load(name)
        found += [f"dtype {name}/{dtype}" for dtype in operator.dtypes]
        if operator.extension is not None:  # its templates and controls are those of the operator that it extends
            continue
        found += [f"template {name}/{file.name.split('.')[0]}" for file in operator.folder.glob("kernels/*.j2")]
        found += [f"control {name}/{file.stem}" for file in operator.folder.glob("controls/*.c")]
    found += [f"command {words}" for words in _commands(cli, ())]
    folders = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()}
    found += [f"example {name}" for name in sorted(folders - {"torch"})]  # which is of `make test-torch`
    return found + [f"example {page}" for page in PAGES_OF_EXAMPLES if blocks(page)]


def _commands(command: click.Command, words: tuple[str, ...]) -> Iterator[str]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _commands(below, (*words, name))
    else:
        yield " ".join(words)


def covered(items: Iterable[pytest.Item]) -> set[str]:
    """The things, or patterns of things, that these tests cover."""
    found = set()
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        for mark in item.iter_markers("covers"):
            found |= {text.format(**parameters) for text in mark.args}
        found |= {f"command {words}" for words in _started(item.path, item.name.partition("[")[0])}
    return found


def _started(path: Path, function: str) -> frozenset[str]:
    """The first words of the commands that a test, or a function of its file, starts."""
    of_file = _started_in(path)
    return of_file.get(function, frozenset()) | of_file.get("", frozenset())


@functools.cache
def _started_in(path: Path) -> dict[str, frozenset[str]]:
    """By test; those that helpers and fixtures of the file start are under ''."""
    found: dict[str, set[str]] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        name = getattr(node, "name", "")
        words = found.setdefault(name if name.startswith("test_") else "", set())
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and getattr(call.func, "attr", getattr(call.func, "id", "")) in STARTS:
                first = [one.value for one in _plain(call.args) if isinstance(one.value, str)]
                words |= {" ".join(first[:n]) for n in (1, 2) if len(first) >= n}
    return {name: frozenset(words) for name, words in found.items()}


def _plain(arguments: Iterable[ast.expr]) -> Iterator[ast.Constant]:
    for argument in arguments:
        if isinstance(argument, (ast.List, ast.Tuple)):
            yield from _plain(argument.elts)
        elif isinstance(argument, ast.Constant):
            yield argument


def missing(items: Iterable[pytest.Item]) -> list[str]:
    """The things that none of these tests covers."""
    patterns = covered(items)
    plain = {pattern for pattern in patterns if "*" not in pattern}
    wild = [pattern for pattern in patterns if "*" in pattern]
    return [one for one in things() if one not in plain and not any(fnmatch.fnmatchcase(one, p) for p in wild)]

"""Writes what decides a tile's path as a function of Python.

It gives the outcome of each comparison, and whether each loop has no turn, one or several. A loop is run once if all
its turns take one path, and add the same to what they change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tree_sitter import Node

from tensorop.author.grammar import Broken


@dataclass(frozen=True)
class NewValue:
    """A local's new value. code: None for one that is not made of sizes; adds: it is added to the old one."""

    to: str
    code: str | None
    names: frozenset[str]
    at: Node
    adds: bool = False
    new: bool = False  # its declaration


@dataclass(frozen=True)
class Branch:
    """Comparisons, and where they lead."""

    code: str
    names: frozenset[str]
    then: tuple[Any, ...] = ()
    other: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Repeat:
    gap: str  # above 0 while it goes on
    names: frozenset[str]
    body: tuple[Any, ...]


Step = NewValue | Branch | Repeat


class PathWriter:
    """Writes a function's statements in Python, those alone that decide a path. needed: names on which one depends."""

    def __init__(self, needed: frozenset[str]) -> None:
        self.needed, self.fresh = needed, 0

    def lines(self, nodes: Sequence[Step]) -> list[str]:
        return [
            "path = []",
            "def ASK(held):",
            "    path.append(held)",
            "    return held",
            *self._lines(nodes),
            "return tuple(path)",
        ]

    def _lines(self, nodes: Sequence[Step]) -> list[str]:
        found: list[str] = []
        asked = set[str]()  # since the last statement that may change an answer
        for node in nodes:
            match node:
                case NewValue(to, code, _, at) if to in self.needed:
                    asked.clear()
                    if code is None:
                        name = to.partition("__")[0]
                        raise Broken("path", f"a condition depends on '{name}', whose value is not made of sizes", at)
                    found.append(f"{to} = {code}")
                case Branch(code, _, then, other):
                    first, second = self._lines(then), self._lines(other)
                    if first or second:
                        asked.clear()
                        found += [f"if {code}:", *_in(first)]
                        found += ["else:", *_in(second)] if second else []
                    elif code not in asked:
                        asked.add(code)
                        found.append(code)
                case Repeat():
                    asked.clear()
                    found += self._loop(node)
        return found

    def _loop(self, node: Repeat) -> list[str]:
        self.fresh += 1
        at, body = self.fresh, self._lines(node.body)
        carried = self._carried(node)
        if carried is None:  # the paths of two turns may differ
            reads, sets = self._names(node)
            return [
                f"key{at} = {at}, {', '.join(reads)}",
                f"if key{at} in KNOWN: SPEND({at}, KNOWN[key{at}][0])",
                "else:",
                f"    spent{at}, turns{at}, begin{at}, seen{at} = SPEND({at}, 0), 0, len(path), set()",
                f"    while {node.gap} > 0:",
                f"        turns{at} += 1",
                f"        if not turns{at} % 64: SPEND({at}, 64)",
                *_in(_in(body)),
                f"        seen{at}.add(tuple(path[begin{at}:]))",
                f"        del path[begin{at}:]",
                f"    spent{at} = SPEND({at}, turns{at} % 64) - spent{at}",
                f"    KNOWN[key{at}] = spent{at}, turns{at}, frozenset(seen{at}), {', '.join(sets)}",
                f"_, turns{at}, seen{at}, {', '.join(sets)} = KNOWN[key{at}]",
                f"path += (min(turns{at}, 2), seen{at})",
            ]
        olds = [f"old{at}_{i}" for i in range(len(carried))]
        return [
            f"gap{at} = {node.gap}",
            f"if ASK(gap{at} > 0):",
            *(f"    {old} = {name}" for old, name in zip(olds, carried, strict=True)),
            *_in(body),
            f"    left{at} = {node.gap}",
            f"    more{at} = max(0, -(-left{at} // (gap{at} - left{at})))",
            *(f"    {name} += ({name} - {old}) * more{at}" for old, name in zip(olds, carried, strict=True)),
            f"    ASK(more{at} > 0)",
        ]

    def _names(self, loop: Repeat) -> tuple[list[str], list[str]]:
        """What a loop's turns depend on, and what they change."""
        nodes = [*_every(loop.body)]
        sets = [one for one in nodes if isinstance(one, NewValue) and one.to in self.needed]
        own = {one.to for one in sets if one.new}
        changed = {one.to for one in sets} - own
        reads = {name for one in nodes if not isinstance(one, NewValue) or one in sets for name in one.names}
        return sorted((loop.names | reads | changed) - own), sorted(changed)

    def _carried(self, loop: Repeat) -> list[str] | None:
        """What one turn leaves to the next, if all turns take one path and add the same to it; else None."""
        nodes = [*_every(loop.body)]
        sets = [one for one in nodes if isinstance(one, NewValue) and one.to in self.needed]
        carried = {one.to for one in sets} - {one.to for one in sets if one.new}
        vague = set(carried)
        while more := {one.to for one in sets if one.to not in vague and one.names & vague}:
            vague |= more
        alike = all(one.adds and not one.names & vague for one in sets if one.to in carried)
        asks = [one for one in nodes if not isinstance(one, NewValue) or (one in sets and "ASK" in (one.code or ""))]
        return sorted(carried) if alike and not any(one.names & vague for one in asks) else None


def _every(nodes: Sequence[Step]) -> Iterator[Step]:
    for node in nodes:
        yield node
        if isinstance(node, Repeat):
            yield from _every(node.body)
        elif isinstance(node, Branch):
            yield from _every((*node.then, *node.other))


def _in(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines] or ["    pass"]

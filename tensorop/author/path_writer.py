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
_FEW_LINES = 8  # are run again sooner than they are remembered
_MOST_KEPT = 1 << 16  # results that a search remembers


class PathWriter:
    """Writes a function's statements in Python, those alone that decide a path. needed: names on which one depends."""

    def __init__(self, needed: frozenset[str]) -> None:
        self.needed, self.fresh, self.keys = needed, 0, 0

    def lines(self, nodes: Sequence[Step]) -> list[str]:
        return ["path = []", "ADD = path.append", *self._lines(nodes, kept=True), "return tuple(path)"]

    def _lines(self, nodes: Sequence[Step], kept: bool = False) -> list[str]:
        found: list[str] = []
        asked = set[str]()  # since the last statement that may change an answer
        for node in nodes:
            first, made = self.fresh + 1, list[str]()
            match node:
                case NewValue(to, code, _, at) if to in self.needed:
                    asked.clear()
                    if code is None:
                        name = to.partition("__")[0]
                        raise Broken("path", f"a condition depends on '{name}', whose value is not made of sizes", at)
                    found.append(f"{to} = {code}")
                case Branch(code, _, then, other):
                    yes, no = self._lines(then), self._lines(other)
                    if yes or no:
                        made = [f"if {code}:", *_in(yes), *(["else:", *_in(no)] if no else [])]
                    elif code not in asked:
                        asked.add(code)
                        found.append(code)
                case Repeat():
                    made = self._loop(node)
            if made:
                asked.clear()
                found += self._kept(node, made, first) if kept and len(made) > _FEW_LINES else made
        return found

    def _kept(self, node: Step, lines: Sequence[str], loop: int) -> list[str]:
        """Lines that are run once for equal numbers: most calls of a search differ in one argument.

        loop: the number of the first loop in them
        """
        self.keys += 1
        nodes, at = [*_every((node,))], self.keys
        sets = [one for one in nodes if isinstance(one, NewValue) and one.to in self.needed]
        own = {one.to for one in sets if one.new}
        changed = {one.to for one in sets} - own
        reads = {name for one in nodes if not isinstance(one, NewValue) or one in sets for name in one.names}
        after = "".join(f", {name}" for name in sorted(changed))
        spent = f"SPEND({loop}, 0)" if any("SPEND" in line for line in lines) else "0"
        return [
            f"key{at} = {', '.join([str(at), *sorted((reads | changed) - own)])}",
            f"if key{at} in KNOWN:",
            f"    spent{at}, part{at}{after} = KNOWN[key{at}]",
            f"    path += part{at}",
            *([] if spent == "0" else [f"    SPEND({loop}, spent{at})"]),
            "else:",
            f"    spent{at}, begin{at} = {spent}, len(path)",
            *_in(lines),
            f"    if len(KNOWN) > {_MOST_KEPT}: KNOWN.clear()",
            f"    KNOWN[key{at}] = {spent} - spent{at}, tuple(path[begin{at}:]){after}",
        ]

    def _loop(self, node: Repeat) -> list[str]:
        self.fresh += 1
        at, body = self.fresh, self._lines(node.body)
        carried = self._carried(node)
        if carried is None:  # the paths of two turns may differ
            turns = [
                f"turns{at}, first{at}, seen{at} = 0, len(path), set()",
                f"while {node.gap} > 0:",
                f"    turns{at} += 1",
                f"    if not turns{at} % 64: SPEND({at}, 64)",
                *_in(body),
                f"    seen{at}.add(tuple(path[first{at}:]))",
                f"    del path[first{at}:]",
                f"SPEND({at}, turns{at} % 64)",
                f"path += (min(turns{at}, 2), frozenset(seen{at}))",
            ]
            return self._kept(node, turns, at)
        olds = [f"old{at}_{i}" for i in range(len(carried))]
        return [
            f"gap{at} = {node.gap}",
            f"ADD(gap{at} > 0)",
            f"if gap{at} > 0:",
            *(f"    {old} = {name}" for old, name in zip(olds, carried, strict=True)),
            *_in(body),
            f"    left{at} = {node.gap}",
            f"    more{at} = max(0, -(-left{at} // (gap{at} - left{at})))",
            *(f"    {name} += ({name} - {old}) * more{at}" for old, name in zip(olds, carried, strict=True)),
            f"    ADD(more{at} > 0)",
        ]

    def _carried(self, loop: Repeat) -> list[str] | None:
        """What one turn leaves to the next, if all turns take one path and add the same to it; else None."""
        nodes = [*_every(loop.body)]
        sets = [one for one in nodes if isinstance(one, NewValue) and one.to in self.needed]
        carried = {one.to for one in sets} - {one.to for one in sets if one.new}
        vague = set(carried)
        while more := {one.to for one in sets if one.to not in vague and one.names & vague}:
            vague |= more
        alike = all(one.adds and not one.names & vague for one in sets if one.to in carried)
        asks = [one for one in nodes if not isinstance(one, NewValue) or (one in sets and "ADD" in (one.code or ""))]
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

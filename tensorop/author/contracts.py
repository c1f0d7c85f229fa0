"""What the C of a template may call, and the contracts on calls and pointers, which are written as C."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import tree_sitter
import tree_sitter_c

from tensorop.author.c_types import TYPES
from tensorop.author.gate import Guard
from tensorop.author.grammar import Refusal
from tensorop.author.terms import Term, inner, term, text
from tensorop.model.expression import evaluate
from tensorop.model.primitive import Collective, Primitive, Primitives

LANES = "lanes"
Callables = Mapping[str, Primitive | Collective]

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language()))
# The sentences of a contract on one thread's call, with its arguments. docs/reference/template.md has those of an
# operator's pointers; a primitive's contract also has:
#   holds(ld % 8 == 0)         each call must be shown to satisfy it
#   reads(p + 8192 * i, n, 1)  a computed address; no access if an extent is 0 or less
#   writes(to, size(map), 1)   as many elements as a box of the tensor map's operand
#   shared(p), outside(p)      p must be the block's shared memory; must be an operand's memory
#   aligned(p, 128)            p must be a multiple of 128 bytes, by the operator's contract and the offset
#   sets(x)                    the local x needs no value before the call
#   gives(0, 7), counts(128)   the result is in 0..7; is the number of one of 128 threads
#   points(p)                  the result is p, of the type that the primitive returns
_SENTENCES = (
    "holds", "counts", "reads", "writes", "shared", "outside", "aligned", "paces", "steps", "tile", "sets", "gives",
    "points",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class CallContract:
    """What a text may call, and the C types of a platform."""

    primitives: Primitives
    callables: Callables  # primitives and collectives by the name in C
    data: frozenset[str]  # types of elements
    vectors: frozenset[str]
    addresses: frozenset[str]  # of numbers that are addresses
    lanes: int | None  # elements of a vector, if it is a constant
    # statements that passed, with the facts, strides of 1 and values there, and the results
    done: dict[Any, Any] = field(default_factory=dict)
    # statements that were of the language, with the kinds of their names
    read: set[Any] = field(default_factory=set)

    @property
    def counted(self) -> bool:
        """Whether a predicate is a number."""
        return self.primitives.predicate in TYPES

    @staticmethod
    def of(primitives: Primitives, callables: Callables) -> CallContract:
        collectives = [one for one in callables.values() if isinstance(one, Collective)]
        addresses = frozenset[str]().union(*(one.addresses for one in collectives))
        if collectives:  # a word of 32 bits holds two elements, so it counts as data
            data = {"float", primitives.element, "uint16_t", "uint32_t"}
            vectors = {kind for one in collectives for kind, _, mark in one.declared if mark != "*"}  # of locals
            vectors |= {one.returns for one in collectives}
            vectors -= data | addresses | TYPES.keys() | {"void"}
        else:
            elements = {primitives.element, primitives.compute, primitives.storage}
            data = {"float", "double", *elements, *(f"u{name}" for name in elements if name.startswith("int"))}
            vectors = {primitives.vector, primitives.compute_vector, primitives.storage_vector}
        own = callables.get(LANES)
        fixed = isinstance(own, Primitive) and re.fullmatch(r"[0-9 +*/()-]+", own.c)
        lanes = int(evaluate(fixed[0].replace("/", "//"), {})) if fixed else None
        return CallContract(primitives, callables, frozenset(data), frozenset(vectors), addresses, lanes)


@lru_cache(maxsize=512)
def sentences(contract: str) -> tuple[tuple[str, tuple[Term, ...]], ...]:
    """The sentences of a contract: each is a name and its arguments as terms. Raises Refusal for an unknown one."""
    source = f"void f(void) {{ {contract.strip().removesuffix(';')}; }}".encode("ascii", "replace")
    body = _PARSER.parse(source).root_node.named_children[0].child_by_field_name("body")
    found = []
    for node in inner(body) if body is not None else ():
        match term(inner(node)[0]) if node.type == "expression_statement" else ():
            case ("call", name, arguments) if name in _SENTENCES:
                found.append((name, arguments))
            case _:
                raise Refusal(Guard.BOUNDS, f"a contract has an unknown sentence: '{text(node)}'")
    return tuple(found)

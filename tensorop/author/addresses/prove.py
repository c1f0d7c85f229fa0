"""The door of the prover: whether each memory access of a template's text stays inside its operand."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from tensorop.author.addresses.prover import Prover
from tensorop.author.contracts import CallContract
from tensorop.author.grammar import Refusal
from tensorop.author.language import Reader
from tensorop.author.terms import field


@dataclass(frozen=True)
class Function:
    """A function of C (a tree-sitter `function_definition`), and the bytes of the template's text in its body."""

    node: Node
    first: int
    last: int


def prove(function: Function, contract: CallContract) -> list[tuple[int, int]]:
    """The bytes (first, last) of each statement that nothing executes: these are not proved, and must not be compiled.

    The text must parse without errors and pass the checks of `c_gate` on names, calls, types and storage. The comments
    that begin the function have the promises on its pointers. Raises Refusal with the guard, the reason and the node
    if a statement is not of the language, an access is not proved, or a condition distinguishes too many sizes.
    """
    prover, body = Prover(contract), field(function.node, "body")
    try:
        Reader(contract).read(function.node, body, function.first, function.last)
        prover.run(function.node, body, function.first, function.last)
    except Refusal as refusal:
        raise Refusal(refusal.guard, prover.symbols.readable(refusal.message), refusal.node or body) from None
    return prover.trace.unreached()

"""What the author of a judged kernel does next, by how it ended."""

from __future__ import annotations

from collections.abc import Mapping

from tensorop.model.trial import Kind

PASSED = (
    "put it, as a template, into DIR/templates/{operator}/kernels/{name}.c.j2 (a C file's is written by --template) "
    "and let a search find its numbers: tensorop {operator} {plugins} --platform {platform} --dtype {dtype}"
)

FAILED: Mapping[Kind, str] = {
    Kind.REFUSED: "change what the message names; the guard is its first word, and docs/reference/template.md lists "
    "what a kernel may say (primitives: tensorop primitives show SET)",
    Kind.RENDER: "correct the template where the message says; it is rendered for every tile from 1 x 1 on",
    Kind.COMPILE: "correct the C by the compiler's messages in the log; a primitive's types are in `tensorop "
    "primitives show SET`",
    Kind.OBJECT: "take out what made the compiler emit it: a kernel's object has code and constants alone, and calls "
    "nothing but memcpy, memset and memmove (docs/explanation/security.md)",
    Kind.TIMEOUT: "look for a loop that does not end, at k = 0 and in partial tiles too; for a slow machine or a very "
    "slow kernel give --timeout a longer time",
    Kind.CRASH: "look for an index or a pointer that leaves its operand; the case in the message is the first that "
    "does",
    Kind.ILLEGAL: "take out the instruction that {platform} lacks, or judge it for a platform that has it",
    Kind.GUARD: "the case in the message reads or writes beyond an operand: look at the last row, column and step of k",
    Kind.WRONG: "the case in the message is the first that is wrong: look at what is particular to it (a partial tile, "
    "a transposed operand, alpha, beta = 0, k = 0, NaN)",
    Kind.IMPOSSIBLE: "a call that does all its work cannot be so fast: look for work that is left out when it is timed",
    Kind.NOISY: "measure again on a quiet machine; nothing is wrong with the kernel so far",
    Kind.LOST: "run the same command again: the target went away, which says nothing of the kernel",
}

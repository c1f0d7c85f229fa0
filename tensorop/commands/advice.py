"""The next step for the author of a judged kernel, by the kind of its outcome."""

from __future__ import annotations

from collections.abc import Mapping

from tensorop.model.trial import Kind

PASSED = (
    "save the template as DIR/templates/{operator}/kernels/{name}.c.j2 (for a C file, --template writes it), and tune "
    "its parameters: tensorop {operator} {plugins} --platform {platform} --dtype {dtype}"
)

PASSED_TRUSTED = (
    "measure other shapes with --shapes; a search takes templates, which the gates can read "
    "(docs/how-to/write-a-kernel-template.md)"
)

FAILED: Mapping[Kind, str] = {
    Kind.REFUSED: "change what the message names (its first word is the guard); "
    "docs/reference/template.md lists what a kernel "
    "may contain (for primitives: tensorop primitives show SET); for C of your own, with intrinsics, functions or "
    "headers, add --trusted",
    Kind.RENDER: "fix the template at the place in the message; it is rendered for every tile, from 1 x 1 up",
    Kind.COMPILE: "fix the C as the compiler's messages in the log say; for the types of primitives see `tensorop "
    "primitives show SET`; headers of trusted C are found beside the file that includes them",
    Kind.OBJECT: "remove what made the compiler emit this: a kernel's object has only code and constants, and calls "
    "nothing but memcpy, memset and memmove (docs/explanation/security.md); functions of trusted C are `static`",
    Kind.TIMEOUT: "look for an endless loop, also at k = 0 and in partial tiles; for a slow machine or a very "
    "slow kernel set a longer --timeout",
    Kind.CRASH: "look for an index or a pointer outside its operand; the case in the message is the first that crashed",
    Kind.ILLEGAL: "remove the instruction that {platform} lacks, or use a --platform that has it",
    Kind.GUARD: "the call in the message reads or writes outside an operand: check the last row, column and step of k",
    Kind.WRONG: "the call in the message is the first wrong one: check what is special about it (a partial tile, "
    "a transposed operand, alpha, beta = 0, k = 0, NaN)",
    Kind.IMPOSSIBLE: "no complete call can be so fast: look for work that is skipped while it is timed",
    Kind.NOISY: "measure again on an idle machine; the kernel has no fault so far",
    Kind.LOST: "run the same command again; the target was lost, which is no fault of the kernel",
}

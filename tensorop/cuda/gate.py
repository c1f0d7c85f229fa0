"""What the CUDA of a template that takes tensor maps may say: threads, shared memory, primitives, and nothing else.

It is read before the primitives' own C is put in, so that assembly, casts and the device's functions are theirs alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tensorop.model.trial import Kind, Outcome

_COMMENT = re.compile(r"/\*(?>.*?(?:\*/|\Z))|//[^\n]*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")
# Of the names that begin with two underscores a template may say these.
_RESERVED_TEXT = """
__device__ __forceinline__ __global__ __launch_bounds__ __grid_constant__ __shared__ __align__ __syncthreads __syncwarp
"""
_CALLED_TEXT = """
min max make_float2 make_uint4 float2 float4 uint4 uint16_t uint32_t uint64_t int64_t bool int float
if for while return switch static_cast alignas
"""
# Words that reach beyond a kernel, or after which anything may follow.
_REFUSED_TEXT = """
asm volatile goto static thread_local new delete operator clock clock64 globaltimer uintptr_t intptr_t const_cast union
dynamic_cast reinterpret_cast friend class namespace using typedef decltype extern __device__ __global__ __shared__
"""
_RESERVED, _CALLED, _REFUSED = (frozenset(t.split()) for t in (_RESERVED_TEXT, _CALLED_TEXT, _REFUSED_TEXT))
_FUNCTION = re.compile(r"__device__ __forceinline__ [\w &*]{1,400}+\(")
_KERNEL = re.compile(r'extern "C" __global__ __launch_bounds__\([^()]*\) void tensorop_kernel\(')
_SHARED = re.compile(r"extern __shared__ (?:__align__\(\d+\) )?unsigned char \w+\[\];")
_UNROLL = re.compile(r"^[ \t]*#pragma unroll(?: \d+)?$", re.MULTILINE)
_CAST = re.compile(r"\(\s*(?:const\s+)?\w+\s*\*+\s*\)\s*[\w(&]")
_CALL = re.compile(r"(?<![\w.])([A-Za-z_]\w*+)\s*+(?:<[^<>;(){}]*+>\s*+)?\(")


def complaint(text: str, primitives: Collection[str]) -> Outcome | None:
    """None where a rendered template is fit to be built, else the refusal. primitives: what it may call."""
    found = next(_complaints(_COMMENT.sub(" ", text), primitives), None)
    return None if found is None else Outcome(Kind.REFUSED, "gate", found)


def _complaints(text: str, primitives: Collection[str]) -> Iterator[str]:
    if len(_KERNEL.findall(text)) != 1:
        yield 'expected one kernel: extern "C" __global__ __launch_bounds__(...) void tensorop_kernel(...)'
    rest = _UNROLL.sub("", text)
    rest = _SHARED.sub(" ", _KERNEL.sub(" kernel(", rest))
    rest = _FUNCTION.sub(lambda found: found[0].removeprefix("__device__ __forceinline__"), rest)
    for mark in ("#", "<<<", "\\", '"', "'", "`", "@", "$", "%:", "??", "::", "->*"):
        if mark in rest:
            yield f"a template has no {mark!r}: {_line(rest, rest.index(mark))}"
    for word in _WORD.finditer(rest):
        name = word[0]
        if name in _REFUSED or (name.startswith("__") and name not in _RESERVED):
            yield f"a template does not say '{name}': {_line(rest, word.start())}"
    if cast := _CAST.search(rest):
        yield f"no pointer is made of another or of a number: {_line(rest, cast.start())}"
    own = re.findall(r"\b(?:void|Place|auto|int|float|bool)\s++&?(\w++)\s*+(?:\(|= \[)", rest)
    known = {*primitives, *own, *_CALLED, *_RESERVED, "kernel"}
    for call in _CALL.finditer(rest):
        name = call[1]
        if name not in known:
            yield f"'{name}' is no primitive of this platform, nor of this template: {_line(rest, call.start())}"


def _line(text: str, at: int) -> str:
    return text[text.rfind("\n", 0, at) + 1 : (text.find("\n", at) + 1 or len(text) + 1) - 1].strip()[:100]

"""Lists of the flags, variables and values that a platform file may pass to compilers, emulators and baselines.

A platform file may be untrusted: it may come with a product or a folder of plug-ins. Options of compilers can load
libraries (`-fplugin`, `-mllvm -load`), write files (`-o`) and read files (`@file`, `-include`); environment variables
make BLAS libraries load tools and write logs. So everything outside of these lists is refused; no entry names a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

_WORD = r"[A-Za-z0-9][A-Za-z0-9_.+-]*"
_FLAGS = re.compile(
    r"-O(?:[0-3sz]|fast)"
    r"|-g0"
    r"|-std=(?:c|gnu)(?:99|11|17|23)"
    rf"|-m(?:cpu|arch|tune|abi)={_WORD}"
    r"|-mprefer-vector-width=[0-9]+|-mrvv-vector-bits=(?:zvl|scalable|[0-9]+)|-m(?:no-)?(?:strict-align|implicit-float)"
    r"|-m(?:no-)?(?:sse|ssse|avx|fma|f16c|bmi|lzcnt|popcnt|movbe|adx|amx-|vzeroupper)[a-z0-9.-]*"
    r"|-f(?:no-)?(?:unroll-loops|vectorize|slp-vectorize|tree-vectorize|omit-frame-pointer|strict-aliasing|math-errno"
    r"|trapping-math|signed-zeros|fast-math|finite-math-only|associative-math|reciprocal-math|rounding-math|builtin"
    r"|stack-protector|inline|inline-functions|delete-null-pointer-checks|wrapv|short-enums|align-functions|align-loops)"
    r"|-falign-(?:functions|loops)=[0-9]+|-fno-builtin-[a-z0-9_]+|-ffp-contract=(?:off|on|fast)"
    r"|-W[a-z][a-z0-9-]*(?:=[0-9]+)?"
)
# LLVM's options, after `-mllvm`. Some of those that are not listed load libraries or write files.
_LLVM = re.compile(
    r"-enable-(?:misched|post-misched|unroll-and-jam|interleaved-mem-accesses|masked-interleaved-mem-accesses"
    r"|machine-outliner|loopinterchange|gvn-hoist|gvn-sink|cond-stores-vec|epilogue-vectorization)=(?:true|false)"
    r"|-(?:unroll-threshold|unroll-count|unroll-max-count|inline-threshold|inlinehint-threshold|slp-threshold"
    r"|vectorizer-min-trip-count|force-vector-width|force-vector-interleave|align-loops|prefetch-distance"
    r"|riscv-v-vector-bits-min|riscv-v-vector-bits-max|riscv-v-register-bit-width-lmul|riscv-v-fixed-length-vector-lmul-max"
    r"|aarch64-sve-vector-bits-min|aarch64-sve-vector-bits-max)=-?[0-9]+"
    r"|-(?:misched|post-RA-scheduler|pre-RA-sched|regalloc)=[a-z0-9-]+"
    r"|-(?:misched-topdown|misched-bottomup|misched-regpressure|misched-cluster|aarch64-enable-[a-z-]+|x86-[a-z-]+)"
    r"=(?:true|false)"
)
_TARGET = re.compile(r"([a-z][a-z0-9_]*)-linux-(?:musl|gnu(?:\.[0-9]{1,2}\.[0-9]{1,3})?)")
_CPU = re.compile(_WORD)
# e.g. rv64,v=true,vlen={vlen}; no property of QEMU's -cpu names a file
_QEMU_CPU = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,={}+-]*")
# Variables by which a baseline chooses its kernels; none makes it load, log or write.
_VARIABLES = (
    "OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE", "ONEDNN_MAX_CPU_ISA", "ONEDNN_CPU_ISA_HINTS", "DNNL_MAX_CPU_ISA",
    "LIBXSMM_TARGET", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR", "MKL_DEBUG_CPU_TYPE",
)  # fmt: skip
_BESIDE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*\.yaml")
_VALUE = re.compile(r"[A-Za-z0-9_.,-]{0,64}")
_HINT = "docs/how-to/describe-a-platform.md says what is, under compiler.flags"


def compiler(arch: str, spec: Mapping[str, str | Sequence[str]]) -> Iterator[str]:
    """Faults of a `compiler:` section: keys static_target, static_cpu, shared_target, arch_flags, flags."""
    for key in ("static_target", "shared_target"):
        match = _TARGET.fullmatch(str(spec[key]))
        if match is None or match[1] != arch:
            yield f"compiler.{key}: expected {arch}-linux-musl or {arch}-linux-gnu.2.31, say, got {spec[key]!r:.80}"
    if not _CPU.fullmatch(str(spec["static_cpu"])):
        yield f"compiler.static_cpu: expected a core's name, got {spec['static_cpu']!r:.80}"
    for key in ("arch_flags", "flags"):
        yield from (f"compiler.{key}: {complaint}" for complaint in _flags(tuple(spec[key])))


def _flags(flags: Sequence[str]) -> Iterator[str]:
    following = False
    for flag in flags:
        if following:
            if not _LLVM.fullmatch(flag):
                yield f"{flag!r:.80} after -mllvm is not admitted; {_HINT}"
            following = False
        elif flag == "-mllvm":
            following = True
        elif not _FLAGS.fullmatch(flag):
            yield f"the flag {flag!r:.80} is not admitted; {_HINT}"
    if following:
        yield "nothing follows -mllvm"


def qemu_cpu(text: str) -> Iterator[str]:
    """Faults of a `qemu_cpu:`."""
    if text and not _QEMU_CPU.fullmatch(text):
        yield f"qemu_cpu: expected a core's name and its properties, got {text!r:.80}"


def environment(variables: Mapping[str, str]) -> Iterator[str]:
    """Faults of a baseline's environment."""
    for name, value in variables.items():
        if name not in _VARIABLES:
            yield f"the variable {name!r:.80} is not admitted; expected one of {', '.join(_VARIABLES)}"
        elif not _VALUE.fullmatch(value):
            yield f"{name}: expected a plain word, got {value!r:.80}"


def beside(name: str) -> Iterator[str]:
    """Faults of a name of another file in the same folder."""
    if not _BESIDE.fullmatch(name):
        yield f"expected the name of a .yaml file beside this one, got {name!r:.80}"

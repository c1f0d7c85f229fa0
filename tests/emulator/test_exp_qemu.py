"""`exp` of the sets of other architectures on samples, and what the board models count of the primitives around it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tensorop.commands import check_primitives
from tensorop.measure import board as measure
from tensorop.model.kernel import Artifact, Source
from tensorop.paths import native_dir
from tensorop.provision.qemu import qemu
from tensorop.render import render
from tensorop.specs import board, platforms, primitives
from tensorop.toolchain import compile
from tests.support.exponentials import worst_f32, worst_f64

ARGUMENTS_OF = {
    "min": ("v", "w", "vl"),
    "div": ("v", "w", "vl"),
    "select": ("v", "w", "vl"),
    "scale2": ("v", "zero", "vl"),
    "exp": ("v", "vl"),
    "max_across": ("v", "vl"),
}
AT = [("neon", {}), *(("rvv", {"lmul": lmul}) for lmul in (1, 2, 4))]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "chosen"), AT)
def test_samples(name: str, chosen: dict[str, int]) -> None:
    platform, ulp = check_primitives.home(name), primitives.load(name).primitives["exp"].ulp
    assert ulp is not None
    worst, where = worst_f32(platform, chosen, 16411)
    assert 0.5 < worst <= ulp, where
    worst, where = worst_f64(platform, chosen, 8000)
    assert 0.5 < worst <= ulp, where


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(
    ("name", "chosen", "vlen"),
    [("cortex-a53", {}, 128), ("spacemit-k1", {"lmul": 1}, 256), ("spacemit-k1", {"lmul": 4}, 256)],
)
def test_the_model_knows_their_instructions(
    name: str, chosen: dict[str, int], vlen: int, dtype: str, tmp_path: Path
) -> None:
    counted = {of: _counted(name, chosen, vlen, dtype, of, tmp_path) for of in ARGUMENTS_OF}
    assert counted["exp"] > counted["scale2"] > counted["select"] > 0


VECTORS = 16


def _counted(name: str, chosen: dict[str, int], vlen: int, dtype: str, primitive: str, folder: Path) -> float:
    """Modelled cycles of a primitive on one of several vectors in level 1; the model must know all instructions."""
    platform = platforms.load(name)
    resolved = platform.primitives_of(dtype, chosen)
    call = render.functions(resolved)
    value = call[primitive](*ARGUMENTS_OF[primitive])
    made = f"out[i] = {value};" if primitive == "max_across" else f"{call['store']('out + i', value, 'full')};"
    text = "\n".join(
        [
            *(f"#include <{header}>" for header in ("stddef.h", "stdint.h", *resolved.headers)),
            f"typedef {resolved.element} element;\ntypedef {resolved.vector} vector;",
            f"typedef {resolved.predicate} predicate;",
            '#include "region.h"',
            resolved.support,
            call[primitive].support,
            "element in[1 << 11], out[1 << 11];",
            "static __attribute__((noinline)) void region(size_t n, int warm)\n{",
            f"const size_t lanes = {resolved.lanes};",
            "if (warm)\nTENSOROP_REGION_WARM();\nelse\nTENSOROP_REGION_BEGIN();",
            f"const predicate full = {call['full']()};\nconst predicate vl = {call['tail']('n')};",
            f"const vector zero = {call['zero']('full')};\n(void)zero, (void)full, (void)vl;",
            f"for (size_t i = 0; i < {VECTORS} * lanes; i += lanes) {{",
            f"const vector v = {call['load']('in + i', 'full')};\nconst vector w = {call['load']('out + i', 'full')};",
            f"(void)w;\n{made}\n}}\nTENSOROP_REGION_END();\n}}",
            "int main(void)\n{\n    region(2, 1);\n    region(2, 0);\n    return 0;\n}",
        ]
    )
    header = ("region.h", (native_dir() / "region.h").read_text())
    built = compile.compile_source(Source((("one.c", text), header)), compile.candidate_flags(platform))
    assert isinstance(built, Artifact), built
    program = compile.link_program(built, arch=platform.arch, name="one")
    assert isinstance(program, Artifact), program
    run = measure.prepare(board.load(platform.board, name), vlen, folder)
    cpu = platform.qemu_cpu.format(vlen=vlen)
    command = [qemu(platform.arch), *run.arguments, *(("-cpu", cpu) if cpu else ()), program.path]
    subprocess.run(command, check=True, env={}, timeout=60)
    counts = measure.parse(run.out)[-1]
    assert counts.unknown == ()
    assert counts.total > VECTORS  # compilers load two vectors at once
    return counts.cycles[0] / VECTORS

"""The judge under QEMU: every control is refused there too, the one that is right at one VLEN among them."""

from __future__ import annotations

import pytest

from tensorop.model.case import Case
from tensorop.model.kernel import Artifact
from tensorop.model.trial import Kind
from tensorop.model.verdict import Seed
from tensorop.provision import baseline
from tensorop.render import adapting
from tensorop.runners.protocol import TargetLibrary
from tensorop.runners.session import Guest
from tensorop.specs.platforms import load
from tensorop.verify import grid
from tensorop.verify.controls import ControlRun, controls
from tensorop.verify.subject import Subject
from tests.support.classes import extended, some
from tests.support.operators import builder, gemm, runner_of

operator = gemm()


@pytest.mark.covers("platform {name}")
@pytest.mark.parametrize(
    ("dtype", "name"),
    some(
        [(dtype, name) for dtype in operator.dtypes for name in ("rvv", "neon")],
        lambda case: case in (("f32", "rvv"), ("f64", "neon"), ("i8", "rvv")),
    ),
)
def test_every_control_ends_as_it_must(name: str, dtype: str) -> None:
    platform = load(name)
    results = ControlRun(operator, platform, runner_of(platform), Seed.draw()).run([dtype])
    assert results
    assert all(r.as_expected for r in results)
    refused = {r.name for r in results if not r.outcome.ok}
    assert {c.name for c in controls(operator) if c.applies(platform, dtype)} - refused == {"honest"}
    assert ("one_vlen" in refused) == (name == "rvv")
    if dtype in ("f32", "f64"):  # every fault shows in them
        assert {c.name for c in controls(operator)} - refused <= {"honest", "one_vlen"}


@pytest.mark.parametrize("dtype", some(operator.dtypes, lambda dtype: dtype == "f64"))
def test_one_vlen_is_not_enough(dtype: str) -> None:
    """The control passes where it is right and is found at the next VLEN, which the message names."""
    platform = load("rvv")
    (control,) = (c for c in controls(operator) if c.name == "one_vlen")
    built = builder(platform)(control.source(operator), (f"-DTENSOROP_DTYPE_{dtype}=1",))
    assert isinstance(built, Artifact)
    tiles = dict.fromkeys(platform.verify_vlens, operator.reference.CONTROL_TILE)
    quick = grid.quick(operator, dtype, tiles)
    subject = Subject(runner_of(platform), built.path)
    verdicts = grid.verify(operator, subject, quick, platform.verify_vlens, Seed.draw())
    assert [(v.vlen, v.ok) for v in verdicts] == [(128, True), (256, False)]
    assert "VLEN 256" in grid.outcome(verdicts).message
    (alone,) = grid.verify(operator, subject, quick, [512], Seed.draw())
    assert alone.outcome.kind is Kind.WRONG
    dealt = grid.verify(operator, subject, grid.dealt(operator, dtype, tiles), platform.verify_vlens, Seed.draw())
    assert [(v.vlen, v.ok) for v in dealt] == [(128, True), (256, False)]


@pytest.mark.parametrize("dtype", ["f32", extended("f64")])
def test_a_library_nobody_here_wrote_passes(dtype: str) -> None:
    """OpenBLAS on the whole grid, and with two threads: the judge asks for what BLAS promises, and no more."""
    platform = load("rvv")
    library = baseline.baseline("openblas", platform.arch).bring()
    program = adapting.program(platform, operator).path
    bound = TargetLibrary(str(library.path), library.kind, dtype, library.prefix, library.suffix)

    def with_threads(count: int) -> Subject:
        found = (
            ("LD_LIBRARY_PATH", ":".join(map(str, library.library_path))),
            ("OPENBLAS_CORETYPE", "RISCV64_ZVL128B"),
            ("OPENBLAS_NUM_THREADS", str(count)),
        )
        return Subject(runner_of(platform), program, Guest(libraries=(bound,), environment=found))

    subject = with_threads(1)
    vlens, tile = (128, 256), {"mr": 8, "nr": 8, "ku": 4}
    blocking = {"mc": 128, "kc": 240, "nc": 512}
    reference = operator.reference

    def its(vlen: int, seed: Seed) -> list[Case]:
        """Its interface has leading dimensions of 32 bits."""
        whole = reference.full_grid(dtype, tile, blocking, seed.stream(0, vlen))
        leading = (reference.product(case.problem) for case in whole)
        fits = [max(p.a.leading, p.b.leading, p.c.leading) < 2**31 for p in leading]
        return [case for case, fit in zip(whole, fits, strict=True) if fit]

    verdicts = grid.verify(operator, subject, its, vlens, Seed.draw())
    assert grid.outcome(verdicts).ok, grid.outcome(verdicts)
    assert [v.vlen for v in verdicts] == [128, 256]

    cases = operator.reference.thread_grid(dtype, tile, Seed.draw().stream(8))
    threaded = list(grid.verify_threads(operator, with_threads, cases, (2,), 128, Seed.draw()))
    assert [(v.threads, v.ok) for v in threaded] == [(2, True)]

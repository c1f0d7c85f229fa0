"""Kernels that cheat, and good kernels with one mistake: each is caught by the guard whose business it is.

The cheats are files (tests/support/cheats.py has their form). A template goes the way of a language model's answer, up
to its trials on this machine. C of a file stands for what templates would become if their guards failed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tensorop.author import gate, parse
from tensorop.backends import reach
from tensorop.job import authoring
from tensorop.model.architecture import host_arch
from tensorop.model.job import Job
from tensorop.model.kernel import Artifact, KernelTemplate
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
from tensorop.specs import operators, platforms
from tensorop.toolchain import gate as object_gate
from tensorop.toolchain.compile import candidate_flags, compile_source
from tensorop.trial import evaluator
from tests.attacks.test_template_c import on_device
from tests.support import cheats, kernels
from tests.support.cheats import Cheat
from tests.support.operators import beside_controls
from tests.support.templates import DOT, OUTER, templates

ON_X86 = pytest.mark.skipif(host_arch() != "x86_64", reason="the plain platform is one of x86-64")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cheats")


def judged(template: KernelTemplate, work: Path, platform: str, dtype: str) -> Outcome:
    """The outcome of a template as a language model's, judged as a job judges it."""
    target = reach(platforms.load(platform), None)
    job = Job("gemm", platform=platform, dtypes=(dtype,), out=work)
    author = authoring.JobAuthor(job, operators.load("gemm"), target, Seed.draw(), work)
    return author.judge(replace(template, author="llm"))


def of(text: str) -> KernelTemplate:
    return parse.parse(text, operator="gemm", name="llm-1", author="llm")


@pytest.mark.one_in(5)
@ON_X86
@pytest.mark.parametrize("cheat", cheats.TEMPLATES, ids=lambda cheat: cheat.name)
def test_its_guard_catches_a_template_that_cheats(cheat: Cheat, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "CALL_TIMEOUT_S", 1.0)
    outcome = judged(of(cheat.text), work, "generic", "f64")
    assert (outcome.where, outcome.kind) == (cheat.place, cheat.kind), outcome
    if cheat.kind is Kind.REFUSED:  # "at POINT: GUARD: why"
        assert outcome.message.split(": ")[1] == gate.Guard(cheat.word), outcome


@pytest.mark.parametrize("cheat", cheats.OF_OBJECTS, ids=lambda cheat: cheat.name)
def test_the_gate_of_objects_catches_what_templates_cannot_hold(cheat: Cheat, tmp_path: Path) -> None:
    source = beside_controls(cheat.name, cheat.text)
    flags = (*candidate_flags(kernels.platform()), "-DTENSOROP_DTYPE_f32=1")
    made = compile_source(source, flags, work=tmp_path)
    assert isinstance(made, Artifact), made
    outcome = object_gate.check_object(made.path)
    assert outcome is not None
    assert (outcome.where, outcome.kind) == (cheat.place, cheat.kind), outcome
    assert cheat.word in outcome.message


@pytest.mark.parametrize("cheat", cheats.OF_DEVICES, ids=lambda cheat: cheat.name)
def test_its_guard_catches_a_family_for_gpus_that_cheats(cheat: Cheat) -> None:
    outcome = on_device(cheat.text)
    assert isinstance(outcome, Outcome), outcome
    assert (outcome.where, outcome.kind) == (cheat.place, cheat.kind), outcome
    assert outcome.message.startswith(f"{gate.Guard(cheat.word)}: "), outcome


def test_the_family_that_cheats_are_made_of_passes() -> None:
    (cheat,) = [one for one in cheats.OF_DEVICES if one.name == "device_includes_library.cu.j2"]
    assert isinstance(on_device(cheat.text.replace("#include <cublas_v2.h>\n", "")), str)


def test_every_file_is_a_cheat_of_one_of_the_places() -> None:
    files = {path.name for path in cheats.FOLDER.iterdir()}
    of_templates = (*cheats.TEMPLATES, *cheats.OF_DEVICES)
    assert files == {cheat.name for cheat in (*of_templates, *cheats.OF_OBJECTS, *cheats.OF_COSTS)}
    assert {cheat.word for cheat in of_templates if cheat.kind is Kind.REFUSED} <= set(gate.Guard)


@dataclass(frozen=True)
class Mutant:
    """A shipped template at one point with one text exchanged, and the guard that has to catch it."""

    template: str
    point: dict[str, int]
    text: str
    mutated: str
    caught_by: str = "verify wrong-result"


UNROLLED = {**OUTER, "mr_vectors": 2, "nr": 3, "ku": 2}
SQUARE = {**DOT, "mr_vectors": 2, "nr": 2}
STREAM = {"mr_vectors": 32, "nr": 2, "ku": 2, "wide": 1, "fetch": 0}
MUTANTS = {
    "alpha is missing": Mutant("outer", UNROLLED, "{{ update_c() }}", "alpha = beta;\n{{ update_c() }}"),
    "beta is missing": Mutant(
        "outer", UNROLLED, "{{ update_c() }}", "beta = 1;\n{{ update_c() }}", "author refused data"
    ),
    "sums begin at alpha": Mutant("outer", UNROLLED, "zero(vl(i))", "splat('alpha', vl(i))"),
    "the rest of k is dropped": Mutant("outer", UNROLLED, "for (; k; --k)", "for (; k > {{ ku }}; --k)"),
    "the last turn of k is dropped": Mutant("outer", {**UNROLLED, "ku": 1}, "for (; k >= {{ ku }};", "for (; k > 1;"),
    "A does not advance": Mutant("outer", {**UNROLLED, "ku": 4}, "        a += lda;\n", ""),
    "A advances too far": Mutant(
        "outer", {**UNROLLED, "ku": 4}, "        a += lda;\n", "        a += 2 * lda;\n", "author refused bounds"
    ),
    "a vector of A serves for two": Mutant("outer", UNROLLED, "{{ a_vector(i, u) }}", "{{ a_vector(0, u) }}"),
    "a column of B serves for all": Mutant("outer", UNROLLED, "b[{{ b_at(u, j) }}]", "b[{{ b_at(u, 0) }}]"),
    "i and j are swapped": Mutant(
        "dot", SQUARE, '= alpha * {{ sum("c%d_%d" % (i, j)) if',
        '= alpha * {{ sum("c%d_%d" % ([j, mr_vectors - 1] | min, [i, n - 1] | min)) if',
    ),
    "the tail is dropped": Mutant("dot", SQUARE, "if (p < k) {", "if (p + 1 < k) {"),
    "the tail is one short": Mutant("dot", SQUARE, 'tail("k - p")', 'tail("k - p - 1")'),
    "the tail is one long": Mutant("dot", SQUARE, 'tail("k - p")', 'tail("k - p + 1")', "author refused bounds"),
    "C is read at beta 0": Mutant("dot", SQUARE, "            *at = dot;\n", "            *at = dot + beta * *at;\n"),
    "C's later columns stay": Mutant(
        "dot", SQUARE, "{{ element }} *at = c + {{ i }} + {{ j }} * ldc;",
        "{{ element }} *at = c + {{ i }} + 0 * ldc;",
    ),
    "i and j are swapped in C": Mutant(
        "dot", SQUARE, "c + {{ i }} + {{ j }} * ldc;\n        const", "c + {{ j }} + {{ i }} * ldc;\n        const",
        "author refused bounds",
    ),
    "C has A's stride": Mutant(
        "dot", SQUARE, "{{ element }} *at = c + {{ i }} + {{ j }} * ldc;",
        "{{ element }} *at = c + {{ i }} + {{ j }} * lda;", "author refused bounds",
    ),
    "the old C stays": Mutant("stream", STREAM, "if (beta != 1)", "if (beta != 1 && beta != 0)"),
    "the last rows stay": Mutant("stream", STREAM, "for (; i < m; i += lanes)", "for (; i + lanes <= m; i += lanes)"),
    "alpha counts twice": Mutant("stream", STREAM, "= alpha * b[", "= alpha * alpha * b["),
}  # fmt: skip
BASES = [("outer", UNROLLED), ("dot", SQUARE), ("stream", STREAM)]
PLATFORM = {"outer": "generic", "dot": "avx2", "stream": "avx2"}  # plain C is compiled faster


def at(name: str, point: dict[str, int], text: str, mutated: str) -> KernelTemplate:
    shipped = templates[name]
    assert text in shipped.text
    needs = (*shipped.needs, "splat") if "splat" in mutated else shipped.needs
    tunables = {tunable: (value,) for tunable, value in point.items()}
    return replace(
        shipped, name="llm-1", needs=needs, tunables=tunables, seed_configurations=(), unseen=(),
        prior=None, text=shipped.text.replace(text, mutated),
    )  # fmt: skip


def on_avx2() -> None:
    with open("/proc/cpuinfo") as info:
        if "avx2" not in info.read():
            pytest.skip("this CPU lacks AVX2")


@pytest.mark.one_in(5)
@ON_X86
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_of_a_good_kernel_is_caught(name: str, work: Path) -> None:
    on_avx2()
    mutant = MUTANTS[name]
    outcome = judged(
        at(mutant.template, mutant.point, mutant.text, mutant.mutated), work, PLATFORM[mutant.template], "f32"
    )
    guard = outcome.message.split(": ")[1] if outcome.kind is Kind.REFUSED else ""
    assert f"{outcome.where} {outcome.kind} {guard}".strip() == mutant.caught_by, outcome


@pytest.mark.one_in(2)
@ON_X86
@pytest.mark.parametrize(("name", "point"), BASES, ids=[f"{name}-{n}" for n, (name, _) in enumerate(BASES)])
def test_the_kernel_without_the_mistake_passes(name: str, point: dict[str, int], work: Path) -> None:
    on_avx2()
    outcome = judged(at(name, point, "", ""), work, PLATFORM[name], "f32")
    assert outcome.ok, outcome


@ON_X86
def test_the_template_that_cheats_are_made_of_passes(work: Path) -> None:
    (cheat,) = [one for one in cheats.TEMPLATES if one.name == "exits_early.c.j2"]
    assert judged(of(cheat.text.replace("    _exit(0);\n", "")), work, "generic", "f64").ok

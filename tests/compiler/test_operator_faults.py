"""A folder of an operator with one fault: `operators check` and a job name file, key and what was expected, before any
trial."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tensorop import pipeline
from tensorop.commands import check_operator
from tensorop.errors import TensoropError
from tensorop.model.job import Job
from tensorop.specs import operators
from tests.support.commands import ROOT, events, tensorop

WHOLE = ROOT / "examples" / "operator" / "templates" / "conv1d"
YAML, REFERENCE, PRODUCT = "operator.yaml", "reference.py", "product/product.yaml"
DIMS = "dims: [b, c, h, t]"
RUN = '    def work(self, problem):\n        """A multiplication and an addition for each tap of each output."""\n'
RESULT = 'return {"y": (np.einsum("bcit,ct->bci", windows, taps), bound)}'
COSTS = "defaults: {block:"

# file, text in it (None: there is none any more), what stands in its place, what is said (first the file)
FAULTS: dict[str, tuple[str, str | None, str, tuple[str, ...]]] = {
    "no adapter": ("adapter.c", None, "", ("adapter.c: missing",)),
    "no binding": ("binding.py", None, "", ("binding.py: missing",)),
    "no product.yaml": (PRODUCT, None, "", ("product.yaml: missing",)),
    "no candidate": ("candidate.c.j2", None, "", ("candidate.c.j2: missing",)),
    "no kernel.c.j2": ("kernel.c.j2", None, "", ("conv1d", "kernel.c.j2")),
    "no driver": ("driver.c.j2", None, "", (PRODUCT, "key 'driver'", "driver.c.j2 is none")),
    "no reference": (REFERENCE, None, "", ("reference.py: missing",)),
    "no kernels": ("kernels/direct_taps.c.j2", None, "", ("kernels contains no template",)),
    "no controls": ("controls", None, "", ("controls has no",)),
    "no honest control": ("controls/honest.c", None, "", ("controls has no honest kernel",)),
    "no C of the product": ("product/dispatch.c.j2", None, "", (PRODUCT, "key 'dtype'", "dispatch.c.j2 is none")),
    "no default": (YAML, '{block: "1024"}', "{}", (YAML, "key 'defaults'", "none is for 'block'")),
    "an unknown name in defaults": (YAML, '"1024"', '"1024 * l9"', (YAML, "key 'defaults'", "l9")),
    "an unknown name in costs": (YAML, COSTS, f"costs: {{terms: {{a: q * h}}}}\n{COSTS}", (YAML, "costs.terms.a", "q")),
    "costs that divide by zero": (YAML, COSTS, f"costs: {{terms: {{a: h // p}}}}\n{COSTS}", (YAML, "key 'costs'")),
    "an unknown name in costs.where": (
        YAML, COSTS, f"costs: {{where: {{a: q}}, terms: {{d: a}}}}\n{COSTS}", (YAML, "costs.where.a", "q")
    ),
    "an unknown name in features": (YAML, "rows: b * c", "rows: b * q", (YAML, "key 'features.rows'", "q")),
    "an unknown name in micro": (YAML, "16 * lanes", "16 * lane", (YAML, "key 'micro'", "lane")),
    "an unknown name in a constraint": (
        YAML, "  runtime: [block]", "  constraints: [{must: block < q, reason: r}]", (YAML, "key 'blocking'", "q"),
    ),
    "a rule that divides by zero": (
        YAML, '{must: "p < t"', '{must: "h % p == 0", reason: d}\n  - {must: "p < t"',
        (YAML, "key 'suites.speech'", "d"),
    ),
    "a kernel's own problem that is none": (YAML, "16 * lanes", "1", (YAML, "key 'micro'", "the t taps are no longer")),
    "a shape that nobody can write": (YAML, "[p{p}]", "[p{p}]{", (YAML, "key 'shape'")),
    "an operand of words": (YAML, "[b, c, h]", "[b, c, h, x]", (YAML, "key 'operands.x.shape'")),
    "a default of words": (YAML, '"1024"', "\"'many'\"", (YAML, "key 'defaults'")),
    "a feature that divides by zero": (
        YAML, "work: b * c * h * t", "work: h // p", (YAML, "key 'features.work'", "divides by zero"),
    ),
    "a feature below zero": (YAML, "work: b * c * h * t", "work: p - t", (YAML, "key 'features.work'", "got -9")),
    "a suite that nobody can name": (YAML, "speech:", "'a,b':", (YAML, "key 'suites'", "'a,b'")),
    "a layout with a dim": (YAML, "- {layout: bch}", "- {h: 3}", (YAML, "key 'layouts.0'", "'h'")),
    "a drawn side of nothing": (YAML, "[1, 2, 3, 5, 7, 9]", "[0, 1]", (YAML, "key 'drawn.t'", "got 0")),
    "an unknown probe": (YAML, "suites:", "probes: [b1]\nsuites:", (YAML, "key 'probes'", "b1")),
    "an unknown baseline": (YAML, "[taps+openblas]", "[tap+openblas]", (YAML, "key 'against'", "tap+openblas")),
    "no value of a tunable": (YAML, "[64, 256, 1024]", "[]", (YAML, "key 'blocking.tunables.block'")),
    "an unknown dtype": (YAML, "[f32, f64]", "[f32, f33]", (YAML, "key 'dtypes'", "f33")),
    "an unknown format": (
        YAML, "{role: in, shape: [c, t]}", "{role: in, shape: [c, t], formats: {f32: x}}",
        (YAML, "key 'operands.w.formats'", "'x'"),
    ),
    "a word of C as a dim": (YAML, "c: 4, ", "", (YAML, "key 'micro'")),
    "a word of C as a flag": (YAML, "dtypes:", "flags: {int: 0}\ndtypes:", (YAML, "key 'flags'", "'int'")),
    "a word of C as a feature": (YAML, "rows: b * c", "long: b * c", (YAML, "key 'features'", "'long'")),
    "a word of Python as a tunable": (
        YAML, '{block: "1024"}\nblocking:\n  tunables: {block:', '{lambda: "1"}\nblocking:\n  tunables: {lambda:',
        (YAML, "key 'blocking.tunables'", "'lambda'"),
    ),
    "a tunable with a dim's name": (
        YAML, '{block: "1024"}\nblocking:\n  tunables: {block: [64, 256, 1024]}\n  runtime: [block]',
        '{h: "1"}\nblocking:\n  tunables: {h: [1]}', (YAML, "key 'blocking.tunables'", "'h'"),
    ),
    "a tunable with a template's name": (
        YAML, '{block: "1024"}\nblocking:\n  tunables: {block: [64, 256, 1024]}\n  runtime: [block]',
        '{prefix: "1"}\nblocking:\n  tunables: {prefix: [1]}', (YAML, "key 'blocking.tunables'", "'prefix'"),
    ),
    "a workspace among the operands": (
        YAML, "  y: {role: out", "  workspace: {role: in, shape: [b]}\n  y: {role: out", (YAML, "key 'operands'"),
    ),
    "a flag's value that is none": (
        YAML, "layouts:\n  - {layout: bch}", "flags: {mode: {a: 1}}\nlayouts:\n  - {mode: b}",
        (YAML, "key 'layouts.0.mode'", "'b'"),
    ),
    "an import that fails": (REFERENCE, "import numpy as np", "import numpyy as np", (REFERENCE, "numpyy")),
    "Python that is none": (REFERENCE, "class Conv1d(Contract):", "class Conv1d(Contract)", (REFERENCE, "SyntaxError")),
    "no contract": (REFERENCE, "class Conv1d(Contract):", "class Conv1d:", (REFERENCE, "expected one class", "got 0")),
    "two contracts": (
        REFERENCE, "class Conv1d(Contract):", "class B(Contract):\n    pass\n\n\nclass Conv1d(Contract):",
        (REFERENCE, "expected one class", "got 2"),
    ),
    "a contract that is not made": (
        REFERENCE, RUN, f"    def __init__(self):\n        pass\n\n{RUN}", (REFERENCE, "method '__init__'"),
    ),
    "work that raises": (
        REFERENCE, RUN, f"{RUN}        1 / 0\n", (f"{REFERENCE}:", "method 'work': ZeroDivisionError")
    ),
    "an oracle that raises": (
        REFERENCE, RESULT, f"1 / 0\n        {RESULT}", (f"{REFERENCE}:", "'expected'", "ZeroDiv")
    ),
    "an oracle without a result": (REFERENCE, RESULT, "pass", (REFERENCE, "'expected'", "outputs y", "got None")),
    "an output of another name": (REFERENCE, '"y": (', '"out": (', (REFERENCE, "'expected'", "outputs y", "got out")),
    "a result of another shape": (REFERENCE, "windows, taps), bound", "windows, taps)[..., :-1], bound[..., :-1]", (
        REFERENCE, "output 'y'", "expected an array of shape (2, 3, 19)",
    )),
    "a bound of another shape": (REFERENCE, "bound)}", "bound[0])}", (REFERENCE, "output 'y'", "a bound for each")),
    "a bound that is a number": (REFERENCE, "bound)}", "1e-6)}", (REFERENCE, "output 'y'", "two arrays")),
    "a bound of NaN": (
        REFERENCE, "bound)}", "bound * np.nan)}", (REFERENCE, "output 'y'", "bound of 0 or more", "nan")
    ),
    "a bound without end": (REFERENCE, "bound)}", "bound + np.inf)}", (REFERENCE, "output 'y'", "finite bounds")),
    "a bound that admits nothing": (REFERENCE, "bound)}", "bound * 0)}", (REFERENCE, "its own result, rounded")),
    "a result of words": (REFERENCE, "taps), bound", 'taps).astype("U8"), bound', (REFERENCE, "output 'y'", "numbers")),
    "a narrow result": (REFERENCE, "taps), bound", 'taps).astype("f2"), bound', (REFERENCE, "output 'y'", "float16")),
    "a grid that raises": (REFERENCE, 'tile["outputs"] * u', 'tile["out"] * u', (REFERENCE, "'quick_grid'", "'out'")),
    "a grid of nothing": (REFERENCE, "return cases", "return []", (REFERENCE, "'quick_grid'", "got []")),
    "a grid of an unknown kind": (
        REFERENCE, "self.DISTRIBUTIONS[number // 2 % 2]", "'odd'", (REFERENCE, "'quick_grid'", "'odd'"),
    ),
    "a tile that raises": (REFERENCE, 'point["wide"]', 'point["width"]', (f"{REFERENCE}:", "method 'tile'", "'width'")),
    "a workspace of words": (
        REFERENCE, RUN, f"    def workspace(self, *given):\n        return 'much'\n\n{RUN}", (REFERENCE, "workspace"),
    ),
    "a control shape of none": (REFERENCE, "(2, 3, 40, 5, 2, 1)", "(2, 3)", (REFERENCE, "CONTROL_SHAPE")),
    "C of the product that is none": (
        "product/dispatch.c.j2", "int i = 0;", "int i = ;", ("product", "dispatch_f32.c")
    ),
    "C of the header that is none": (
        "product/dispatch.h.j2", "struct tensorop_isa *needs;", "nix;", ("product", "nix")
    ),
    "a name that the product lacks": ("product/kernel.c.j2", "use.block", "use.bloc", ("product", "bloc")),
    "a tile without its tunable": (PRODUCT, "wide{wide}", "{wid}", (PRODUCT, "key 'tile'", "{wid}")),
    "functions of no dtype": (
        PRODUCT, "      f64: [tensorop_conv1d_f64, tensorop_conv1d_f64_variant]\n", "", (PRODUCT, "names", "f64"),
    ),
    "product.yaml with another key": (PRODUCT, "driver:", "drive:", (PRODUCT, "drive")),
    "an adapter that is no C": ("adapter.c", "typedef int (*ours)", "typedef nix (*ours)", ("adapter.c", "nix")),
    "an adapter of another function": (
        "adapter.c", '"tensorop_conv1d_f32_variant"', '"tensorop_conv_f32"',
        ("adapter.c", "no tensorop function for f32"),
    ),
    "an adapter that mixes operands up": (
        "adapter.c", "c->buffer[BUFFER_x], c->buffer[BUFFER_w]", "c->buffer[BUFFER_w], c->buffer[BUFFER_x]",
        ("adapter.c or product/",),
    ),
    "baselines that are no C": ("baselines.c", "real sum = 0;", "nix sum = 0;", ("baselines.c", "nix")),
    "a binding that fails": ("binding.py", "import numpy as np", "1 / 0", ("binding.py", "ZeroDivisionError")),
    "a binding without bind": ("binding.py", "def bind(", "def bound(", ("binding.py", "'bind'")),
    "declarations that are no C": (
        "binding.py", "f\"int tensorop", "f\"nix tensorop", ("binding.py", "'declarations'")
    ),
    "declarations of other functions": (
        "binding.py", "f\"int tensorop_conv1d_{", "f\"int tensorop_conv_{", ("binding.py", "tensorop_conv_f32"),
    ),
    "a control that says nothing": (
        "controls/last_tap_lost.c", " * expect:", " * ends:", ("last_tap_lost.c", "expect")
    ),
    "an honest control that is not": ("controls/honest.c", "taps, width", "taps - 1, width", ("honest.c", REFERENCE)),
    "a control that is no C": ("controls/honest.c", "(void)stray;", "nix;", ("honest.c", "nix")),
    "a kernel without its head": (
        "kernels/direct_taps.c.j2", "---\nstrategy", "strategy", ("direct_taps.c.j2", "'---'")
    ),
    "a kernel that is no template": (
        "kernels/direct_taps.c.j2", "    size_t i = 0;", "{% for %}", ("direct_taps.c.j2", "template"),
    ),
    "a kernel that is no C": ("kernels/direct_taps.c.j2", "    size_t i = 0;", "    size_t i = ;", ("direct_taps",)),
    "a candidate that is no C": ("candidate.c.j2", "= call->dim;", "= nix;", ("candidate.c.j2", "nix")),
    "a candidate with an unknown name": (
        "candidate.c.j2", "{{ support }}", "{{ supports }}", ("candidate.c.j2", "supports")
    ),
}  # fmt: skip


SHOWN = ("no default", "an oracle that raises", "an adapter that is no C")  # on the command line too


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_before_any_trial(fault: str, tmp_path: Path) -> None:
    file, old, new, said = FAULTS[fault]
    own, out = tmp_path / "own", tmp_path / "out"
    shutil.copytree(WHOLE, own / "templates" / "conv1d")
    path = own / "templates" / "conv1d" / file
    if old is None:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    else:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
    where = "generic" if file in (YAML, REFERENCE) else "native"  # that takes longer to read, and shares what is built
    job = Job("conv1d", where, dtypes=("f32",), shapes=((1, 1, 9, 3, 1, 0),), trials=2, plugins=(own,), out=out)
    for named in (_checked(own), _ended(job)):
        assert str(own / "templates" / "conv1d") in named
        assert all(part in named for part in said), named
    assert not events(out, "started")
    if fault in SHOWN:
        of_job = ("conv1d", "--dtype", "f32", "--shapes", "b1c1h9t3", "--trials", "2", "--out", out)
        for words in (("operators", "check", "conv1d"), of_job):
            ended = tensorop(*words, "--plugins", own, cwd=tmp_path)
            assert ended.status in (1, 2)
            assert all(part in ended.stdout + ended.stderr for part in said)


def _checked(own: Path) -> str:
    """What `operators check` finds; whatever else than an error of ours it raises is a traceback to the user."""
    try:
        found = list(check_operator.check(operators.load("conv1d", (own,)), plugins=(own,)))
    except TensoropError as error:
        return str(error)
    return "\n".join(str(one) for one in found if not one.ok)


def _ended(job: Job) -> str:
    with pytest.raises(TensoropError) as error:
        list(pipeline.run(job))
    return str(error.value)


def test_a_whole_folder_has_no_fault() -> None:
    plugins = (ROOT / "examples" / "operator",)
    found = list(check_operator.check(operators.load("conv1d", plugins), plugins=plugins))
    assert all(one.ok for one in found)
    assert [str(one) for one in found][-3:] == [
        "native f32, f64: candidate, adapter and product: as expected",
        "native f32, f64: one candidate of each template: as expected",
        "native f32, f64: a control that must pass: as expected",
    ]


def test_each_kernel_is_built(tmp_path: Path) -> None:
    kernels = tmp_path / "own" / "templates" / "conv1d" / "kernels"
    shutil.copytree(WHOLE, kernels.parent)
    text = (kernels / "direct_taps.c.j2").read_text()
    (kernels / "other.c.j2").write_text(text.replace("    size_t i = 0;", "    size_t i = ;"))
    assert "template 'other' at " in _checked(tmp_path / "own")


def test_a_tunable_may_be_called_as_a_method_of_a_mapping(tmp_path: Path) -> None:
    own = tmp_path / "own"
    folder = own / "templates" / "conv1d"
    shutil.copytree(WHOLE, folder)
    for file, old in ((YAML, "block:"), (YAML, "[block]"), ("product/kernel.c.j2", "use.block")):
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, old.replace("block", "items")).replace("itemsing", "blocking"))
    text = (folder / "candidate.c.j2").read_text()
    (folder / "candidate.c.j2").write_text(text.replace("DIM_block", "DIM_items").replace("{{ block }}", "{{ items }}"))
    assert _checked(own) == ""

"""A folder of an operator with one fault: `operators check` and a job name file, key and what was expected, before any
trial."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tensorop import paths, pipeline
from tensorop.commands import check_operator
from tensorop.errors import TensoropError
from tensorop.model.job import Job
from tensorop.render import adapting
from tensorop.specs import operators
from tests.support.classes import some
from tests.support.commands import ROOT, events, tensorop

WHOLE = ROOT / "examples" / "operator" / "templates" / "conv1d"
YAML, REFERENCE, PRODUCT = "operator.yaml", "reference.py", "product/product.yaml"
DIMS = "dims: [b, c, h, t]"
RUN = '    def work(self, problem):\n        """A multiplication and an addition for each tap of each output."""\n'
RESULT = 'return {"y": (y, bound)}'
COSTS = "defaults: {block:"

OWN = """\
schema: 1
driver: driver.c
dtype: [dispatch.c]
tile: "{wide}"
libraries:
  tensorop_conv1d:
    description: another
    sources: [check.c]
    names:
      all: [tensorop_conv1d_check, tensorop_conv1d_message]
      f32: [tensorop_conv1d_f32]
      f64: [tensorop_conv1d_f64]
"""
BINDING = """
def declarations(dtypes):
    return "int tensorop_conv1d_f32(const void *call, const float *x, const float *w, float *y);"


def bind(library):
    return library.lib.tensorop_conv1d_f32
"""

# file, text in it (None: there is none any more), what stands in its place, what is said (first the file)
FAULTS: dict[str, tuple[str, str | None, str, tuple[str, ...]]] = {
    "no kernel.c.j2": ("kernel.c.j2", None, "", ("kernel.c.j2: missing",)),
    "no driver": ("driver.c.j2", None, "", ("driver.c.j2: missing",)),
    "another driver that is none": (PRODUCT, "driver.c", "drive.c", (PRODUCT, "key 'driver'", "drive.c.j2 is none")),
    "no reference": (REFERENCE, None, "", ("reference.py: missing",)),
    "no kernels": ("kernels/direct_taps.c.j2", None, "", ("kernels contains no template",)),
    "no controls": ("controls", None, "", ("controls has no",)),
    "no honest control": ("controls/honest.c", None, "", ("controls has no honest kernel",)),
    "no C of the product": (PRODUCT, "[dispatch.c]", "[dispatc.c]", (PRODUCT, "key 'dtype'", "dispatc.c.j2 is none")),
    "no default": (YAML, '{block: "1024"}', "{}", (YAML, "key 'defaults'", "none is for 'block'")),
    "an unknown name in defaults": (YAML, '"1024"', '"1024 * l9"', (YAML, "key 'defaults'", "l9")),
    "an unknown name in costs": (YAML, COSTS, f"costs: {{terms: {{a: q * h}}}}\n{COSTS}", (YAML, "costs.terms.a", "q")),
    "an unknown name in routines": (
        YAML, COSTS, f"routines: {{a: {{interface: b, where: q == 1}}}}\n{COSTS}", (YAML, "key 'routines.a.where'", "q")
    ),
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
    "a layout with a dim": (YAML, "- {relu: 0}", "- {h: 3}", (YAML, "key 'layouts.0'", "'h'")),
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
    "a word of C as a flag": (YAML, "flags: {relu: 0}", "flags: {int: 0}", (YAML, "key 'flags'", "'int'")),
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
        YAML, "layouts:\n  - {relu: 0}", "layouts:\n  - {relu: b}", (YAML, "key 'layouts.0.relu'", "'b'"),
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
    "a result of another shape": (REFERENCE, "(y, bound)", "(y[..., :-1], bound[..., :-1])", (
        REFERENCE, "output 'y'", "expected an array of shape (2, 3, 19)",
    )),
    "a bound of another shape": (REFERENCE, "bound)}", "bound[0])}", (REFERENCE, "output 'y'", "a bound for each")),
    "a bound that is a number": (REFERENCE, "bound)}", "1e-6)}", (REFERENCE, "output 'y'", "two arrays")),
    "a bound of NaN": (
        REFERENCE, "bound)}", "bound * np.nan)}", (REFERENCE, "output 'y'", "bound of 0 or more", "nan")
    ),
    "a bound without end": (REFERENCE, "bound)}", "bound + np.inf)}", (REFERENCE, "output 'y'", "finite bounds")),
    "a bound that admits nothing": (REFERENCE, "bound)}", "bound * 0)}", (REFERENCE, "its own result, rounded")),
    "a result of words": (REFERENCE, "(y, bound)", '(y.astype("U8"), bound)', (REFERENCE, "output 'y'", "numbers")),
    "a narrow result": (REFERENCE, "(y, bound)", '(y.astype("f2"), bound)', (REFERENCE, "output 'y'", "float16")),
    "a grid that raises": (REFERENCE, 'tile["outputs"] * u', 'tile["out"] * u', (REFERENCE, "'quick_grid'", "'out'")),
    "a grid of nothing": (REFERENCE, "return cases", "return []", (REFERENCE, "'quick_grid'", "got []")),
    "a grid of an unknown kind": (
        REFERENCE, "self.DISTRIBUTIONS[number // 2 % 2]", "'odd'", (REFERENCE, "'quick_grid'", "'odd'"),
    ),
    "a tile that raises": (REFERENCE, 'point["wide"]', 'point["width"]', (f"{REFERENCE}:", "method 'tile'", "'width'")),
    "a workspace of words": (
        REFERENCE, "    def tile(", "    def workspace(self, *of, **more):\n        return 'much'\n\n    def tile(",
        (REFERENCE, "workspace"),
    ),
    "a control shape of none": (REFERENCE, "(2, 3, 40, 5, 2, 1)", "(2, 3)", (REFERENCE, "CONTROL_SHAPE")),
    "C of the product that is none": (
        "product/dispatch.c.j2", "int64_t parts =", "int64_t = parts", ("product", "dispatch_f32.c")
    ),
    "C of the header that is none": (
        "product/dispatch.h.j2", "struct tensorop_isa *needs;", "nix;", ("product", "nix")
    ),
    "a name that the product lacks": ("product/kernel.c.j2", "use.blocking", "use.bloc", ("product", "bloc")),
    "a tile without its tunable": (PRODUCT, "{wide}", "{wid}", (PRODUCT, "key 'tile'", "{wid}")),
    "functions of no dtype": (
        PRODUCT, "      f64: [tensorop_conv1d_f64]\n", "", (PRODUCT, "names", "f64"),
    ),
    "product.yaml with another key": (PRODUCT, "driver:", "drive:", (PRODUCT, "drive")),
    "an adapter that is no C": ("adapter.c", "typedef int (*", "typedef nix (*", ("adapter.c", "nix")),
    "an adapter of another function": (
        "adapter.c", '"tensorop_conv1d_f32_variant"', '"tensorop_conv_f32"',
        ("adapter.c", "no tensorop function for f32"),
    ),
    "an adapter that mixes operands up": (
        "adapter.c", "call->buffer[BUFFER_x], call->buffer[BUFFER_w]", "call->buffer[BUFFER_w], call->buffer[BUFFER_x]",
        ("adapter.c or product/",),
    ),
    "baselines that are no C": ("baselines.c", "real sum =", "nix sum =", ("baselines.c", "nix")),
    "a binding that fails": ("binding.py", "def bind(", "1 / 0\ndef bind(", ("binding.py", "ZeroDivisionError")),
    "a binding without bind": ("binding.py", "def bind(", "def bound(", ("binding.py", "'bind'")),
    "declarations that are no C": (
        "binding.py", "int tensorop", "nix tensorop", ("binding.py", "'declarations'")
    ),
    "declarations of other functions": (
        "binding.py", "int tensorop_conv1d_f", "int tensorop_conv_f", ("binding.py", "tensorop_conv_f32"),
    ),
    "a driver that is no C": ("driver.c.j2", "size_t outputs", "nix outputs", ("no f32 candidate", "nix")),
    "a driver of other operands": ("driver.c.j2", "{{ element }} *y, {{", "char *y, {{", ("no f32 cand", "char *")),
    "threads without their cases": (REFERENCE, "for one in sizes]", "for one in ()]", (REFERENCE, "'thread_grid'")),
    "threads over no dim": (YAML, "dim: b", "dim: u", (YAML, "key 'threads.dim'", "b, c, h, t", "'u'")),
    "threads over a second side": (YAML, "dim: b", "dim: c", (YAML, "key 'threads.dim'", "operand 'x'", "'c'")),
    "threads over what a rule names": (
        YAML, 'must: "p < t"', 'must: "p < t * b"', (YAML, "key 'threads.dim'", "no rule names", "'b'")
    ),
    "an unknown name in threads": (YAML, "work: b * c * t *", "work: b * q *", (YAML, "key 'threads.work'", "q")),
    "a parameter with an operand's name": (
        YAML, "parameters: {alpha: 1}", "parameters: {w: 1}", ("binding.py: missing", "names must differ", "'w'")
    ),
    "a feature that no call has": (
        REFERENCE, RUN, f"    def features(self, problem):\n        return {{**problem.sizes, 'taps': 1}}\n\n{RUN}",
        ("product", "feature 'taps' of reference.py"),
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
    "a candidate that is no C": ("candidate.c.j2", "call->dim[DIM_", "nix[DIM_", ("candidate.c.j2", "nix")),
    "a candidate with an unknown name": (
        "candidate.c.j2", "{{ support }}", "{{ supports }}", ("candidate.c.j2", "supports")
    ),
}  # fmt: skip


SHOWN = ("no default", "an oracle that raises", "an adapter that is no C")  # on the command line too


FIRST_OF_FILE = {file: fault for fault, (file, *_) in reversed(FAULTS.items())}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("fault", some(FAULTS, lambda fault: fault in (*FIRST_OF_FILE.values(), *SHOWN)))
def test_a_fault_is_named_before_any_trial(fault: str, tmp_path: Path) -> None:
    file, old, new, said = FAULTS[fault]
    own, out = tmp_path / "own", tmp_path / "out"
    shutil.copytree(WHOLE, own / "templates" / "conv1d")
    path = own / "templates" / "conv1d" / file
    if file not in (YAML, REFERENCE) and not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(_overriding(file))
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


def _overriding(file: str) -> str:
    """A file of the folder in place of a part that is generated without it."""
    operator = operators.load("conv1d", (WHOLE.parents[1],))
    if file == "adapter.c":
        return adapting.text(operator)
    return BINDING if file == "binding.py" else OWN if file == PRODUCT else (paths.generated_dir() / file).read_text()


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


@pytest.mark.covers("example operator")
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
    for file, old in ((YAML, "block:"), (YAML, "[block]"), ("driver.c.j2", "blocking->block")):
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, old.replace("block", "items")).replace("itemsing", "blocking"))
    assert _checked(own) == ""

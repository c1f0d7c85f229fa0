"""An operator's folder is held against its contract: what breaks it is refused with file, key and what was expected."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorop.errors import SpecError, UsageError
from tensorop.model.call import Call
from tensorop.model.expression import evaluate
from tensorop.model.kernel import Constraint
from tensorop.model.problem import Problem
from tensorop.model.shape import Shapes
from tensorop.package import binding
from tensorop.specs import operators
from tests.support import plugins
from tests.support.commands import ROOT

CONV = Shapes(
    ("n", "c", "h", "w", "k", "r", "s"),
    {"u": 1, "p": 0, "d": 1, "g": 1},
    "n{n}c{c}h{h}w{w}k{k}r{r}s{s}[u{u}][p{p}][d{d}][g{g}]",
    rules=(Constraint("h + 2 * p >= r", "the window fits"),),
)
GEMM = Shapes(("m", "n", "k"), form="{m}x{n}x{k}")
WORK = "    def work("
FEATURES = "    def features(self, problem):\n        return {'n': 1.5}\n\n"
CALL = """\
    def call(self, problem, rng, distribution="", placement=0, workspace=0, compute="", start=""):
        return __import__("tensorop.model.call").model.call.Call((1,))

"""
USUAL = Shapes(("b", "l"), {"u": 1, "p": 0})


@pytest.mark.parametrize("shapes", [CONV, GEMM, USUAL], ids=["conv", "gemm", "usual"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_is_written_is_read_again(shapes: Shapes, data: st.DataObject) -> None:
    dims = [data.draw(st.integers(1, 5000)) for _ in shapes.dims]
    attributes = [data.draw(st.integers(0, 3)) for _ in shapes.attributes]
    shape = (*dims, *attributes)
    assert shapes.read(shapes.text(shape)) == shape
    if not shapes.wrong(shape):
        assert shapes.of(shapes.text(shape)) == shapes.of(shapes.named(shape)) == shapes.of(shape) == shape


def test_a_shape_is_written_with_its_names_and_what_is_unusual() -> None:
    shape = CONV.of("n1c64h56w56k64r3s3u2p3")
    assert shape == (1, 64, 56, 56, 64, 3, 3, 2, 3, 1, 1)
    assert CONV.text(shape) == "n1c64h56w56k64r3s3u2p3"
    assert CONV.text(CONV.of([1, 64, 56, 56, 64, 3, 3])) == "n1c64h56w56k64r3s3"
    assert CONV.of({"n": 1, "c": 2, "h": 9, "w": 9, "k": 4, "r": 3, "s": 3, "u": 0})[7:] == (0, 0, 1, 1)
    assert GEMM.text((4, 5, 6)) == "4x5x6"
    assert (
        [type(side) for side in GEMM.of(np.array([4, 5, 6]).tolist())]
        == [int] * 3
        == [type(side) for side in GEMM.of(tuple(np.array([4, 5, 6])))]
    )
    assert (GEMM.help, CONV.help) == ("mxnxk", "n#c#h#w#k#r#s#[u#][p#][d#][g#]")


@pytest.mark.parametrize(
    ("shapes", "given", "told"),
    [
        (GEMM, "4x5", "expected a shape as mxnxk, got '4x5'"),
        (GEMM, [4, 5, 6, 7], "expected a shape"),
        (GEMM, [4, 5, "6"], "expected a shape"),
        (GEMM, {"m": 1, "n": 2}, "expected a shape"),
        (GEMM, "4x5x0", "k is 0; sides to tune for are between 1"),
        (CONV, "n1c1h2w2k1r3s3", "the window fits"),
        (CONV, {"n": 1, "c": 1, "h": 9, "w": 9, "k": 1, "r": 1, "s": 1, "p": -1}, "p is -1; sides"),
        (GEMM, None, "expected a shape"),
    ],
)
def test_what_is_no_shape(shapes: Shapes, given: object, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        shapes.of(given)


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (
            "operator.yaml",
            "dims: [n]",
            "dims: [n]\nfeatures: {past: q % 8}",
            "key 'features.past': expected an expression over n: ",
        ),
        ("operator.yaml", "dims: [n]", "dims: [n]\nfeatures: {n: 2 * n}", "key 'features.n': expected another name"),
        (
            "operator.yaml",
            "quick: [[1000]",
            "quick: [[1000, 2]",
            "key 'suites.quick': expected a shape as n, got [1000, 2]",
        ),
        ("operator.yaml", "quick: [[1000]", "quick: [0", "key 'suites.quick': expected a shape"),
        ("operator.yaml", "quick: [[1000], [4096], [100000]]", "quick: []", "key 'suites.quick': "),
        (
            "reference.py",
            "CONTROL_SHAPE = (64,)",
            "CONTROL_SHAPE = (64, 2)",
            "key 'CONTROL_SHAPE': expected a shape as n",
        ),
        ("operator.yaml", "dims: [n]", "dims: n", "key 'dims': "),
        ("operator.yaml", "dims: [n]", "dims: [n]\nattributes: {n: 1}", "key 'shape': expected each of n once"),
        ("operator.yaml", "dims: [n]", "dims: [n]\nshape: '{m}'", "key 'shape': expected each of n once, got '{m}'"),
        (
            "operator.yaml",
            "dims: [n]",
            "dims: [n]\nrules: [{must: n > q, reason: r}]",
            "key 'rules.0.must': expected an expression over n",
        ),
        (
            "operator.yaml",
            "shape: [n]}\n  y",
            "shape: [2 * q]}\n  y",
            "key 'operands.x.shape': expected an expression over n",
        ),
        ("operator.yaml", "role: inout", "role: both", "key 'operands.y.role': "),
        ("operator.yaml", "parameters: {alpha: 1}", "parameters: [alpha]", "key 'parameters': "),
        (
            "operator.yaml",
            "parameters: {alpha: 1}",
            "parameters: {alpha: 1 / sqrt(q)}",
            "key 'parameters.alpha': expected an expression over n",
        ),
        ("operator.yaml", "shape: [n]}\n  y", "shape: [n], ascends_to: q}\n  y", "key 'operands.x.ascends_to': "),
        (
            "operator.yaml",
            "shape: [n]}\n  y",
            "shape: [n], factor: n}\n  y",
            "operands.x.factor': expected one of alpha",
        ),
        ("operator.yaml", "shape: [n]}\n  y", "shape: [n], packed: m}\n  y", "operands.x.packed': expected one of n"),
        ("operator.yaml", "shape: [n]}\n  y", "shape: [n], leading: q}\n  y", "operands.x.leading': expected an exp"),
        ("operator.yaml", "shape: [n]}\n  y", "shape: [n], leading: n}\n  y", "operands.x.leading': expected true, or"),
        (
            "operator.yaml",
            "dims: [n]",
            "dims: [n]\nworkspace: n * mr",
            "key 'workspace': expected an expression over n, chunk, lanes",
        ),
        ("operator.yaml", "micro: {n: 1024 * lanes}", "micro: {l: 3}", "key 'micro': expected n, got l"),
        ("reference.py", "def work(self, problem)", "def works(self, problem)", "-> 'float', got no such method"),
        (
            "reference.py",
            "def tile(self, point, lanes, reads)",
            "def tile(self, point)",
            "expected the method tile(self, point",
        ),
        (
            "reference.py",
            "def expected(self, problem, given):",
            "expected = 3\n\n    def other(self, problem, given):",
            "expected the method expected(self, problem",
        ),
        (
            "reference.py",
            '2.0 * problem.dims["n"]',
            '"much"',
            "method 'work': expected a number over 0 of 1000 f32 inc=1, got 'much'",
        ),
        ("reference.py", '2.0 * problem.dims["n"]', 'problem.dims["q"]', "method 'work': KeyError: 'q'"),
        (
            "reference.py",
            "class Axpy(Contract)",
            "class Axpy",
            "expected one class derived from tensorop.model.contract.Contract",
        ),
        ("reference.py", "    CONTROL_SHAPE = (64,)\n", "", "class 'Axpy': expected CONTROL_SHAPE, got none"),
        (
            "reference.py",
            WORK,
            f"{FEATURES}{WORK}",
            "method 'features': expected names with numbers from 0, got {'n': 1.5}",
        ),
        (
            "reference.py",
            WORK,
            f"{CALL}{WORK}",
            "method 'call': expected the buffers x (in), y (inout) of operator.yaml, got []",
        ),
    ],
)
def test_a_folder_that_breaks_the_contract(file: str, old: str, new: str, told: str, tmp_path: Path) -> None:
    folder = plugins.write(tmp_path, ROOT) / "templates" / "axpy"
    text = (folder / file).read_text()
    assert text.count(old) == 1
    (folder / file).write_text(text.replace(old, new))
    with pytest.raises(SpecError) as refused:
        operators.load("axpy", (tmp_path,))
    assert str(folder / file) in refused.value.message
    assert told in refused.value.message


def changed(folder: Path, *pairs: tuple[str, str]) -> None:
    text = (folder / "operator.yaml").read_text()
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    (folder / "operator.yaml").write_text(text)


def test_flags_and_slots_are_declared_once(tmp_path: Path) -> None:
    """An operand that a flag leaves out has no elements; a scratch operand is no traffic."""
    changed(
        plugins.write(tmp_path, ROOT) / "templates" / "axpy",
        (
            "  y: {role: inout, shape: [n]}",
            "  y: {role: inout, shape: [n], leading: true}\n  z: {role: in, shape: [n * neg]}",
        ),
        (
            "parameters: {alpha: 1}",
            "  t: {role: scratch, shape: [7]}\nparameters: {alpha: 1}\nflags: {mode: {plain: 3, wild: 5}, neg: 0}",
        ),
        ("  constraints:", "  runtime: [chunk]\n  constraints:"),
    )
    operator = operators.load("axpy", (tmp_path,))
    assert operator.slots.files[0][1].splitlines()[1:] == [
        "enum { DIM_n, DIM_chunk };",
        "enum { LD_y };",
        "enum { SCALAR_alpha };",
        "enum { FLAG_mode, FLAG_neg, FLAG_variant };",
        "enum { BUFFER_x, BUFFER_y, BUFFER_z, BUFFER_t, BUFFER_workspace };",
        "enum { MODE_plain = 3, MODE_wild = 5 };",
    ]
    assert operator.reference.variant_flag == 2
    usual = operator.reference.problem("f32", {"n": 10})
    other = usual.with_options(neg=1, mode="wild", variant=4)
    calls = [operator.reference.call(problem, np.random.default_rng(0)) for problem in (usual, other)]
    assert [call.flags for call in calls] == [(3, 0, -1), (5, 1, 4)]
    assert [[buffer.data.size for buffer in call.buffers] for call in calls] == [[10, 10, 0, 7], [10, 10, 10, 7]]
    assert [operator.reference.traffic(problem) for problem in (usual, other)] == [120, 160]


def test_a_parameter_and_indices_follow_from_the_shape(tmp_path: Path) -> None:
    changed(
        plugins.write(tmp_path, ROOT) / "templates" / "axpy",
        ("parameters: {alpha: 1}", "parameters: {alpha: 2.5 / sqrt(n)}"),
        ("  y: {role: inout, shape: [n]}", "  y: {role: inout, shape: [n]}\n"
         "  begins: {role: in, shape: [n % 5 + 1], formats: {f32: i32}, ascends_to: n}"),
    )  # fmt: skip
    contract = operators.load("axpy", (tmp_path,)).reference
    usual, rng = contract.problem("f32", {"n": 16}), np.random.default_rng(0)
    assert contract.call(usual, rng).scalars == (0.625,)
    assert contract.call(usual.with_options(alpha=3), rng).scalars == (3.0,)
    for size in (1, 9, 100, 103, 104):
        problem = contract.problem("f32", {"n": size})
        given = contract.call(problem, rng)
        for call in (given, contract.alternated(problem, given, rng)):
            offsets = call.buffers[2].data[: size % 5 + 1]
            assert (np.diff(offsets) >= 0).all()
            assert offsets[0] == 0
            assert offsets.dtype == np.int32
            assert offsets.size == 1 or offsets[-1] == size


def test_one_expression_counts_the_workspace(tmp_path: Path) -> None:
    changed(
        plugins.write(tmp_path, ROOT) / "templates" / "axpy",
        ("dims: [n]", "dims: [n]\nworkspace: min(n, chunk) + mr_vectors * lanes"),
    )
    operator = operators.load("axpy", (tmp_path,))
    problem = operator.reference.problem("f32", {"n": 100})
    points = ({"chunk": chunk, "mr_vectors": 2} for chunk in (64, 256))
    assert [operator.reference.workspace(problem, point, 8) for point in points] == [80, 116]
    places = {"chunk": "blocking", "lanes": "kernel", "mr_vectors": "kernel", "n": "call"}
    assert operator.interface.counted == places


@pytest.mark.parametrize("name", ["n", "alpha", "variant"])
def test_a_flag_has_a_name_of_its_own(name: str, tmp_path: Path) -> None:
    changed(
        plugins.write(tmp_path, ROOT) / "templates" / "axpy",
        ("parameters: {alpha: 1}", f"parameters: {{alpha: 1}}\nflags: {{{name}: 0}}"),
    )
    with pytest.raises(SpecError, match=f"key 'flags.{name}': expected another name"):
        operators.load("axpy", (tmp_path,))


def test_what_an_attribute_is_left_out_for() -> None:
    shapes = Shapes(("h",), {"u": 1, "v": "u", "p": 0, "b": "p"}, "h{h}[u{u}][v{v}][p{p}][b{b}]")
    assert shapes.of("h9u2p3") == shapes.of({"h": 9, "u": 2, "p": 3}) == shapes.of([9, 2, 2, 3]) == (9, 2, 2, 3, 3)
    assert [shapes.text(shape) for shape in ((9, 2, 2, 3, 3), (9, 2, 1, 3, 0))] == ["h9u2p3", "h9u2v1p3b0"]


def test_an_attribute_is_as_an_earlier_one(tmp_path: Path) -> None:
    changed(plugins.write(tmp_path, ROOT) / "templates" / "axpy", ("dims: [n]", "dims: [n]\nattributes: {u: v, v: 1}"))
    with pytest.raises(SpecError, match=r"key 'attributes.u': expected a number or one of n, got 'v'"):
        operators.load("axpy", (tmp_path,))


def test_a_reference_may_import_files_beside_it(tmp_path: Path) -> None:
    """Those of its own folder, also where two operators have the same name."""
    for root, flops in (("one", 2), ("other", 3), ("third", None)):
        own = plugins.write(tmp_path / root, ROOT) / "templates" / "axpy"
        text = (own / "reference.py").read_text().replace("2.0 * problem", "FLOPS * problem")
        (own / "reference.py").write_text(text.replace("\nclass", "from .counted import FLOPS\n\n\nclass", 1))
        if flops is None:
            with pytest.raises(UsageError, match=r"reference.py: No module named .*counted"):
                operators.load("axpy", (tmp_path / root,))
            continue
        (own / "counted.py").write_text(f"FLOPS = {flops}\n")
        operator = operators.load("axpy", (tmp_path / root,))
        assert operator.reference.work(operator.reference.problem("f32", {"n": 5}, {})) == 5 * flops


def test_lines_lie_apart_without_code_of_the_operator(tmp_path: Path) -> None:
    """Calls have leading dimensions, gaps are NaN, and a result is judged without its gaps, which nobody may write."""
    folder = plugins.write(tmp_path, ROOT) / "templates" / "axpy"
    changed(
        folder,
        ("dims: [n]", "dims: [m, n]"),
        ("{role: in, shape: [n]}", "{role: in, shape: [m, n], leading: true}"),
        ("{role: inout, shape: [n]}", "{role: inout, shape: [m, n], leading: true}"),
        ("micro: {n:", "micro: {m: 1, n:"),
        ("[[1000], [4096], [100000]]", "[[4, 1000]]"),
    )
    text = (folder / "reference.py").read_text().replace("(64,)", "(4, 16)")
    text = text.replace("buffer.data.astype", "one.astype").replace(
        "for buffer in given.buffers", "for one in self.values(problem, given).values()"
    )
    (folder / "reference.py").write_text(text)
    reference = operators.load("axpy", (tmp_path,)).reference
    problem = reference.problem("f32", {"m": 3, "n": 4}, {"ldx_pad": 2, "ldy_pad": 1})
    call = reference.call(problem, np.random.default_rng(0))
    assert call.lds == (6, 5)
    before = call.buffers[1].data
    assert np.flatnonzero(np.isnan(before)).tolist() == [4, 9]
    right = reference.stored(problem, "y", reference.expected(problem, call)["y"][0].astype("f4"), before)
    assert reference.judge(problem, call, {"y": right}).ok
    assert not reference.judge(problem, call, {"y": before}).ok
    right[9] = 1
    judged = reference.judge(problem, call, {"y": right})
    assert "the gap of y, whose leading dimension is 5, was written, 1 past the end of line 1" in judged.message
    other = reference.alternated(problem, call, np.random.default_rng(1)).buffers[0]
    assert np.isfinite(other.data[other.shift :][:4]).all()


def test_a_product_has_no_code_for_strides_panels_and_second_operands(tmp_path: Path) -> None:
    """C = alpha A B + beta C in either order, of which reference.py says what it computes and no more."""
    folder = plugins.write(tmp_path, ROOT) / "templates" / "axpy"
    changed(
        folder,
        ("dims: [n]", "dims: [m, n, k]"),
        ("  x: {role: in, shape: [n]}",
         "  A: {role: in, shape: [m, k], leading: by_column != ta, factor: alpha, packed: k}\n"
         "  B: {role: in, shape: [k, n], leading: by_column, factor: alpha, packed: k}"),
        ("  y: {role: inout, shape: [n]}", "  C: {role: inout, shape: [m, n], leading: by_column, factor: beta}"),
        ("parameters: {alpha: 1}", "parameters: {alpha: 1, beta: 0}\nflags: {by_column: 0, ta: 0}"),
        ("micro: {n: 1024 * lanes}", "micro: {m: 1, n: lanes, k: 1}"),
        ("[[1000], [4096], [100000]]", "[[4, 10, 20]]"),
    )  # fmt: skip
    text = (folder / "reference.py").read_text().replace("(64,)", "(4, 10, 20)")
    before, after = text.split("        x, y = ")
    own = """        a, b, c = (one.astype("f8") for one in self.values(problem, given).values())
        alpha, beta = given.scalars
        with np.errstate(all="ignore"):
            c = beta * c if beta else 0 * np.zeros(c.shape)
            c = c + alpha * (a @ b) if alpha else c
        return {"C": (c, 1e-5 * (1 + abs(c)))}

    def tile"""
    text = f"import numpy as np\n{before}{own}{after.split('    def tile')[1]}"
    (folder / "reference.py").write_text(text)
    (folder / "binding.py").unlink()
    operator, rng = operators.load("axpy", (tmp_path,)), np.random.default_rng(1)
    reference, sizes = operator.reference, {"m": 4, "n": 5, "k": 8}

    def called(**options: int | float) -> tuple[Problem, Call]:
        problem = reference.problem("f32", sizes, options)
        return problem, reference.call(problem, rng)

    assert [called(by_column=x, ta=y)[1].lds for x, y in ((0, 0), (0, 1), (1, 0), (1, 1))] == [
        (8, 5, 5), (4, 5, 5), (4, 8, 4), (8, 8, 4)
    ]  # fmt: skip
    for options in ({"by_column": 1, "ta": 1}, {"by_column": 1}, {"ta": 1}, {}):  # as generated C has it
        problem, _ = called(**options)
        for name, matrix in reference.matrices(problem).items():
            (number,), length = reference.operands[name].lines
            known = reference.known(problem)
            assert (evaluate(number, known), evaluate(length, known)) == (matrix.outer, matrix.inner)
    assert "call->ld_A" in operator.interface.operands[0].elements
    with pytest.raises(SpecError, match=r"binding.py: missing; without this file, operands.A.leading must be true"):
        binding.of(operator)
    assert called(alpha=0.1)[1].scalars == (np.float32(0.1), 0)
    for options, poisoned in (
        ({"alpha": 0}, [True, True, True]),
        ({"beta": 1}, [False] * 3),
        ({}, [False, False, True]),
    ):
        assert [bool(np.isnan(one.data).all()) for one in called(**options)[1].buffers] == poisoned
    problem, call = called(by_column=1, ta=1, ldc_pad=2)
    want = reference.expected(problem, call)["C"][0]
    right = {"C": reference.stored(problem, "C", want.astype("f4"), call.buffers[2].data)}
    for within in (None, reference.limits(problem, call)):
        assert reference.judge(problem, call, right, within=within).ok
        assert not reference.judge(problem, call, {"C": call.buffers[2].data}, within=within).ok
    again = reference.call(problem, np.random.default_rng(2), start="result")
    done = reference.views(problem, again)["C"] == reference.expected(problem, again)["C"][0].astype("f4")
    assert done.sum() == done.size - 1
    begun = reference.views(problem, reference.counted(problem, call, rng))["C"] == want.astype("f4")
    assert begun[0, 0]
    assert begun[-1, -1]
    assert 2 <= begun.sum() < begun.size
    shifts = [one.shift for one in reference.alternated(problem, call, rng).buffers]
    assert shifts[0] >= 32 > shifts[2] == 0
    assert shifts[1] >= 40
    panels = reference.panels(problem, call, "f32", 1).buffers
    np.testing.assert_array_equal(panels[0].data, call.buffers[0].data.reshape(4, 8).T.ravel())
    np.testing.assert_array_equal(panels[1].data, call.buffers[1].data.reshape(5, 8).T.ravel())
    assert panels[2] is call.buffers[2]
    packed = reference.packed_operands(call, "f32", rng).buffers
    assert [np.array_equal(x.data, y.data) for x, y in zip(packed[:2], call.buffers, strict=False)] == [False, False]
    for options in ({"beta": 1}, {"alpha": 0}, {"ldb_pad": 1}):
        other, whole = called(**options)
        assert reference.alternated(other, whole, rng) is whole
    assert [reference.traffic(called(beta=beta)[0]) for beta in (0, 1)] == [368, 448]

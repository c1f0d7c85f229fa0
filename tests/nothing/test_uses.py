"""An operator that builds on another's templates: `uses:` and `kernels:` of operator.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorop.author import offline
from tensorop.errors import SpecError, UsageError
from tensorop.model.kernel import KernelText
from tensorop.model.operator import Operator
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.specs import operators, platforms
from tests.support.commands import ROOT
from tests.support.operators import gemm

BLOCKING = {"mc": 64, "kc": 256, "nc": 256, "pack_a": 1, "pack_b": 1, "a_stationary": 0}


def without(text: str, *keys: str) -> str:
    """operator.yaml without these keys."""
    kept, skipped = [], False
    for line in text.splitlines():
        if line[:1].isalpha():
            skipped = line.partition(":")[0] in keys
        kept += [] if skipped else [line]
    return "\n".join(kept) + "\n"


def folder(root: Path, uses: str = "uses: gemm\nkernels: [dot, outer]\n") -> Path:
    """`product`: gemm's contract under another name, and none of its templates."""
    own = root / "templates" / "product"
    own.mkdir(parents=True)
    text = (ROOT / "templates" / "gemm" / "operator.yaml").read_text().replace("name: gemm\n", f"name: product\n{uses}")
    lines = [line for line in text.splitlines() if not line.startswith("direct:")]
    (own / "operator.yaml").write_text("\n".join(lines) + "\n")
    for name in ("reference.py", "oracle.py", "inputs.py", "grids.py", "alone.py"):
        (own / name).write_text((ROOT / "templates" / "gemm" / name).read_text())
    return own


def candidate(operator: Operator) -> str:
    platform = platforms.load("generic")
    templates = {
        template.name: template for template in offline.templates(operator.folder, operator.name, operator.added)
    }
    point = next(iter(instantiate.micro_space(platform, templates["outer"], "f32").points()))
    variant = instantiate.variant(operator, templates["outer"], "f32", {**point, **BLOCKING})
    text = Texts().kernel(operator, platform, variant)
    assert isinstance(text, KernelText), text
    return instantiate.candidate(operator, platform, variant, text).files[0][1]


def test_templates_and_templates_of_another_operator_serve(tmp_path: Path) -> None:
    folder(tmp_path)
    operator = operators.load("product", (tmp_path,))
    found = offline.templates(operator.folder, operator.name, operator.added)
    assert [(template.name, template.operator, template.author) for template in found] == [
        ("dot", "product", offline.AUTHOR),
        ("outer", "product", offline.AUTHOR),
    ]
    assert candidate(operator) == candidate(gemm())


def test_its_own_template_of_a_name_comes_first(tmp_path: Path) -> None:
    own = folder(tmp_path)
    (own / "candidate.c.j2").write_text('/* mine */\n{{ kernel }}\n{% include "driver.c.j2" %}\n')
    text = candidate(operators.load("product", (tmp_path,)))
    assert text.startswith("/* mine */")
    assert "f32_run(" in text  # the driver is gemm's


@pytest.mark.parametrize(
    ("uses", "error", "told"),
    [
        ("uses: gemm\nkernels: [inner]\n", SpecError, "expected a subset of dot, lanes, outer, stream, got 'inner'"),
        ("kernels: [outer]\n", SpecError, "key 'kernels': expected a subset of none, without 'uses', got 'outer'"),
        ("uses: gem\n", UsageError, "unknown operator 'gem'"),
        ("uses: [gemm]\n", SpecError, "key 'uses'"),
        ("uses: product\n", SpecError, "key 'uses': expected an operator that does not use this one, got 'product'"),
    ],
)
def test_what_is_not_there_to_use(uses: str, error: type[Exception], told: str, tmp_path: Path) -> None:
    folder(tmp_path, uses)
    with pytest.raises(error) as refused:
        operators.load("product", (tmp_path,))
    assert told in str(refused.value)


def test_what_its_own_file_lacks_is_inherited(tmp_path: Path) -> None:
    file = folder(tmp_path) / "operator.yaml"
    text = without(file.read_text(), *operators.INHERITED)
    file.write_text(text + "defaults: {kc: '128'}\nblocking: {runtime: [kc]}\n")
    own, used = operators.load("product", (tmp_path,)), gemm()
    assert own.defaults == {**used.defaults, "kc": "128"}
    assert own.runtime == ("kc",)
    assert (own.blocking, own.costs, own.numbers, own.stages) == (used.blocking, used.costs, used.numbers, used.stages)
    problem = own.reference.used.problem("f32", {"m": 8, "n": 8, "k": 8})
    point = {"mc": 64, "kc": 64, "nc": 64}
    assert own.reference.used.workspace(problem, point, 8) == used.reference.workspace(problem, point, 8) > 0


def test_operators_that_use_each_other(tmp_path: Path) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        file = folder(tmp_path / name) / "operator.yaml"
        file.write_text(
            file.read_text().replace("name: product", f"name: {name}").replace("uses: gemm", f"uses: {other}")
        )
        (tmp_path / name / "templates" / "product").rename(tmp_path / name / "templates" / name)
    with pytest.raises(SpecError, match="does not use this one, got"):
        operators.load("one", (tmp_path / "one", tmp_path / "two"))

"""The dispatch in generated C decides as the tree does in Python, from the same text of operator.yaml."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from tensorop.dispatch import direct
from tensorop.dispatch.shapes import Draw, drawn
from tensorop.dispatch.tree import decide
from tensorop.model.winner import Leaf, Split, Tree
from tensorop.package import sources
from tensorop.space import problems
from tensorop.specs import operators, platforms
from tensorop.toolchain import tool

OPERATOR = operators.load("gemm")
OWN = OPERATOR.seen


def over_all_features() -> Split:
    """Every feature decides something, and what the direct variant serves."""
    root: Leaf | Split = Leaf(0)
    middles = {"past_8": 3, "past_16": 7, "past_32": 15, "size": 10**6, "a_in_place": 0, "b_in_place": 0}
    for number, name in enumerate(OPERATOR.features):
        root = Split(name, middles.get(name, 60 if name in OWN else 4000), Leaf(number + 1), root)
    test = direct.serves_condition(OPERATOR, platforms.load("spacemit-k1"), "f32")
    return Split(test, 0, root, Leaf(len(OPERATOR.features) + 1))


def test_c_decides_as_python_does(tmp_path: Path) -> None:
    tree = over_all_features()
    made = sources._tree(OPERATOR, Tree(tree), "")
    lines = [f"uint64_t {name} = {text};" for name, text in made["features"].items()]
    found = drawn(OPERATOR, "f32", Draw(60, seed=5, longest=3000))
    seen = [problems.features(OPERATOR, problem) for problem in found]
    rows = ",".join("{" + ",".join(str(of_one[name]) for name in OWN) + "}" for of_one in seen)
    arguments = ", ".join(f"uint64_t {name}" for name in OWN)
    (tmp_path / "choose.c").write_text(
        f"#include <stdint.h>\n#include <stdio.h>\nstatic int choose({arguments}) {{\n"
        + "\n".join(lines)
        + f"(void)a_in_place, (void)b_in_place;\n{made['text']}\n}}\n"
        + f"static const uint64_t rows[][{len(OWN)}] = {{{rows}}};\n"
        + "int main(void) { for (unsigned i = 0; i < sizeof rows / sizeof *rows; ++i)"
        + f' printf("%d\\n", choose({", ".join(f"rows[i][{i}]" for i in range(len(OWN)))})); return 0; }}\n'
    )
    subprocess.run([*tool.cc("choose.c", "-O2", "-o", "choose")], cwd=tmp_path, check=True)
    told = subprocess.run([tmp_path / "choose"], capture_output=True, text=True, check=True)
    mine = [decide(tree, of_one) for of_one in seen]
    assert list(map(int, told.stdout.split())) == mine
    assert len(set(mine)) >= 6
    assert np.unique(mine).max() == len(OPERATOR.features) + 1

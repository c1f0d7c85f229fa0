"""The adapter of an operator behind the harness's calling convention: its own adapter.c, else a generated one."""

from __future__ import annotations

import os

from tensorop.model.kernel import Artifact
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.render import render
from tensorop.specs import files
from tensorop.toolchain import harness


def text(operator: Operator) -> str:
    """The C of the adapter: the contract's, the folder's, or a generated one.

    Raises SpecError for a file that cannot be read, RenderError.
    """
    if made := operator.reference.adapter():
        return made
    own = operator.folder / harness.ADAPTER
    if os.path.lexists(own):
        return files.text(own, files.TEXT)
    names = {
        "interface": operator.interface.names,
        "dtypes": operator.dtypes,
        "baselines": (operator.folder / harness.BASELINES).is_file(),
    }
    return render.c_text(render.of_operator(operator.parts), f"{harness.ADAPTER}.j2", names)


def program(platform: Platform, operator: Operator) -> Artifact:
    """The harness for shared libraries with the operator's adapter, and its baselines.c if there is one.

    baselines.c is compiled for the platform's instructions. Raises JobError if the harness cannot be built,
    MissingTool, and the errors of `text`.
    """
    baselines = operator.folder / harness.BASELINES
    own = (baselines, platform.compiler.arch_flags) if baselines.is_file() else None
    return harness.dynamic_program(platform.arch, text(operator), operator.slots.files, own, operator.folder)

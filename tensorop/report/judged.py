"""Makes one HTML page of the judgement on a BLAS library."""

from __future__ import annotations

from pathlib import Path

from tensorop.blas.findings import BlasJudgement
from tensorop.render import render

_TEMPLATE = "judged.html.j2"
_MOST = 1 << 26  # characters; a library that is wrong everywhere has a C program for each kind of fault of a function


def page(judgement: BlasJudgement) -> str:
    """HTML with the content of the judgement's JSON, and with its style included."""
    env = render.environment(Path(__file__).parent, html=True)
    context = {
        "j": judgement.to_json(),
        "name": judgement.library.path.name,
        "faults": len(judgement.findings),
    }
    return render.text(env, _TEMPLATE, context, _MOST)

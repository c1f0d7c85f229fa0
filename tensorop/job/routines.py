"""Judges the BLAS routines of a finished library before it is published."""

from __future__ import annotations

from collections.abc import Iterator

from tensorop.author import offline
from tensorop.blas import binding, judging, routines
from tensorop.errors import JobError
from tensorop.events import Event, Note, Phase
from tensorop.package.publish import Staged
from tensorop.search.task import JobContext
from tensorop.specs import products


def judged(whole: JobContext, staged: Staged) -> Iterator[Event]:
    """Judges each routine of the product, if it has some, at every VLEN. Raises JobError for a fault."""
    spec, job, target = products.load(whole.operator), whole.job, whole.target
    standard = [name for name, one in spec.libraries.items() if one.routines and one.api]
    if len(spec.routines) < 2 or not standard:
        return
    yield Phase("routines", f"{', '.join(spec.routines)} before the judge of BLAS libraries")
    library = binding.find(staged.folder / f"lib/lib{standard[0]}.so")
    letters = "".join(spec.types[dtype]["blas"] for dtype in job.dtypes)
    found = judging.judge(
        judging.Judging(
            library,
            routines.chosen(",".join(spec.routines), letters),
            target.runner,
            tuple(target.verify_vlens) or (0,),
            threads=2,
            budget_s=0.0,
            jobs=job.jobs,
            unsafe=job.unsafe or job.author == offline.AUTHOR,
        ),
        lambda text: None,
    )
    for fault in found.findings:
        raise JobError(
            f"the library failed before the judge and was not installed: {fault.function}: {fault.fault}: "
            f"{fault.smallest}: {fault.detail}",
            hint="report it as a bug",
        )
    calls = sum(one.calls for one in found.functions)
    yield Note(f"{calls} calls of {len(found.functions)} routines passed the judge of BLAS libraries")

"""Judges the BLAS routines of a finished library before it is published."""

from __future__ import annotations

from collections.abc import Iterator

from tensorop.author import offline
from tensorop.commands import routines
from tensorop.errors import JobError
from tensorop.events import Event, Note, Phase
from tensorop.package.publish import Staged
from tensorop.search.task import JobContext
from tensorop.specs import products


def judged(whole: JobContext, staged: Staged) -> Iterator[Event]:
    """Judges each routine of the product, if it has some, at every VLEN. Raises JobError for a fault."""
    job, library = whole.job, routines.standard(whole.operator, staged.library)
    of = products.load(whole.operator).routines
    if library is None or len(of) < 2:  # one alone is verified as the operator
        return
    names = ",".join(of)
    yield Phase("routines", f"{names.replace(',', ', ')} before the judge of BLAS libraries")
    unsafe = job.unsafe or job.author == offline.AUTHOR
    found = routines.judged(library, names, whole.target, jobs=job.jobs, unsafe=unsafe)
    for fault in found.findings:
        raise JobError(
            f"the library failed before the judge and was not installed: {fault.function}: {fault.fault}: "
            f"{fault.smallest}: {fault.detail}",
            hint="report it as a bug",
        )
    calls = sum(one.calls for one in found.functions)
    yield Note(f"{calls} calls of {len(found.functions)} routines passed the judge of BLAS libraries")

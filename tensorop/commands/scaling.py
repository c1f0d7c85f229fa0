"""`bench --threads 1,2,4`: the same comparison at several numbers of threads, and what each adds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from tensorop.model.bench import Bench
from tensorop.report.threads import KEPT, record
from tensorop.store import durable


def bench_each(threads: Sequence[int], bench: Callable[[int], Bench]) -> tuple[Bench, ...]:
    """One comparison a number of threads, in their order; where several come to the same (a board model is of one core)
    it is made once."""
    found: list[Bench] = []
    for count in dict.fromkeys(threads):
        result = bench(count)
        found.append(result)
        if result.threads != count:
            break
    return tuple(found)


def keep(folder: Path, found: Sequence[Bench]) -> Path | None:
    """Writes several comparisons into a product, where its report finds them.

    None where `folder` is no product or there is one comparison alone. Raises JobError where it cannot be written.
    """
    place = folder / KEPT
    if len(found) == 1 or not place.parent.is_dir():
        return None
    return durable.write(place, json.dumps(record(found), indent=1, allow_nan=False))

"""`bench --compare`: reads shapes and layout of an older comparison, and shows both comparisons in a table."""

from __future__ import annotations

from rich.text import Text

from tensorop.cli import tables
from tensorop.commands.compare import IMPROVED, SAME, WORSE, Comparison
from tensorop.errors import UsageError
from tensorop.model.bench import Bench, Span
from tensorop.model.operator import Operator
from tensorop.space import problems

_STYLES = {IMPROVED: "green", SAME: "", WORSE: "bold red"}


def shapes(old: Bench) -> tuple[tuple[int, ...], ...]:
    """The shapes of the older comparison, each once."""
    return tuple(dict.fromkeys(tuple(row.dims.values()) for row in old.rows))


def layout(old: Bench, origin: str, operator: Operator) -> int:
    """The number of the older comparison's layout.

    Raises UsageError if the comparison has another operator, several layouts or an unknown one.
    """
    numbers = {problems.written(layout): number for number, layout in enumerate(operator.layouts)}
    found = {row.layout for row in old.rows}
    others = {row.op for row in old.rows} - {operator.name}
    if others or not found:
        got = ", ".join(sorted(others)) or "none"
        raise UsageError(
            f"{origin}: key 'results': expected results of {operator.name}, got {got}",
            hint="pass the output of `tensorop bench DIR --format json` for this library",
        )
    if len(found) == 1 and found <= set(numbers):
        return numbers[found.pop()]
    layouts = ", ".join(sorted(found))
    raise UsageError(
        f"{origin}: key 'results': expected one layout of {', '.join(numbers)}, got {layouts}",
        hint="choose the layout to compare, e.g. --layout 0",
    )


def show(found: Comparison) -> None:
    """Shows one row per place, then the counts and the rule for a change."""
    vlens = any(change.place.vlen for change in found.changes)
    places = ("shape", "dtype", "layout", *(["VLEN"] if vlens else []))
    table = tables.table(f"{found.platform}, {found.unit}: this run (new) and {found.old} (old)", places)
    for name in ("old", "new"):
        table.add_column(name, justify="right")
        table.add_column("interval", no_wrap=True, style="dim")
    table.add_column("change", justify="right")
    table.add_column("")
    for change in found.changes:
        place, style = change.place, _STYLES[change.verdict]
        table.add_row(
            place.shape,
            place.dtype,
            place.layout,
            *([str(place.vlen)] if vlens else []),
            tables.figure(change.old.value),
            _interval(change.old),
            tables.figure(change.new.value),
            _interval(change.new),
            Text(f"{change.ratio - 1:+.1%}", style),
            Text(change.verdict + (" (noisy)" if change.old.noisy or change.new.noisy else ""), style),
        )
    tables.console().print(table)
    counts = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in (IMPROVED, SAME, WORSE))
    tables.line(f"{counts}; geometric mean of new / old: {found.geomean:.3f}")
    beside = ", nor do the intervals of the ratios to the baseline" if found.unit == "GFLOP/s" else ""
    tables.line(
        f"a row counts as changed if it differs by more than {found.threshold:.1%} and the intervals do not "
        f"overlap{beside}"
    )
    for what, lacking in (("only in the old result", found.gone), ("only in the new result", found.added)):
        if lacking:
            tables.line(f"{what}: {'; '.join(map(str, lacking))}")
    for note in found.notes:
        tables.line(note)


def _interval(speed: Span) -> str:
    return "" if speed.low == speed.high else f"{tables.figure(speed.low)} - {tables.figure(speed.high)}"

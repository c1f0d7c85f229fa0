"""`bench --compare`: what is asked of an older comparison, and both side by side."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from tensorop.cli import screen, tables
from tensorop.commands import compare
from tensorop.errors import UsageError
from tensorop.model.comparison import IMPROVED, SAME, WORSE, Comparison, Figure, Recorded
from tensorop.model.operator import Operator
from tensorop.space import problems

_STYLES = {IMPROVED: "green", SAME: "", WORSE: "bold red"}


def shapes(old: Recorded) -> tuple[tuple[int, ...], ...]:
    """Those of the record, each once."""
    return tuple(dict.fromkeys(tuple(side for _, side in place.dims) for place in old.figures))


def layout(old: Recorded, operator: Operator) -> int:
    """The number of the layout that the record is of. Raises UsageError when it is of several or of none there is."""
    told = {problems.written(layout): number for number, layout in enumerate(operator.layouts)}
    found = {place.layout for place in old.figures}
    others = {place.op for place in old.figures} - {operator.name}
    if others or not found:
        got = ", ".join(sorted(others)) or "none"
        raise UsageError(
            f"{old.origin}: key 'results': expected figures of {operator.name}, got {got}",
            hint="give what `tensorop bench` printed of this library",
        )
    if len(found) == 1 and found <= set(told):
        return told[found.pop()]
    layouts = ", ".join(sorted(found))
    raise UsageError(
        f"{old.origin}: key 'results': expected one layout of {', '.join(told)}, got {layouts}",
        hint="give --layout with the number of the one to compare",
    )


def end(found: Comparison, format_: str, junit: Path | None) -> bool:
    """Shows the comparison and writes the JUnit file; whether something is worse."""
    if format_ == "json":
        screen.echo_json(found.to_json())
    else:
        show(found)
    if junit is not None:
        try:
            junit.write_text(compare.junit(found), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{junit} cannot be written: {error.strerror}", hint="give another --junit") from None
    return found.count(WORSE) > 0


def show(found: Comparison) -> None:
    """A row a place; below it the counts and what decided."""
    out = tables.console()
    vlens = any(change.place.vlen for change in found.changes)
    table = Table(title=f"{found.platform}, {found.unit}: now and in {found.old}", title_justify="left", box=None)
    for name in ("shape", "dtype", "layout", *(["VLEN"] if vlens else [])):
        table.add_column(name, no_wrap=True)
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
    out.print(table)
    counts = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in (IMPROVED, SAME, WORSE))
    out.print(Text(f"{counts}; {found.geomean:.3f} times as fast as then in geometric mean"))
    beside = " (nor do those of the ratios to a baseline of the same version)" if found.unit == "GFLOP/s" else ""
    out.print(Text(f"worse or improved: by more than {found.threshold:.1%}, and the intervals do not meet{beside}"))
    for what, places in (("not measured now", found.gone), ("not measured then", found.added)):
        if places:
            out.print(Text(f"{what}: {'; '.join(map(str, places))}"))
    for note in found.notes:
        out.print(Text(note))


def _interval(figure: Figure) -> str:
    return "" if figure.low == figure.high else f"{tables.figure(figure.low)} - {tables.figure(figure.high)}"

"""`bench --compare`: whether a library became slower since an older comparison was written down."""

from __future__ import annotations

from xml.etree import ElementTree

from tensorop.errors import UsageError
from tensorop.model.bench import Span
from tensorop.model.comparison import IMPROVED, SAME, WORSE, Change, Comparison, Figure, Place, Recorded
from tensorop.specs.printable import printable


def compare(old: Recorded, new: Recorded, threshold: float) -> Comparison:
    """Both records, matched by operator, dtype, dims, layout and VLEN.

    threshold: a share; a smaller change is no change. Raises UsageError when platform, unit, threads or board model
    differ, or nothing was measured in both.
    """
    check(old, new.platform, new.unit, new.model, new.threads)
    common = [place for place in new.figures if place in old.figures]
    if not common:
        raise UsageError(
            f"{old.origin}: none of its {len(old.figures)} results is of a shape, dtype and layout measured now",
            hint="give --shapes, --dtype and --layout as they were then",
        )
    notes: tuple[str, ...] = ()
    if old.model is None and old.cpu != new.cpu:
        notes = (f"measured on another CPU: then {old.cpu or 'unknown'}, now {new.cpu or 'unknown'}",)
    return Comparison(
        old.origin,
        new.platform,
        new.threads,
        new.unit,
        threshold,
        tuple(_change(old, new, place, threshold) for place in common),
        tuple(place for place in old.figures if place not in new.figures),
        tuple(place for place in new.figures if place not in old.figures),
        notes,
    )


def check(old: Recorded, platform: str, unit: str, model: tuple[str, int] | None, threads: int) -> None:
    """Raises UsageError with file, place and what was expected when the record is of something else."""

    def named(of: tuple[str, int] | None) -> str:
        return "no board model" if of is None else f"board model {of[0]} version {of[1]}"

    for key, then, now in (
        ("platform", old.platform, platform),
        ("model", named(old.model), named(model)),
        ("unit", old.unit, unit),
        ("threads", old.threads, threads),
    ):
        if then != now:
            raise UsageError(
                f"{old.origin}: key '{key}': expected {now}, got {then}",
                hint="only figures of the same platform, unit, threads and model version can be compared",
            )


def junit(comparison: Comparison) -> str:
    """The comparison as JUnit XML: a test a place; a failure where it is worse, skipped if it was not measured now."""
    worse = str(comparison.count(WORSE))
    total = str(len(comparison.changes) + len(comparison.gone))
    head = {"name": f"tensorop bench {comparison.platform}", "tests": total, "failures": worse, "errors": "0"}
    root = ElementTree.Element("testsuites", head)
    suite = ElementTree.SubElement(root, "testsuite", {**head, "skipped": str(len(comparison.gone)), "time": "0"})
    group = f"tensorop.{comparison.platform}"
    for change in comparison.changes:
        words = {"classname": group, "name": str(change.place), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", words)
        said = sentence(change, comparison.unit)
        if change.verdict == WORSE:
            ElementTree.SubElement(case, "failure", {"message": said, "type": "slower"}).text = said
        else:
            ElementTree.SubElement(case, "system-out").text = said
    for place in comparison.gone:
        case = ElementTree.SubElement(suite, "testcase", {"classname": group, "name": str(place), "time": "0"})
        ElementTree.SubElement(case, "skipped", {"message": "not measured now"})
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + printable(ElementTree.tostring(root, encoding="unicode")) + "\n"


def sentence(change: Change, unit: str) -> str:
    """`worse: 80.0 [79.0, 81.0], before 100 [99.0, 101] GFLOP/s (-20.0 %)`."""

    def told(figure: Figure) -> str:
        exact = figure.low == figure.high
        return f"{figure.value:.4g}" + ("" if exact else f" [{figure.low:.4g}, {figure.high:.4g}]")

    return f"{change.verdict}: {told(change.new)}, before {told(change.old)} {unit} ({change.ratio - 1:+.1%})"


def _change(old: Recorded, new: Recorded, place: Place, threshold: float) -> Change:
    before, now = old.figures[place], new.figures[place]
    verdicts = {_verdict(before, now, threshold)}
    # A machine that is slower today slows a baseline as well: a clock's change has to show beside it too.
    verdicts |= {_verdict(before.beside[b], now.beside[b], threshold) for b in before.beside if b in now.beside}
    return Change(place, before, now, verdicts.pop() if len(verdicts) == 1 else SAME)


def _verdict(before: Span, now: Span, threshold: float) -> str:
    ratio = now.value / before.value
    if ratio < 1 - threshold and now.high < before.low:
        return WORSE
    return IMPROVED if ratio > 1 + threshold and now.low > before.high else SAME

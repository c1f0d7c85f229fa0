"""What a run's journal says to whoever works on tuners, cost models and templates.

    python benchmarks/search_plots.py DIR [--out search.html] [--plugins OWN]

One page of plots: how soon each search was good, against its own trials in random order; the seconds of its trials by
step; how much each tunable moved the cost; what the cost models predict for shapes that were kept from them. The screen
gets the tables: halts of races, points that constraints refuse.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator, PercentFormatter

from tensorop.costs import model as cost_model
from tensorop.dispatch import choice, evidence
from tensorop.dispatch.choice import Also, Candidates, CostRow
from tensorop.errors import JobError
from tensorop.measure import statistics
from tensorop.measure.samples import objective
from tensorop.model.kernel import Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Samples, Stage
from tensorop.render import instantiate
from tensorop.report import drawing, roofline
from tensorop.report.drawing import COLOUR, SERIES
from tensorop.report.searches import random_order
from tensorop.space import problems
from tensorop.specs import operators, platforms
from tensorop.store import journal
from tensorop.store.history import History

NEAR = 0.95  # of the best point's speed
FEWEST_ORDERED = 5  # trials below which an order says nothing
FEWEST_FITTED = 12  # trials below which a forest says nothing
FEWEST_PREDICTED = 10
CLOSE = 0.1  # a prediction that is off by no more is close
SHOWN = 400  # predictions that a plot has
STYLE = Path(drawing.__file__).with_name("style.css.j2")


@dataclass(frozen=True)
class Search:
    """One stage of one dtype."""

    stage: Stage
    dtype: str
    trials: Sequence[Finished]
    bound: float | None  # the cost where a core does nothing but multiply-adds

    @property
    def title(self) -> str:
        return f"{self.stage.value}, {self.dtype}"

    def costs(self) -> list[float | None]:
        """The best so far after each trial."""
        best: Finished | None = None
        found: list[float | None] = []
        for finished in self.trials:
            if cost_of(finished) is not None and (best is None or finished.rank < best.rank):
                best = finished
            found.append(best.score.cost if best else None)
        return found


@dataclass(frozen=True)
class Halt:
    """A halt of a race, or its end."""

    problems: int
    came: int  # trials that passed up to here
    ended: int  # those of them that were measured on no more
    bars: Mapping[int, float] = field(default_factory=dict)  # by VLEN, that the last trial met
    tau: float | None = None  # Kendall's, of the order here and on all problems; None below FEWEST_ORDERED


@dataclass(frozen=True)
class Predicted:
    """What models predict that were fitted without a shape, of one dtype and VLEN (0: one width)."""

    dtype: str
    vlen: int
    points: Sequence[tuple[str, str, float, float]]  # problem, template, measured, predicted: costs of 1000 flops

    @property
    def off(self) -> np.ndarray:
        return np.abs(np.log([predicted / measured for _, _, measured, predicted in self.points]))

    @property
    def error(self) -> float:
        """The factor that the median prediction is off by, less 1."""
        return math.expm1(float(np.median(self.off)))

    @property
    def close(self) -> float:
        """The share of predictions within 10 %."""
        return float(np.mean(self.off <= math.log1p(CLOSE)))

    @property
    def ordered(self) -> float:
        """How often, of two variants on one problem, the better one is predicted to be; NaN without such a pair."""
        by_problem: dict[str, list[tuple[float, float]]] = {}
        for problem, _, measured, predicted in self.points:
            by_problem.setdefault(problem, []).append((measured, predicted))
        pairs = (pair for alike in by_problem.values() for pair in itertools.combinations(alike, 2))
        right = [(a[0] < b[0]) == (a[1] < b[1]) for a, b in pairs if a[0] != b[0]]
        return sum(right) / len(right) if right else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR", help="a finished product, or the --out of a run")
    parser.add_argument("--out", type=Path, default=Path("search.html"), help="the page")
    parser.add_argument("--plugins", type=Path, nargs="*", default=[], help="plug-in folders of the product")
    given = parser.parse_args()
    history = journal.read(given.folder)
    operator = operators.load(str(history.facts["operator"]), tuple(given.plugins))
    platform = platforms.load(str(history.facts["platform"]), tuple(given.plugins))
    found, predictions = searches(platform, history), left_out(operator, platform, history)
    given.out.write_text(page(found, probes(history), predictions), encoding="utf-8")
    for line in (*tables(found, predictions), *refusals(operator, platform, history)):
        print(line)
    print(given.out)


def page(found: Sequence[Search], probed: Mapping[str, float], predictions: Sequence[Predicted]) -> str:
    """HTML with the style of a report."""
    drawn = {
        "How soon it was good": anytime([one for one in found if one.stage is not Stage.SINGLE_VLEN]),
        "Where the seconds went": steps(found, probed),
        "What moved the cost": importance(found),
        "Predicted and measured": predicted(predictions),
    }
    shown = "".join(f"<h2>{title}</h2><figure>{svg}</figure>\n" for title, svg in drawn.items() if svg)
    return f"<!doctype html><meta charset=utf-8><style>\n{STYLE.read_text()}</style>\n{shown}"


def tables(found: Sequence[Search], predictions: Sequence[Predicted]) -> Iterator[str]:
    for search in found:
        near = near_best(search.trials)
        soon = f": within 5 % of its best after {near[0]} (in random order {near[1]:.1f})" if near else ""
        yield f"{search.title}: {len(search.trials)} trials{soon}"
        for halt in halts(search.trials):
            bars = ", ".join(f"{vlen}: {cost:.3g}" for vlen, cost in halt.bars.items())
            tau = "" if halt.tau is None else f", tau {halt.tau:.2f}"
            yield f"  after {halt.problems} problems: {halt.came} came, {halt.ended} ended{tau} {bars}"
    for one in predictions:
        errors = f"median off by {one.error:.1%}, {one.close:.0%} within 10 %, {one.ordered:.0%} of pairs ordered"
        yield f"predicted, {one.dtype} at VLEN {one.vlen}: {errors}"


def searches(platform: Platform, history: History) -> list[Search]:
    every = [item for item in history.replay() if isinstance(item, Finished)]
    found = []
    for stage, dtype in dict.fromkeys((one.trial.stage, one.trial.dtype) for one in every):
        mine = [one for one in every if (one.trial.stage, one.trial.dtype) == (stage, dtype)]
        units = {samples.unit for one in mine for samples in one.score.per_problem.values()}
        bound = roofline.bound(platform, dtype, None, ", ".join(units)) if stage is not Stage.SINGLE_VLEN else None
        found.append(Search(stage, dtype, mine, bound))
    return found


def cost_of(finished: Finished) -> float | None:
    return finished.score.cost if finished.outcome.ok else None


# --- how soon it was good -----------------------------------------------------------------------------------------


def near_best(ended: Sequence[Finished]) -> tuple[int, float] | None:
    """After how many trials the search first had one within 5 % of its best, measured on as many problems, and after
    how many its trials in random order have one on average."""
    passed = [one for one in ended if cost_of(one) is not None]
    best = min(passed, key=lambda one: one.rank, default=None)
    if best is None or not best.score.cost:
        return None
    most, on = best.score.cost / NEAR, len(best.score.per_problem)
    alike = [(cost := cost_of(f)) is not None and cost <= most and len(f.score.per_problem) == on for f in ended]
    return alike.index(True) + 1, (len(ended) + 1) / (sum(alike) + 1)


def halts(ended: Sequence[Finished]) -> list[Halt]:
    """Every halt of a race, and its end; none where trials did not race."""
    from scipy.stats import kendalltau

    raced = [f for f in ended if f.trial.race and f.outcome.ok]
    counts = Counter(len(f.score.per_problem) for f in raced)
    whole = [f.score.per_problem for f in raced if len(f.score.per_problem) == max(counts)]
    out = []
    for number in sorted({*counts, *(rung.problems for f in raced for rung in f.trial.race)}):
        bars = [dict(rung.bars) for f in raced for rung in f.trial.race if rung.problems == number and rung.bars]
        came = sum(n for at, n in counts.items() if at >= number)
        tau = math.nan
        if len(whole) >= FEWEST_ORDERED and number < max(counts):
            tau = float(kendalltau([_mean(w, number) for w in whole], [_mean(w) for w in whole]).statistic)
        out.append(Halt(number, came, counts[number], bars[-1] if bars else {}, tau if math.isfinite(tau) else None))
    return out


def _mean(figures: Mapping[str, Samples], first: int | None = None) -> float:
    return statistics.geomean(samples.value for samples in list(figures.values())[:first])


def anytime(found: Sequence[Search]) -> str:
    """The best so far over trials and over their seconds, as a share of what multiply-adds allow (else of the best)."""
    shown = [one for one in found if sum(cost_of(f) is not None for f in one.trials) > 1]
    if not shown:
        return ""
    figure, panels = drawing.panels(2 * len(shown), 2.1)
    for search, over in zip(shown, zip(panels[::2], panels[1::2], strict=True), strict=True):
        best = search.costs()
        least = search.bound or min(filter(None, best))
        spent = list(itertools.accumulate(sum(f.seconds.values()) for f in search.trials))
        counts = list(range(1, len(best) + 1))
        even = [spent[-1] * count / len(best) for count in counts]  # in random order all take the mean
        for axes, xs, random_xs in ((over[0], counts, counts), (over[1], spent, even)):
            for costs, at, colour, name in (
                (random_order(search.trials), random_xs, "two", "its trials in random order, expected"),
                (best, xs, "ink", "the search"),
            ):
                line = [(x, least / y) for x, y in zip(at, costs, strict=True) if y]
                axes.step(*zip(*line, strict=True), where="post", color=COLOUR[colour], linewidth=1.4, label=name)
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0, top=1.05)
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        drawing.labelled(over[0], "trials", "of peak" if search.bound else "of its best", search.title, "y")
        over[0].xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, min_n_ticks=1))
        drawing.labelled(over[1], "seconds of trials", grid="y")
    drawing.legend(figure, *panels[0].get_legend_handles_labels())
    return drawing.svg(figure, "anytime")


# --- where the seconds went ---------------------------------------------------------------------------------------


def probes(history: History) -> dict[str, float]:
    """Seconds of the variants measured in the library, by dtype."""
    found: Counter[str] = Counter()
    for name, data in history.notes:
        if name == evidence.NOTE:
            found[data["dtype"]] += data["seconds"]
    return dict(found)


def steps(found: Sequence[Search], measured: Mapping[str, float]) -> str:
    """A bar a search: the seconds of its trials by step."""
    bars: dict[str, Counter[str]] = {}
    for search in found:
        bars[search.title] = Counter()
        for finished in search.trials:
            bars[search.title].update(finished.seconds)
    bars |= {f"probes, {dtype}": Counter({"measure": seconds}) for dtype, seconds in measured.items()}
    names = list(dict.fromkeys(name for bar in bars.values() for name, seconds in bar.items() if seconds))
    if not names:
        return ""
    figure, (axes,) = drawing.panels(1, 0.75 + 0.24 * len(bars))
    left = [0.0] * len(bars)
    for name, colour in zip(names, SERIES, strict=False):
        widths = [float(bar[name]) for bar in bars.values()]
        axes.barh(range(len(bars)), widths, left=left, height=0.62, color=COLOUR[colour], label=name, linewidth=0)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(bars)), list(bars))
    axes.set_ylim(len(bars) - 0.4, -0.6)
    drawing.labelled(axes, "seconds of trials", grid="x")
    drawing.legend(figure, *axes.get_legend_handles_labels())
    return drawing.svg(figure, "steps")


# --- what moved the cost ------------------------------------------------------------------------------------------


def shares(ended: Sequence[Finished], of_kernels: bool) -> tuple[float, dict[str, float]]:
    """R^2 out of bag, and for each tunable its share of the permutation importance.

    Extremely randomised trees (Geurts, Ernst and Wehenkel 2006) on the logarithm of the cost; a column's importance
    is the loss of R^2 when it is shuffled (Breiman 2001). A tunable that was never varied has no share; one that a
    template does not have counts as a value of its own.
    """
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.inspection import permutation_importance

    kernels = [f.trial.variant.kernel for f in ended]
    arms = [kernel.template.name if of_kernels else str(kernel) for kernel in kernels]
    rows = [{"template": arm, **f.trial.point} for arm, f in zip(arms, ended, strict=True)]
    names = sorted({name for row in rows for name in row}, key=lambda name: (name != "template", name))
    columns = {name: _numbers([row.get(name) for row in rows]) for name in names}
    varied = [name for name in names if len(set(columns[name])) > 1]
    if not varied:
        return 0.0, {}
    x = np.array([columns[name] for name in varied], dtype=float).T
    y = np.log([f.score.cost or math.nan for f in ended])
    forest = ExtraTreesRegressor(200, bootstrap=True, oob_score=True, random_state=0)
    forest.fit(x, y)
    found = np.maximum(permutation_importance(forest, x, y, n_repeats=10, random_state=0).importances_mean, 0)
    total = float(found.sum()) or 1.0
    each = {name: float(value) / total for name, value in zip(varied, found, strict=True)}
    return float(forest.oob_score_), dict(sorted(each.items(), key=lambda item: -item[1]))


def _numbers(values: Sequence[int | str | None]) -> list[float]:
    """Numbers as they are, -1 for an absent tunable, words by their order."""
    if all(isinstance(v, int) or v is None for v in values):
        return [-1.0 if v is None else float(v) for v in values]
    words = sorted({str(v) for v in values})
    return [float(words.index(str(v))) for v in values]


def importance(found: Sequence[Search]) -> str:
    """A bar a tunable, a panel a search."""
    shown = []
    for search in found:
        passed = [f for f in search.trials if cost_of(f)]
        if len(passed) >= FEWEST_FITTED:
            score, of_each = shares(passed, search.stage.of_kernels)
            shown += [(f"{search.title}: {len(passed)} trials, R² {score:.2f} out of bag", of_each)] if of_each else []
    if not shown:
        return ""
    tallest = max(len(of_each) for _, of_each in shown)
    figure, panels = drawing.panels(len(shown), 0.75 + 0.2 * tallest)
    for axes, (title, of_each) in zip(panels, shown, strict=True):
        axes.barh(range(len(of_each)), list(of_each.values()), height=0.62, color=COLOUR["one"], linewidth=0)
        axes.set_yticks(range(len(of_each)), list(of_each))
        axes.set(ylim=(tallest - 0.4, -0.6), xlim=(0, 1))
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        drawing.labelled(axes, "", title=title, grid="x", size=8.5)
    return drawing.svg(figure, "importance")


# --- predicted and measured ---------------------------------------------------------------------------------------


def left_out(operator: Operator, platform: Platform, history: History) -> list[Predicted]:
    """For each dtype and VLEN: predictions of shapes that were left out, in five parts, as the choice's regret is
    found, of the variants that were measured in the library (where none were, of every blocking)."""
    out = []
    for dtype in history.facts.get("dtypes", ()):
        by_id = _variants(dtype, history)
        figures = {name: _figures(operator, dtype, ended) for name, (_, ended) in by_id.items()}
        noted = [data for name, data in history.notes if name == evidence.NOTE and data["dtype"] == dtype]
        latest = [data for data in noted if data["variants"] == noted[-1]["variants"]]
        ids = [one["id"] for one in latest[0]["variants"]] if latest else list(by_id)
        variants = tuple(by_id[name][0] for name in ids)
        rows = [row for data in latest for row in data["rows"]]
        samples = [one for of_one in figures.values() for one in of_one.values()]
        vlens = {int(row["vlen"]) for row in rows} or {vlen for one in samples for vlen in one.by_vlen or (0,)}
        by_clock = any(one.unit == "ns" for one in samples) and rows  # apart in time, trials say little of each other
        for vlen in sorted(vlens):
            costs = {} if by_clock else _costs([figures[name] for name in ids], vlen)
            for row in rows:
                if row["vlen"] == vlen:
                    costs[operator.reference.problem(dtype, row["dims"], row["options"])] = tuple(row["costs"])
            also = [
                Also(by_id[name][0], tuple(of), tuple(objective(one, vlen) for one in of.values()))
                for name, of in figures.items()
                if name not in ids and not by_clock
            ]
            subject = Candidates(operator, platform, dtype, variants, vlen)
            points = list(_points(subject, [CostRow(p, each) for p, each in costs.items()], also))
            if len(points) >= FEWEST_PREDICTED:
                out.append(Predicted(dtype, vlen, points))
    return out


def _variants(dtype: str, history: History) -> dict[str, tuple[Variant, list[Finished]]]:
    """By id, those that passed for all VLENs, with their trials."""
    found: dict[str, tuple[Variant, list[Finished]]] = {}
    for stage in (Stage.BLOCKING, Stage.FINALISTS, Stage.SMALLEST):
        for finished in history.ended((stage, dtype, 0)):
            if finished.outcome.ok:
                variant = finished.trial.variant
                found.setdefault(variant.id, (variant, []))[1].append(finished)
    return found


def _figures(operator: Operator, dtype: str, ended: Sequence[Finished]) -> dict[Problem, Samples]:
    by_label = {label: samples for finished in ended for label, samples in finished.score.per_problem.items()}
    return {p: samples for label, samples in by_label.items() if (p := _problem(operator, dtype, label)) is not None}


def _problem(operator: Operator, dtype: str, label: str) -> Problem | None:
    """The one of a label, in one of the operator's layouts."""
    shape = operator.shapes.of(label.split(f" {dtype}")[0])
    each = (problems.of(operator, dtype, shape, layout) for layout in range(len(operator.layouts)))
    return next((problem for problem in each if problem.label == label), None)


def _costs(of_each: Sequence[Mapping[Problem, Samples]], vlen: int) -> dict[Problem, tuple[float | None, ...]]:
    every = dict.fromkeys(problem for of_one in of_each for problem in of_one)
    return {p: tuple(objective(of[p], vlen) if p in of else None for of in of_each) for p in every}


def _points(
    subject: Candidates, measured: Sequence[CostRow], also: Sequence[Also]
) -> Iterator[tuple[str, str, float, float]]:
    samples = choice.fit_data(subject, measured, also) if measured else None
    for part in range(choice.CV_PARTS) if samples else ():
        assert samples is not None
        rows = [row for row, of_row in enumerate(samples.parts) if of_row == part]
        if not rows or len(rows) == len(measured):
            continue
        of_each = [terms[rows] for terms in samples.terms]
        predictions, _ = cost_model.predict(samples.fitted(part), of_each, samples.places[rows])
        for number, logs in enumerate(predictions.T):
            for row, log in zip(rows, logs, strict=True):
                cost, problem = measured[row].costs[number], measured[row].problem
                if cost is not None:
                    scale = 1e3 / float(subject.operator.reference.work(problem))
                    template = subject.variants[number].template.name
                    yield problem.label, template, scale * cost, scale * math.exp(log)


def predicted(found: Sequence[Predicted]) -> str:
    """A dot a variant and problem; a panel a dtype and VLEN."""
    if not found:
        return ""
    templates = sorted({template for one in found for _, template, _, _ in one.points})
    colours = dict(zip(templates, itertools.cycle(SERIES), strict=False))
    figure, panels = drawing.panels(len(found), 2.6)
    for axes, one in zip(panels, found, strict=True):
        shown = one.points[:: math.ceil(len(one.points) / SHOWN)]
        for template in dict.fromkeys(template for _, template, _, _ in shown):
            mine = [(cost, prediction) for _, of, cost, prediction in shown if of == template]
            colour = COLOUR[colours[template]]
            xs, ys = zip(*mine, strict=True)
            axes.plot(xs, ys, "o", color=colour, markersize=3, alpha=0.6, markeredgewidth=0, label=template)
        axes.set(xscale="log", yscale="log")
        ends = [side for _, _, *sides in shown for side in sides]
        axes.plot([min(ends), max(ends)], [min(ends), max(ends)], color=COLOUR["muted"], linewidth=0.9)
        drawing.plain_ticks(axes, "xy")
        title = one.dtype + (f", VLEN {one.vlen}" if one.vlen else "")
        drawing.labelled(axes, "measured, for 1000 flops", "predicted", title)
    dots = {label: dot for axes in panels for dot, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    drawing.legend(figure, list(dots.values()), list(dots))
    return drawing.svg(figure, "predicted")


# --- what constraints refuse --------------------------------------------------------------------------------------


def refusals(operator: Operator, platform: Platform, history: History) -> Iterator[str]:
    """For each dtype and template: its legal points, of how many, and what each constraint took."""
    for dtype in history.facts.get("dtypes", ()):
        for template in history.templates.values():
            if missing := instantiate.missing_primitives(platform, template, dtype):
                yield f"{dtype} {template.name}: no point, {platform.name} lacks {', '.join(missing)}"
                continue
            try:
                space = instantiate.micro_space(platform, template, dtype)
            except JobError as error:
                yield f"{dtype} {template.name}: no point, {error.message}"
                continue
            yield f"{dtype} {template.name}: {space.size} of {space.product} points are legal"
            for refusal in space.refusals():
                yield f"  {refusal.points}: {refusal.constraint.reason} ({refusal.constraint.must})"


if __name__ == "__main__":
    main()

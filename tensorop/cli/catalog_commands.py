"""`platforms`, `primitives`, `operators`, `tuners`, `policies`: commands that list, show and check them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click

from tensorop.author import offline, policies
from tensorop.cli import screen, tuners_bench
from tensorop.cli.command import Format, Plugins, Runner, command, examples
from tensorop.commands import check_operator, check_platform, check_primitives, probe_platform
from tensorop.errors import SpecError
from tensorop.model.operator import Operator
from tensorop.model.option import Option
from tensorop.model.platform import Platform
from tensorop.space import Space, problems, strategy
from tensorop.specs import catalog, leftovers, operators, platforms, primitives
from tensorop.specs.primitives import SetSpec

_Name = Annotated[str, Option(positional=True, metavar="NAME")]


@dataclass(frozen=True)
class Catalog:
    """A group of commands for one kind of entry, such as platforms."""

    name: str
    help: str
    folder: str  # contains the entries
    example: str  # name of an entry, for the help texts
    load: Callable[[str, tuple[Path, ...]], Any]  # (name, plug-in folders) -> entry
    record: Callable[[Any], Any]  # entry -> value for `show --format json`
    show: Callable[[Any], Iterable[str]]  # entry -> lines of text
    check: Callable[..., Iterable[Any]]  # (entry, runner=, plugins=) -> findings
    check_help: str


def group_of(kind: Catalog) -> click.Group:
    """The commands `list`, `show` and `check`, with `probe` for platforms and `bench` for tuners."""
    say = f"{kind.name} list", f"{kind.name} show {kind.example}", f"{kind.name} check {kind.example}"
    group = click.Group(kind.name, help=kind.help, epilog=examples(*say))

    @command(say[0], f"{say[0]} --format json", name="list", help=f"List the {kind.name}, each with a description.")
    def list_(plugins: Plugins = (), format_: Format = "table") -> None:
        broken, found = [], {}
        for name in catalog.names(kind.folder, plugins):
            try:
                found[name] = kind.load(name, plugins).description
            except SpecError as error:  # the other entries are listed all the same
                broken.append(error)
        if format_ == "json":
            screen.echo_json([{"name": name, "description": text} for name, text in found.items()])
        for name, text in found.items() if format_ == "table" else ():
            screen.echo(f"{name:<16} {text}")
        if broken:
            raise SpecError("\nerror: ".join(error.message for error in broken), hint=broken[-1].hint)

    @command(say[1], f"{say[1]} --format json", name="show", help=f"Show one of the {kind.name} in full.")
    def show_(name: _Name, plugins: Plugins = (), format_: Format = "table") -> None:
        loaded = kind.load(name, plugins)
        if format_ == "json":
            screen.echo_json(kind.record(loaded), default=str)
        else:
            for line in kind.show(loaded):
                screen.echo(line)

    @command(say[2], f"{say[2]} --format json", name="check", help=kind.check_help)
    def check_(name: _Name, plugins: Plugins = (), runner: Runner = None, format_: Format = "table") -> None:
        lines, passed = [], dict[str, list[Any]]()
        for line in kind.check(kind.load(name, plugins), runner=runner, plugins=plugins):
            lines.append({"ok": (ok := getattr(line, "ok", True)), "text": str(line)})
            if ok and getattr(line, "kind", ""):
                passed.setdefault(line.kind, []).append(line)
            elif format_ == "table":
                screen.echo(str(line))
        screen.answer(format_, lines, lambda: _summarize(passed), ok=all(line["ok"] for line in lines))

    for one in (list_, show_, check_):
        group.add_command(one)
    if kind.name == "platforms":
        group.add_command(_probe)
    if kind.name == "tuners":
        group.add_command(tuners_bench.bench)
    return group


def _summarize(passed: Mapping[str, Sequence[Any]]) -> None:
    """One line for each kind of check that passed. Each finding of a kind has `summary(count)`."""
    for lines in passed.values():
        screen.echo(str(lines[0]) if len(lines) == 1 else lines[0].summary(len(lines)))
    if any(len(lines) > 1 for lines in passed.values()):
        screen.echo("--format json lists every check")


def _platform(platform: Platform) -> Any:
    levels = {"modelled_caches": platform.modelled_caches, "not_modelled_caches": platform.unmodelled_caches}
    record = {**dataclasses.asdict(platform), **levels, "primitives": [one.name for one in platform.primitives]}
    record.pop("whole")
    return json.loads(json.dumps(record, default=dict))


def _show_primitives(spec: SetSpec) -> Iterator[str]:
    yield f"{spec.name}: {spec.description}"
    for setting, values in spec.settings.items():
        yield f"setting {setting}: {', '.join(map(str, values))}"
    for primitive, entry in spec.primitives.items():
        yield f"\n{primitive}({', '.join(entry.args)}) -> {entry.returns}: {entry.meaning}"
        texts = {"": entry.c} if isinstance(entry.c, str) else entry.c
        for dtype, text in texts.items():
            yield f"    {dtype + ': ' if dtype else ''}{text}"
        for condition in entry.preconditions:
            yield f"    requires {condition}"
        if entry.ulp is not None:
            yield f"    within {entry.ulp:g} ulp of its meaning"
    for name, collective in spec.collectives.items():
        template = f"<{collective.template}>" if collective.template else ""
        args = ", ".join(collective.args)
        yield f"\n{name}{template}({args}) -> {collective.returns}, by a {collective.group}"
        yield f"    {collective.meaning.strip()}"
        yield f"    {collective.c.strip()}"


def _operator(operator: Operator) -> Any:
    return {
        "name": operator.name,
        "description": operator.description,
        "dims": operator.dims,
        "attributes": dict(operator.shapes.attributes),
        "dtypes": operator.dtypes,
        "layouts": [dict(layout) for layout in operator.layouts],
        "suites": {suite: [*map(operator.shapes.text, shapes)] for suite, shapes in operator.suites.items()},
        "templates": [
            {"name": template.name, "strategy": template.strategy.strip(), "tunables": dict(template.tunables)}
            for template in offline.templates(operator.folder, operator.name, operator.added)
        ],
    }


def _show_operator(operator: Operator) -> Iterator[str]:
    yield f"{operator.name}: {operator.description}"
    usual = [f"{name} (default {value})" for name, value in operator.shapes.attributes.items()]
    attributes = f"; attributes {', '.join(usual)}" if usual else ""
    yield f"dims {', '.join(operator.dims)}{attributes}; dtypes {', '.join(operator.dtypes)}"
    yield f"layouts {problems.numbered(operator)}"
    for template in offline.templates(operator.folder, operator.name, operator.added):
        yield f"\ntemplate {template.name}: {template.strategy.strip()}"
        for tunable, values in template.tunables.items():
            yield f"    {tunable}: {', '.join(map(str, values))}"
        for constraint in template.constraints:
            yield f"    {constraint.must}: {constraint.reason}"
    for suite, shapes in operator.suites.items():
        yield f"\nsuite {suite}: {' '.join(map(operator.shapes.text, shapes))}"


def _check_operator(operator: Operator, runner: str | None, plugins: tuple[Path, ...]) -> Iterable[Any]:
    for remark in leftovers.remarks(plugins):
        screen.echo(f"note: {remark}")
    yield from check_operator.check(operator, runner, plugins)


def _check_tuner(tuner: strategy.Tuner, runner: str | None, plugins: tuple[Path, ...]) -> Iterator[str]:
    space = Space.of({"x": tuple(range(6)), "y": (1, 2, 4)}, (), {})
    search = tuner.make(space, seed=0)
    seen = set()
    while points := search.ask():
        for point in points:
            if point in seen or point not in space:
                wrong = "twice" if point in seen else "outside the space"
                raise click.ClickException(f"tuner {tuner.name} proposed the configuration {point} {wrong}")
            seen.add(point)
            search.tell(point, float(1 + abs(int(point["x"]) - 3) * int(point["y"])))
    yield f"{tuner.name}: proposed {len(seen)} of {space.size} configurations, each once"


_ProbeFormat = Annotated[
    str,
    Option("Print the file, or one JSON value with its text.", example="json", choices=("yaml", "json"), name="format"),
]


@command("platforms probe > mine.yaml", "platforms probe ssh://me@board --name board", name="probe")
def _probe(
    target: Annotated[str, Option(metavar="[native|ssh://HOST]", positional=True)] = "native",
    name: Annotated[str | None, Option("Give the platform this name.", "NAME", "board")] = None,
    format_: _ProbeFormat = "yaml",
) -> None:
    """Print a platform file that describes this machine or a board."""
    text = probe_platform.probe(target, name)
    screen.echo(json.dumps({"file": text}) + "\n" if format_ == "json" else text, nl=False)


CATALOGS = (
    Catalog(
        "platforms", "List, show, check or probe platforms: what you tune for.", "platforms", "rvv",
        platforms.load, _platform, lambda platform: [json.dumps(_platform(platform), indent=2)], check_platform.check,
        "Check a platform file against its target: compile, run and measure there, and print what agrees.",
    ),
    Catalog(
        "primitives", "List, show or check the primitives of instruction sets.", "primitives", "rvv",
        primitives.load, SetSpec.model_dump, _show_primitives,
        lambda spec, runner, plugins: check_primitives.check(spec.name, plugins=plugins),
        "Compile every primitive, run it on the target and compare the result with its stated meaning.",
    ),
    Catalog(
        "operators", "List, show or check operators: what a library computes.", "templates", "gemm",
        operators.load, _operator, _show_operator, _check_operator,
        "Check an operator's folder: read every file, call its reference and build a library with one configuration.",
    ),
    Catalog(
        "tuners", "List, show, check or compare search strategies.", "tuners", "bayes", strategy.load,
        lambda tuner: {"name": tuner.name, "description": tuner.description},
        lambda tuner: [f"{tuner.name}: {tuner.description}"], _check_tuner,
        "Check a search strategy on a small space: it must propose every configuration once and then stop.",
    ),
    Catalog(
        "policies", "List, show or check policies, which choose what a language model is asked for.", "policies",
        "coverage",
        policies.load, lambda policy: {"name": policy.name, "description": policy.description},
        lambda policy: [f"{policy.name}: {policy.description}"],
        lambda policy, runner, plugins: policies.check(policy),
        "Check a policy on a made-up search: each choice must be legal, and the same for the same state.",
    ),
)  # fmt: skip

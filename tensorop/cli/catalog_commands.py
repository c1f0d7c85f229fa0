"""`platforms`, `primitives`, `operators`, `tuners`: list, show, check."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from tensorop import instantiate
from tensorop.author import offline
from tensorop.commands import check_platform, check_primitives, probe_platform
from tensorop.errors import SpecError, unknown_name
from tensorop.space import Space
from tensorop.specs import catalog, operators, platforms, primitives
from tensorop.tuner import strategy

plugins_option = click.option(
    "--plugins",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Extra plug-in folder.",
)


def unknown_command(name: str, known: list[str]) -> NoReturn:
    raise unknown_name("command or operator", name, known)


def add_to(group: click.Group) -> None:
    """Adds the four groups."""
    group.add_command(_group("platforms", "Where kernels run.", _show_platform, _check_platform))
    group.add_command(_group("primitives", "The words of an instruction set.", _show_primitives, _check_primitives))
    group.add_command(_group("operators", "What is computed.", _show_operator, _check_operator))
    group.add_command(_group("tuners", "Search strategies.", _show_tuner, _check_tuner))


def _group(kind: str, text: str, show: Callable[..., None], check: Callable[..., None]) -> click.Group:
    group = click.Group(kind, help=text)
    folder = "templates" if kind == "operators" else kind

    @group.command("list")
    @plugins_option
    def list_(plugins: tuple[Path, ...]) -> None:
        """The names there are."""
        broken = []
        for name in catalog.names(folder, plugins):
            try:
                click.echo(f"{name:<16} {_describe(folder, name, plugins)}")
            except SpecError as error:  # the others are there all the same
                broken.append(error)
        if broken:
            raise SpecError("\nerror: ".join(error.message for error in broken), hint=broken[-1].hint)

    @group.command("show")
    @click.argument("name")
    @plugins_option
    def show_(name: str, plugins: tuple[Path, ...]) -> None:
        """One of them, in full."""
        show(name, plugins)

    @group.command("check")
    @click.argument("name")
    @plugins_option
    @click.option("--runner", default=None, help="native, qemu or ssh://host; by default the platform's own.")
    def check_(name: str, plugins: tuple[Path, ...], runner: str | None) -> None:
        """Holds it against what it claims."""
        check(name, plugins, runner)

    if kind == "platforms":
        group.add_command(_probe)
    return group


def _describe(folder: str, name: str, plugins: tuple[Path, ...]) -> str:
    if folder == "platforms":
        return platforms.load(name, plugins).description
    if folder == "primitives":
        return primitives.load(name, plugins).description
    if folder == "templates":
        return operators.load(name, plugins).description
    return strategy.load(name, plugins).description


def _show_platform(name: str, plugins: tuple[Path, ...]) -> None:
    platform = platforms.load(name, plugins)
    click.echo(json.dumps(dataclasses.asdict(platform), indent=2, default=dict))


def _show_primitives(name: str, plugins: tuple[Path, ...]) -> None:
    spec = primitives.load(name, plugins)
    click.echo(f"{spec.name}: {spec.description}")
    for setting, values in spec.settings.items():
        click.echo(f"setting {setting}: {', '.join(map(str, values))}")
    for word, entry in spec.words.items():
        click.echo(f"\n{word}({', '.join(entry.args)}) -> {entry.returns}: {entry.meaning}")
        texts = {"": entry.c} if isinstance(entry.c, str) else entry.c
        for dtype, text in texts.items():
            click.echo(f"    {dtype + ': ' if dtype else ''}{text}")
        for condition in entry.preconditions:
            click.echo(f"    requires {condition}")


def _show_operator(name: str, plugins: tuple[Path, ...]) -> None:
    operator = operators.load(name, plugins)
    click.echo(
        f"{operator.name}: {operator.description}\ndims {', '.join(operator.dims)}; dtypes {', '.join(operator.dtypes)}"
    )
    for draft in offline.drafts(operator.folder, operator.name):
        click.echo(f"\ndraft {draft.name}: {draft.strategy.strip()}")
        for tunable, values in draft.tunables.items():
            click.echo(f"    {tunable}: {', '.join(map(str, values))}")
        for constraint in draft.constraints:
            click.echo(f"    {constraint.must}: {constraint.reason}")
    for suite, shapes in operator.suites.items():
        click.echo(f"\nsuite {suite}: {' '.join('x'.join(map(str, shape)) for shape in shapes)}")


def _show_tuner(name: str, plugins: tuple[Path, ...]) -> None:
    tuner = strategy.load(name, plugins)
    click.echo(f"{tuner.name}: {tuner.description}")
    for option, (text, default) in tuner.options.items():
        click.echo(f"    {option} = {default}: {text}")


def _check_platform(name: str, plugins: tuple[Path, ...], runner: str | None) -> None:
    _conclude(check_platform.check(platforms.load(name, plugins), runner=runner, plugins=plugins))


def _check_primitives(name: str, plugins: tuple[Path, ...], runner: str | None) -> None:
    _conclude(check_primitives.check(name, plugins=plugins))


def _check_operator(name: str, plugins: tuple[Path, ...], runner: str | None) -> None:
    """Every draft must read, and have legal points on every platform that knows its words."""
    operator = operators.load(name, plugins)
    for platform_name in catalog.names("platforms", plugins):
        platform = platforms.load(platform_name, plugins)
        for draft in offline.drafts(operator.folder, operator.name):
            for dtype in operator.dtypes:
                missing = instantiate.missing_words(platform, draft, dtype, plugins)
                if missing:
                    click.echo(
                        f"{platform_name} {dtype} {draft.name}: not for this platform (lacks {', '.join(missing)})"
                    )
                    continue
                space: Space = instantiate.micro_space(operator, platform, draft, dtype, plugins)
                click.echo(f"{platform_name} {dtype} {draft.name}: {space.size} legal points of {space.product}")


def _check_tuner(name: str, plugins: tuple[Path, ...], runner: str | None) -> None:
    """Runs it to the end of a small space: no point twice, none illegal, and an end."""
    tuner = strategy.load(name, plugins)
    space = Space.of({"x": tuple(range(6)), "y": (1, 2, 4)}, (), {})
    search = tuner.make(space, seed=0)
    seen = set()
    while points := search.ask():
        for point in points:
            if point in seen or point not in space:
                raise click.ClickException(
                    f"{name} asks for {point} {'twice' if point in seen else 'outside the space'}"
                )
            seen.add(point)
            search.tell(point, float(1 + abs(int(point["x"]) - 3) * int(point["y"])))
    click.echo(f"{name}: asked {len(seen)} of {space.size} points, each once")


def _conclude(results: Any) -> None:
    failed = 0
    for line in results:
        click.echo(str(line))
        failed += not line.ok
    if failed:
        raise SystemExit(1)


@click.command("probe")
@click.argument("target", required=False, default="native")
@click.option("--name", default=None, help="What to call the platform.")
def _probe(target: str, name: str | None) -> None:
    """Writes a platform file from this machine, or from ssh://host, to stdout."""
    click.echo(probe_platform.probe(target, name), nl=False)

"""`platforms probe`: writes a platform file for a machine; values that could not be read become comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tensorop import backends
from tensorop.errors import UsageError
from tensorop.model.core import Core
from tensorop.model.platform import Platform
from tensorop.runners import facts
from tensorop.specs import platforms
from tensorop.toolchain.programs import identify_program

_IDENTITY = ("uarch", "mvendorid", "CPU implementer", "CPU part")


def probe(target: str, name: str | None, plugins: tuple[Path, ...] = ()) -> str:
    """The text of a platform file for this machine (`native`) or another one (ssh://host).

    Raises UsageError for an unknown target or if no platform file matches the machine, BoardError if the board does
    not answer, MissingTool without a compiler.
    """
    found, address = backends.chosen(target, plugins)
    runner = found.machine(address)
    arch = facts.read(runner).arch
    core = facts.read(runner, identify_program(arch).path)
    parent = parent_of(core, platforms.whole(plugins))
    return "\n".join(_lines(core, parent, name or slug(core), native=found.is_host)) + "\n"


def parent_of(core: Core, known: Iterable[Platform]) -> Platform:
    """The most specific platform that matches a core. Raises UsageError if none matches."""
    fitting = [p for p in known if _fits(p, core)]
    if not fitting:
        raise UsageError(
            f"no platform file matches this {core.arch} machine",
            hint="write one with this arch and add it to platforms/",
        )
    return min(fitting, key=lambda p: (not p.identity, len(p.vlens) == 1, -len(p.requires), len(p.lineage), p.name))


def slug(core: Core) -> str:
    """A file name from the core's name."""
    return re.sub(r"[^a-z0-9]+", "-", core.label.lower()).strip("-") or core.arch


def _fits(platform: Platform, core: Core) -> bool:
    if platform.arch != core.arch or not set(platform.requires) <= core.flags:
        return False
    if platform.identity:
        keys = {key for lines in core.processors.values() for key in lines}
        if not keys & set(platform.identity) or not core.matching(platform.identity):
            return False
    if core.vlen is None:
        return platform.fixed_vlen is None
    return core.vlen in platform.vlens or len(platform.vlens) > 1


def _lines(core: Core, parent: Platform, name: str, native: bool) -> Iterator[str]:
    yield f"# Written by `tensorop platforms probe`. Keep it as platforms/{name}.yaml in a folder given by --plugins."
    yield f"# {core.label}: {core.cores or 'an unknown number of'} cores, pages of {core.page or 'unknown'} bytes"
    yield f"# kernel {core.kernel or 'unknown'}, C library {core.libc or 'unknown'}"
    if core.clock_mhz:
        yield f"# about {core.clock_mhz:.0f} MHz while it was asked, frequency governor {core.governor or 'unknown'}"
    if core.flags:
        yield f"# flags: {' '.join(sorted(core.flags))}"
    yield "schema: 1"
    yield f"name: {name}"
    yield f"parent: {parent.name}"
    yield f"description: {json.dumps(f'{core.label}, as probed')}"
    yield f"arch: {core.arch}"
    yield f"requires: [{', '.join(parent.requires)}]"
    first = next(iter(core.processors.values()), {})
    identity = {key: first[key] for key in _IDENTITY if first.get(key)}
    if identity:
        yield f"identity: {{{', '.join(f'{key}: {json.dumps(text)}' for key, text in identity.items())}}}"
    else:
        yield "# identity: /proc/cpuinfo names no core"
    if core.vlen is not None:
        yield f"vlens: [{core.vlen}]"
        yield f"verify_vlens: [{core.vlen}]"
    elif len(parent.vlens) > 1:
        yield "# vlens: not read, since no program ran or the core has no vector registers"
    if native:
        yield "runner: native"
    yield from _caches(core, parent)


def _caches(core: Core, parent: Platform) -> Iterator[str]:
    """The cache levels that were read, and for other levels the parent's values with a comment."""
    if not core.caches:
        yield f"# caches: not read; as in {parent.name}"
        return
    yield "caches: # the innermost first"
    for level in sorted(core.caches.keys() | parent.caches.keys()):
        cache = core.caches.get(level)
        if cache is None:
            base = parent.caches[level]
            yield f"  - {{size: {base.size}, ways: {base.ways}, line: {base.line}, shared_by: {base.shared_by}}}"
            yield f"  # {level}: not read; as in {parent.name}"
            continue
        shared = f", shared_by: {cache['shared_by']}" if "shared_by" in cache else ""
        yield f"  - {{size: {cache['size']}, ways: {cache['ways']}, line: {cache['line']}{shared}}}"
        if not shared:
            yield f"  # {level} shared_by: not read"

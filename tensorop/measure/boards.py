"""Checks that the board behind an address is the core that a platform file declares, before any measurement."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping

from tensorop.errors import BoardError, JobError
from tensorop.model.core import Core
from tensorop.model.platform import Platform
from tensorop.runners import facts
from tensorop.runners.native import Native
from tensorop.runners.ssh import Ssh
from tensorop.toolchain.programs import identify_program

# Deadlines were chosen for a desktop's clock and a link of 100 Mbit/s.
_CLOCK_MHZ = 2000.0
_LINK = 10e6
_MOST_PATIENCE = 40.0


def meet(platform: Platform, runner: Ssh) -> tuple[Platform, Ssh, Core]:
    """Probes a board: the platform narrowed to the board, the runner with its processors and deadlines, and the core.

    Raises BoardError if it does not answer, is not the declared core, or cannot run a program; MissingTool without a
    compiler.
    """
    quiet = facts.read(runner)
    if quiet.arch != platform.arch:
        raise _not(platform, runner, f"{quiet.arch}, not {platform.arch}")
    runner.prune()
    core = facts.read(runner, identify_program(platform.arch).path)
    processors = fitting(platform, core, runner)
    runner = dataclasses.replace(runner, processor=processors[-1] if processors else -1, patience=patience(core))
    return narrowed(platform, core.vlen), runner, core


def here(platform: Platform) -> Platform:
    """A platform for several VLENs narrowed to this machine's VLEN.

    Raises JobError if the core lacks the required vectors, MissingTool without a compiler.
    """
    if len(platform.vlens) == 1 and facts.VECTORS not in platform.requires:
        return platform
    return on_core(platform, facts.execute(Native(), identify_program(platform.arch).path))


def on_core(platform: Platform, reported: Mapping[str, str]) -> Platform:
    """The platform narrowed to a core that identify.c probed."""
    if facts.VECTORS in platform.requires and not facts.confirms(reported):
        raise JobError(
            f"platform '{platform.name}' needs the RISC-V V extension 1.0, which this machine's CPU does not execute"
            " (the letter 'v' in /proc/cpuinfo may mean the draft 0.7.1)",
            hint="choose a platform whose `requires` has no v; see `tensorop platforms list`",
        )
    if len(platform.vlens) == 1:
        return platform
    return narrowed(platform, int(reported["vlen"]) if "vlen" in reported else None)


def narrowed(platform: Platform, vlen: int | None) -> Platform:
    """The platform with a core's VLEN (bits); with its own first one if the core does not report any."""
    only = (vlen or platform.vlens[0],)
    return dataclasses.replace(platform, vlens=only, verify_vlens=only)


def fitting(platform: Platform, core: Core, runner: Ssh) -> tuple[int, ...]:
    """The processors that are the declared core. Raises BoardError if there is none."""
    missing = [flag for flag in platform.requires if flag not in core.flags] if core.flags else []
    if missing:
        raise _not(platform, runner, f"{core.label}, which lacks {', '.join(missing)}")
    wanted = {platform.vlens[0]} if len(platform.vlens) == 1 else {*platform.vlens, *platform.verify_vlens}
    if core.vlen is None and (platform.fixed_vlen is not None or len(platform.vlens) > 1):
        raise _not(platform, runner, f"{core.label}, which has no vector registers")
    if core.vlen is not None and core.vlen not in wanted:
        asked = " or ".join(str(vlen) for vlen in sorted(wanted))
        raise _not(platform, runner, f"{core.label} with VLEN {core.vlen}, not {asked}")
    processors = core.matching(platform.identity)
    if core.processors and not processors:
        asked = ", ".join(f"{key} {text}" for key, text in platform.identity.items())
        raise _not(platform, runner, f"{core.label}, and none of its cores matches {asked}")
    return processors


def patience(core: Core) -> float:
    """Factor of deadlines: 1 for a desktop on a fast link."""
    slow = _CLOCK_MHZ / core.clock_mhz if core.clock_mhz else 1.0
    far = _LINK / core.link if core.link else 1.0
    return min(max(slow, far, 1.0), _MOST_PATIENCE)


def _not(platform: Platform, runner: Ssh, what: str) -> BoardError:
    return BoardError(
        f"{runner.host} is not the board that platform '{platform.name}' describes: it is {what}",
        hint=f"`tensorop platforms probe {shlex.quote(runner.address)}` writes a platform file that fits it",
    )

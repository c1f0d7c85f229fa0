"""Finds backends by name: `--runner NAME` or `NAME://ADDRESS`; without it, the platform's `runner:`."""

from __future__ import annotations

import importlib
from functools import lru_cache
from pathlib import Path

from tensorop import paths, subpackages
from tensorop.device_target import DeviceTarget
from tensorop.errors import SpecError, UsageError, unknown_name
from tensorop.model.budget import Budgets
from tensorop.model.platform import Platform
from tensorop.runners.base import Runner
from tensorop.specs import catalog, pymodule
from tensorop.target import Target

_WORDS = ("name", "unit", "speed", "shown", "address")
_SWITCHES = ("side_by_side", "deterministic", "is_host", "confined", "simulated", "measures")


def words(plugins: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """The values of --runner."""
    known = (load(name, plugins) for name in catalog.names("backends", plugins))
    return tuple(f"{one.name}://{one.address}" if one.address else one.name for one in known)


def load(name: str, plugins: tuple[Path, ...] = ()) -> type[Target]:
    """The backend of a name. Raises UsageError for an unknown name, SpecError if its file breaks the contract."""
    return _read(catalog.find("backends", name, plugins))


def chosen(word: str, plugins: tuple[Path, ...] = ()) -> tuple[type[Target], str]:
    """The backend and the address in a value of --runner. Raises UsageError for an invalid value."""
    name, slashes, address = word.partition("://")
    if name not in (*catalog.names("backends", plugins), *subpackages.BACKENDS):
        raise unknown_name("runner", word, words(plugins), f"backends/{name}")
    found = load(name, plugins)
    if bool(slashes) != bool(found.address):
        if found.address:
            raise UsageError(f"--runner {name} needs an address", hint=f"e.g. --runner {name}://user@board")
        raise UsageError(f"--runner {name} takes no address; got '{word}'", hint=f"use --runner {name}")
    return found, address


def start(platform: Platform, word: str | None = None, plugins: tuple[Path, ...] = ()) -> Runner:
    """The runner that starts processes for a platform. word: value of --runner; None: the platform's own.

    Raises UsageError for an invalid value, and the errors of `Target.start`.
    """
    found, address = _fitting(platform, word, plugins)
    return found.start(platform, address)


def reach(platform: Platform, word: str | None = None, plugins: tuple[Path, ...] = ()) -> Target:
    """The target of a job. word: value of --runner; None: the platform's own.

    Raises UsageError for an invalid value, and the errors of `Target.reach`.
    """
    found, address = _fitting(platform, word, plugins)
    return found.reach(platform, address)


def _fitting(platform: Platform, word: str | None, plugins: tuple[Path, ...]) -> tuple[type[Target], str]:
    found, address = chosen(word or platform.runner, plugins)
    if found.name != platform.runner and not load(platform.runner, plugins).measures:
        raise UsageError(
            f"--runner {word}: platform '{platform.name}' works with the backend '{platform.runner}' only",
            hint="remove --runner",
        )
    return found, address


@lru_cache(maxsize=32)
def _read(path: Path) -> type[Target]:
    name = path.stem
    if path.parent.name in subpackages.BACKENDS:
        name = path.parent.name
        module = subpackages.require(name, "backend", f"the runner '{name}'")
    elif paths.shipped(path):
        module = importlib.import_module(f"tensorop.backends.{name}")
    else:
        module = pymodule.load(path, f"_tensorop_backend_{name}")
    found: type[Target] = pymodule.derived(path, module, Target)
    kinds = {**dict.fromkeys(_WORDS, str), **dict.fromkeys(_SWITCHES, bool), "budgets": Budgets, "ignores": dict}
    for part, kind in kinds.items():
        if type(value := getattr(found, part, None)) is not kind:
            raise SpecError(
                f"{path}: class '{found.__name__}': expected {part} to be a {kind.__name__}, got {value!r:.80}"
            )
    if found.name != name:
        raise SpecError(f"{path}: key 'name': expected '{name}', as the file is called, got '{found.name}'")
    if found.deterministic and found.budgets.clock_probes:
        raise SpecError(
            f"{path}: class '{found.__name__}': expected deterministic = False, since its measurements come from a "
            "clock"
        )
    figures = "kernels" if issubclass(found, DeviceTarget) else "simulate" if found.simulated else "measure"
    pymodule.check_methods(path, found, DeviceTarget if figures == "kernels" else Target, ("start", figures))
    return found

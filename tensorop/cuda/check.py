"""Checks an operator's parts for GPUs without a compiler: files, kernels of each template, the texts around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from tensorop.author import offline
from tensorop.commands import operator_read
from tensorop.cuda import kernels, kit, library
from tensorop.cuda.choose import Candidate
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.family import Family
from tensorop.cuda.library import LibraryVariant
from tensorop.errors import SpecError, TensoropError
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.package import binding
from tensorop.package.card import Card

SUFFIX = ".cu.j2"  # of template files
_LIBRARY = ("read_problem", "is_empty", "writes_nothing", "serves", "unaligned", "prepare", "launches")
_FILES = ("binding.py", "header.h.j2", "library.c.j2", "args.h.j2", "shapes.txt", "kit/judged.h", "kit/oracle.c",
          "kit/kernels.cu")  # fmt: skip
_OWN = re.compile(r"/\* The operator's own, oracle\.c.*?/\* judge\.c", re.DOTALL)  # of kit.h


def parts(operator: Operator, platform: Platform) -> Iterator[tuple[str, Callable[[], object]]]:
    """The checks, by name; each raises SpecError with the file of a fault and what is expected there."""
    yield "device/", partial(_files, operator)
    yield "device/binding.py", partial(_binding, operator)
    yield "device/kit/", partial(_kit, operator)
    yield "kernels/", partial(_kernels, operator, platform)


def _files(operator: Operator) -> None:
    folder = operator.folder / "device"
    for name in _FILES:
        if not (folder / name).is_file():
            raise SpecError(f"{folder / name}: missing; an operator with the key 'device' needs this file")


def _binding(operator: Operator) -> None:
    file = operator.folder / "device" / "binding.py"
    operator_read.declared(operator, file, operator.on_device.types, device=True)
    got = getattr(binding.of(operator, device=True), "CARD", None)
    if got != (card := f"tensorop_{operator.name}_cuda_card"):
        raise SpecError(f"{file}: CARD: expected '{card}', got {got!r:.80}")


def _kit(operator: Operator) -> None:
    files = kit.sources(operator, operator.on_device.types[:1])
    wanted = re.findall(r"\b(\w+)\([^()]*\);", _OWN.search(files["kit.h"])[0])  # type: ignore[index]
    _require(operator.folder / "device/kit/oracle.c", files["oracle.c"], wanted)
    _require(operator.folder / "device/kit/judged.h", files["judged.h"], ("struct judged",))
    own = [f"FAULT_{fault.replace('-', '_').upper()}" for fault in operator.on_device.faults]
    for fault in own:
        if fault not in files["oracle.c"] + files["kernels.cu"]:
            at = operator.folder / "device/kit/kernels.cu"
            raise SpecError(f"{at}: key 'device.faults' of operator.yaml: expected a use of {fault}, got none")


def _require(file: Path, text: str, names: Sequence[str], form: str = r"\b{}\b") -> None:
    """form: how a name stands where it is defined"""
    for name in names:
        if not re.search(form.format(name), text, re.MULTILINE):
            raise SpecError(f"{file}: expected '{name}', got no such name (see docs/how-to/add-a-device-operator.md)")


def _kernels(operator: Operator, platform: Platform) -> str:
    """One kernel of each template in each layout, and the library around them."""
    if not offline.files(operator.folder, suffix=SUFFIX):
        raise SpecError(f"{operator.folder / 'kernels'}: expected files *{SUFFIX}, got none")
    found = offline.templates(operator.folder, operator.name, suffix=SUFFIX)
    served = [one for one in found if any(kernels.set_of(platform, one, dtype) for dtype in operator.on_device.types)]
    if not served:
        return "none for this platform"
    call, variants = operator.on_device, []
    for template in served:
        at = operator.folder / "kernels" / f"{template.name}{SUFFIX}"
        dtype = next(one for one in call.types if kernels.set_of(platform, template, one))
        given = device_numbers(platform, dtype)
        for key in call.keys:
            family = Family(call, template, {**given, **call.named(key)})
            variants.append(LibraryVariant(Candidate(family, _legal(at, family, operator)), dtype, 0))
        _gated(at, operator, platform, template, variants[-1])
    texts = library.sources(operator, platform, variants, (b"",) * 3, cast(Card, {"schema": 1}), _MEASURED | {
        "parts": [1] * len(call.call), "variants": [(0, 0)] * len(variants)})  # fmt: skip
    _require(operator.folder / "device/library.c.j2", texts["library.c"].decode(), _LIBRARY, r"^static [\w ]+\b{}\(")
    header = texts[f"tensorop/{operator.name}_cuda.h"].decode()
    _require(operator.folder / "device/header.h.j2", header, (f"struct tensorop_{operator.name}_problem",), r"^{} \{{")
    return ", ".join(template.name for template in served)


_MEASURED = {"reach": 1, "squarings": 1, "odd": 1, "where": "", "rows": [], "figures": []}


def _legal(at: Path, family: Family, operator: Operator) -> int:
    """The place of a configuration. Raises SpecError for a head that the library cannot work with."""
    try:
        known = family.grid.keys()
        family.predicted(dict.fromkeys(operator.on_device.call, 64))
    except (TensoropError, ArithmeticError, ValueError) as error:
        raise SpecError(f"{at}: {error!s:.300}") from None
    for name in ("threads", "shared", *operator.on_device.launch):
        if name not in known and name not in operator.on_device.absent:
            raise SpecError(f"{at}: key 'facts': expected a tunable or fact '{name}', which the library's C reads")
    for seed in family.template.seed_configurations:
        same = np.logical_and.reduce([family.grid[name] == value for name, value in dict(seed).items()])
        if same.any():
            return int(np.argmax(same))
    return 0


def _gated(at: Path, operator: Operator, platform: Platform, template: KernelTemplate, one: LibraryVariant) -> None:
    text = kernels.text(operator, platform, template, one.dtype, one.candidate.numbers)
    if isinstance(text, Outcome):
        raise SpecError(f"{at}: {text.message}")

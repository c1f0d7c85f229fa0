"""The author that needs no network: it takes templates from the operator's folder and from plug-in folders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tensorop import paths
from tensorop.author.parse import parse
from tensorop.errors import SpecError
from tensorop.model.kernel import OURS, KernelTemplate
from tensorop.specs import files as reading
from tensorop.specs.operators import KERNELS, TEMPLATE_SUFFIX

AUTHOR = OURS  # the author of shipped templates
PLUGIN = "plug-in"  # the author of templates in a user's folder
AUTHORS = frozenset({AUTHOR, PLUGIN})
DIRECT = "direct"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_NONE: Mapping[str, Path] = MappingProxyType({})


def files(folder: Path, added: Mapping[str, Path] = _NONE, suffix: str = TEMPLATE_SUFFIX) -> dict[str, Path]:
    """The template files of an operator's folder, by name and sorted.

    added: the files of plug-in folders (Operator.added); they replace files of the same name.
    suffix: the end of a file's name, by language.
    """
    own = {file.name.removesuffix(suffix): file for file in (folder / KERNELS).glob(f"*{suffix}")}
    return dict(sorted({**own, **added}.items()))


def templates(
    folder: Path, operator: str, added: Mapping[str, Path] = _NONE, suffix: str = TEMPLATE_SUFFIX
) -> list[KernelTemplate]:
    """Every template, sorted by name.

    Trials of identical templates could not be distinguished. So one of them is kept: the operator's own, or else the
    first. Raises SpecError for a broken template, naming its file, or if there is no template.
    """
    found = files(folder, added, suffix)
    if not found:
        raise SpecError(f"{folder / KERNELS} contains no template; expected files *{suffix}")
    if DIRECT in found:
        raise SpecError(
            f"{found[DIRECT]}: the name '{DIRECT}' is reserved for the small-problem kernel of {folder.name}",
            hint="rename the file",
        )
    read = [_parsed(file, operator, name) for name, file in found.items()]
    first: dict[str, str] = {}
    for template in sorted(read, key=lambda template: template.name in added):
        first.setdefault(template.digest, template.name)
    return [template for template in read if first[template.digest] == template.name]


def direct(folder: Path, operator: str) -> KernelTemplate | None:
    """The template of the direct kernel, `direct.c.j2` beside the driver; None for an operator without one."""
    file = folder / f"{DIRECT}{TEMPLATE_SUFFIX}"
    if not file.is_file():
        return None
    return _parsed(file, operator, DIRECT)


def example(*prompts: Path) -> str:
    """The example template in the first folder that has one, with its head. Raises SpecError if none has."""
    files = [folder / f"example{TEMPLATE_SUFFIX}" for folder in prompts]
    return reading.text(next((file for file in files if file.is_file()), files[0]), reading.TEXT)


def _parsed(file: Path, operator: str, name: str) -> KernelTemplate:
    if not _NAME.fullmatch(name):
        raise SpecError(f"{file}: expected a name of lower-case letters, digits and '_', at most 32, got '{name}'")
    author = AUTHOR if paths.shipped(file) else PLUGIN
    text = reading.text(file, reading.TEXT)
    try:
        return parse(text, operator=operator, name=name, author=author)
    except SpecError as error:
        raise SpecError(f"{file}: {error.message}", hint=error.hint) from None

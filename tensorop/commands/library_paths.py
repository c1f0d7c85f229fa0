"""The calls of a finished library by which each path of its kernels is taken, as far as its calls take them.

The library's own machine code is called: each call forces the variant of the kernel. To find the paths, kernels are
rendered again (author/paths.py). Their templates are those of this installation with the digests that the library's
card names, else those of the product's journal. Card and journal may be anyone's, so each template passes the gates and
is rendered apart as a language model's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tensorop.author import offline
from tensorop.author.llm import rounds
from tensorop.commands.opened import Opened
from tensorop.errors import JobError, TensoropError
from tensorop.model.case import Case
from tensorop.model.contract import Contract
from tensorop.model.kernel import KernelTemplate, Variant
from tensorop.model.point import Point
from tensorop.model.trial import Outcome
from tensorop.model.verdict import Seed
from tensorop.model.winner import VariantRecord
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.store import journal
from tensorop.target import Target
from tensorop.trial.called import PathCalls
from tensorop.trial.calls import tile_refusal


@dataclass(frozen=True)
class LibraryPaths:
    """Finds the calls of one library. uncalled: gets templates whose paths are unknown, with the reason."""

    opened: Opened
    target: Target
    seed: Seed
    uncalled: dict[str, str] = field(default_factory=dict)
    _known: dict[str, Mapping[int, Sequence[Case]]] = field(default_factory=dict, repr=False)
    _texts: Texts = field(default_factory=Texts, repr=False)

    def cases(self, dtype: str, vlen: int) -> Sequence[Case]:
        """The calls of all variants at a VLEN (bits); none if the operator has no `path_case` or kernels."""
        if dtype not in self._known:
            self._known[dtype] = self._found(dtype)
        return self._known[dtype][vlen]

    def _found(self, dtype: str) -> Mapping[int, Sequence[Case]]:
        found: dict[int, list[Case]] = {vlen: [] for vlen in self.target.verify_vlens}
        seen = set[str]()  # texts: variants may share a kernel
        operator = self.opened.operator
        called = operator.kernels_of is None and type(operator.reference).path_case is not Contract.path_case
        for number, record in enumerate(self._variants(dtype)) if called else ():
            try:
                for variant, vlens in self._kernels(dtype, record):
                    for vlen, cases in self._cases(variant, vlens, seen).items():
                        found[vlen] += (replace(one, problem=one.problem.with_options(variant=number)) for one in cases)
            except TensoropError as error:
                self.uncalled[str(record["template"])] = error.message
        return found

    def _kernels(self, dtype: str, record: VariantRecord) -> Iterator[tuple[Variant, Sequence[int]]]:
        """A variant's kernel and its specialisations, each with the VLENs (bits) at which it serves."""
        template = self._templates.get(record["digest"])
        if template is None:
            raise JobError("neither this tensorop nor the product's journal has its text")
        plain = instantiate.variant(self.opened.operator, template, dtype, Point.of(record["point"]))
        own = {vlen: vlen * (vlen in record.get("specialisations", ())) for vlen in self.target.verify_vlens}
        for vlen in sorted({*own.values()}):
            yield plain.at(vlen) if vlen else plain, [at for at, of in own.items() if of == vlen]

    def _cases(self, variant: Variant, vlens: Sequence[int], seen: set[str]) -> Mapping[int, Sequence[Case]]:
        operator, platform = self.opened.operator, self.target.platform.at(variant.kernel.vlen)
        text = tile_refusal(operator, self.target, variant) or self._texts.kernel(operator, platform, variant)
        if isinstance(text, Outcome):
            raise JobError(text.message)
        if text.id in seen:
            return {}
        seen.add(text.id)
        each = PathCalls(operator, platform, self._texts, vlens, self.seed).every(variant, in_library=True)
        return {vlen: [case for cases in each for case in cases[vlen]] for vlen in vlens}

    @cached_property
    def _templates(self) -> Mapping[str, KernelTemplate]:
        """By digest, with those of the journal if the card names others than those of this installation."""
        operator, root = self.opened.operator, self.opened.root
        direct = offline.direct(operator.folder, operator.name)
        own = [*offline.templates(operator.folder, operator.name, operator.added), *([direct] if direct else [])]
        found = {one.digest: one for one in own}
        each = (record["digest"] for dtype in self.opened.dtypes for record in self._variants(dtype))
        if root is not None and journal.journal_path(root).is_file() and not found.keys() >= {*each}:
            found = {**journal.read(root).templates, **found}
        return {digest: replace(one, author=rounds.NAME) for digest, one in found.items()}

    def _variants(self, dtype: str) -> Sequence[VariantRecord]:
        return self.opened.card["dtypes"][dtype]["variants"]

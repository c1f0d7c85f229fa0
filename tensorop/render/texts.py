"""The C of kernels by the id of a variant as built: rendered and checked by the gate once, then reused.

A product is built from the texts that its trials judged. A template that is not shipped is rendered in a limited
process, never in this one, and only once: no other stage renders it, and packaging neither. A resumed run trusts no
text in its journal: the template passes gates and rendering once more, and the run ends if the journal has another
text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from tensorop.author import c_gate, gate, offline
from tensorop.author.paths import KernelPaths
from tensorop.errors import JobError
from tensorop.model.kernel import TRUSTED, KernelTemplate, KernelText, Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.primitive import Primitives
from tensorop.model.trial import Outcome
from tensorop.render import apart, instantiate, lines, render
from tensorop.store.journal import START_OVER


class Texts:
    """The kernels' texts of one job. Safe in threads.

    journaled: the texts in its journal, by the same ids.
    """

    def __init__(self, journaled: Mapping[str, KernelText] | None = None) -> None:
        self._journaled = dict(journaled or {})
        self._known: dict[str, KernelText] = {}
        self._paths: dict[tuple[str, bool], list[KernelPaths]] = {}  # by variant as built, and whether of its full tile
        self._lock = threading.Lock()

    def kernel(self, operator: Operator, platform: Platform, variant: Variant) -> KernelText | Outcome:
        """The text of a variant's kernel, made at the first request; an Outcome if the gate refuses it.

        Raises render.RenderError if it cannot be rendered, JobError if the journal has another text.
        """
        variant = instantiate.as_built(operator, platform, variant)
        if (text := self._known.get(variant.id)) is not None:
            return text
        read = _checked(operator, platform, variant, instantiate.kernel_contexts(operator, platform, variant))
        made = read if isinstance(read, Outcome) else KernelText(variant.id, *(text for text, _ in read))
        before = self._journaled.get(variant.id)
        if before is not None and made != before:
            now = f"is now rejected ({made.message})" if isinstance(made, Outcome) else f"now generates {made.id}"
            raise JobError(
                f"the journal does not match this version: template '{variant.template.name}' at {variant.point} "
                "generated "
                f"source {before.id}, and {now}. The journal was edited, or tensorop changed",
                hint=START_OVER,
            )
        if isinstance(read, Outcome):
            return read
        with self._lock:
            self._paths[variant.id, False] = [paths for _, paths in read]
            return self._known.setdefault(variant.id, KernelText(variant.id, *(text for text, _ in read)))

    def full_tile(self, operator: Operator, platform: Platform, variant: Variant) -> str | Outcome:
        """The C of a kernel with its largest tile alone; an Outcome if the gate refuses it.

        Raises render.RenderError.
        """
        variant = instantiate.as_built(operator, platform, variant)
        context, primitives = instantiate.kernel_context(operator, platform, variant)
        made = _checked(operator, platform, variant, [({**context, "full_tile": True}, primitives)])
        if isinstance(made, Outcome):
            return made
        ((text, paths),) = made
        with self._lock:
            self._paths[variant.id, True] = [paths]
        return text

    def paths(
        self, operator: Operator, platform: Platform, variant: Variant, full_tile: bool = False
    ) -> Sequence[KernelPaths]:
        """The paths of a variant's kernel, then of its edge kernel; of a text that `kernel` or `full_tile` made."""
        return self._paths[instantiate.as_built(operator, platform, variant).id, full_tile]

    def add_from_worker(self, text: KernelText) -> None:
        """Adds a text that a worker judged; before it is packaged it is made here too.

        Raises JobError if the journal has another text.
        """
        with self._lock:
            before = self._journaled.setdefault(text.variant, text)
        if before != text:
            raise JobError(
                f"a worker measured the source {text.id}, and the journal has {before.id} for the same kernel",
                hint=START_OVER,
            )

    def judged(self, operator: Operator, platform: Platform, variant: Variant) -> KernelText:
        """The text of a variant's kernel for a product.

        Raises JobError if no trial made the text of a template that is not shipped, if the gate refuses it, or if the
        journal has another text.
        """
        name, template = instantiate.as_built(operator, platform, variant).id, variant.template
        if template.author != offline.AUTHOR and name not in self._known and name not in self._journaled:
            raise JobError(
                f"the kernel of template '{template.name}' at {variant.point} was never verified, so it is not "
                "packaged",
                hint="run a search with this template, or remove the template",
            )
        text = self.kernel(operator, platform, variant)
        if isinstance(text, Outcome):
            raise JobError(f"template '{template.name}' at {variant.point} is rejected: {text.message}")
        return text


def _checked(
    operator: Operator, platform: Platform, variant: Variant, contexts: Sequence[tuple[dict[str, object], Primitives]]
) -> list[tuple[str, KernelPaths]] | Outcome:
    """Checks the template, renders it, checks the C and finds its paths, and only then inserts the primitives' C.

    A trusted author's template is checked by nothing here; its C is included before the first text.
    """
    template, trusted = variant.template, variant.template.author == TRUSTED
    primitives = contexts[0][1]
    reserved = instantiate.reserved(operator, platform, variant.kernel.dtype)
    if not trusted and (outcome := gate.check_template(template, primitives, reserved)) is not None:
        return outcome
    rendering = render.kernel_texts if template.author in (offline.AUTHOR, TRUSTED) else apart.texts
    arities = {primitive: len(spec.args) for primitive, spec in primitives.with_aliases.items()}
    plain = [context for context, _ in contexts]
    rendered = rendering(operator.templates, c_gate.marked(template.text), instantiate.KERNEL, plain, arities)
    texts: list[tuple[str, KernelPaths]] = []
    for source, (context, primitives) in zip(rendered, contexts, strict=True):
        settings = {name: int(str(context[name])) for name in platform.settings if name in context}
        lanes = {vlen: platform.lanes(variant.kernel.dtype, settings, vlen) for vlen in platform.verify_vlens}

        def again(text: str, context: dict[str, object] = context) -> str:
            instead = c_gate.marked(template.text, text)
            return rendering(operator.templates, instead, instantiate.KERNEL, [context], arities)[0]

        of_line = lines.line_at(source, template.text, again)
        empty = "", KernelPaths({}, lanes)
        read = _expanded(source, template, primitives, lanes, of_line) if source.strip() else empty
        if isinstance(read, Outcome):
            return read
        texts.append(read)
    if trusted:
        texts[0] = f'#include "{template.files[0][0]}"\n\n{texts[0][0]}', texts[0][1]
    return texts


def _expanded(
    source: str,
    template: KernelTemplate,
    primitives: Primitives,
    lanes: Mapping[int, int],
    line_at: Callable[[int], int],
) -> tuple[str, KernelPaths] | Outcome:
    """The source with the primitives' C, and its paths. lanes: elements of a vector, by VLEN (bits)."""
    callables = instantiate.callables(primitives)
    if template.author == TRUSTED:
        return render.expand(c_gate.unmarked(source, template.text), callables), KernelPaths({}, lanes)
    read = c_gate.read(source, template.text, primitives, callables, line_at, {*lanes.values()})
    if isinstance(read, Outcome):
        return read
    made = render.expand(c_gate.unmarked(read.trapped(), template.text), callables)
    return made, KernelPaths(read.tiles, lanes)

"""The C of kernels, by the id of a variant as it is built: rendered once, read by the gate, then only handed out.

What a trial judged is what the product is built of. A template that is not shipped is rendered in a limited process,
never
in this one, and never again: neither by another stage, nor by packaging. A run that goes on from a journal trusts no
text in it: the template passes gates and rendering once more, and where the journal says something else the run ends.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from tensorop.author import c_gate, gate, offline
from tensorop.errors import JobError
from tensorop.model.kernel import KernelTemplate, KernelText, Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.primitive import Primitives
from tensorop.model.trial import Outcome
from tensorop.render import apart, instantiate, render
from tensorop.store.journal import START_OVER


class Texts:
    """The kernels' texts of one job. journaled: by the same ids, those of its journal. Safe in threads."""

    def __init__(self, journaled: Mapping[str, KernelText] | None = None) -> None:
        self._journaled = dict(journaled or {})
        self._known: dict[str, KernelText] = {}
        self._lock = threading.Lock()

    def kernel(self, operator: Operator, platform: Platform, variant: Variant) -> KernelText | Outcome:
        """The text of a variant's kernel; made where it is asked for first. Raises render.RenderError where it cannot
        be, JobError where the journal has another one."""
        variant = instantiate.as_built(operator, platform, variant)
        if (text := self._known.get(variant.id)) is not None:
            return text
        made = _admitted(operator, platform, variant)
        before = self._journaled.get(variant.id)
        if before is not None and made != before:
            now = f"is refused now ({made.message})" if isinstance(made, Outcome) else f"is {made.id}"
            raise JobError(
                f"the journal was changed: it says that template '{variant.template.name}' at {variant.point} became "
                f"the text {before.id}, which {now}",
                hint=START_OVER,
            )
        if isinstance(made, Outcome):
            return made
        with self._lock:
            return self._known.setdefault(variant.id, made)

    def add_from_worker(self, text: KernelText) -> None:
        """A text that a worker judged: before it is packaged it is made here too. Raises JobError where the
        journal has another one."""
        with self._lock:
            before = self._journaled.setdefault(text.variant, text)
        if before != text:
            raise JobError(f"a worker judged the text {text.id} where the journal has {before.id}", hint=START_OVER)

    def judged(self, operator: Operator, platform: Platform, variant: Variant) -> KernelText:
        """The same for a product. Raises JobError for a template that is not shipped where no trial made its text,
        where the gate refuses it, and where the journal has another one."""
        name, template = instantiate.as_built(operator, platform, variant).id, variant.template
        if template.author != offline.AUTHOR and name not in self._known and name not in self._journaled:
            raise JobError(
                f"the kernel of template '{template.name}' at {variant.point} was never judged, so it is not packaged",
                hint="run the search that judges it, or leave the template out",
            )
        text = self.kernel(operator, platform, variant)
        if isinstance(text, Outcome):
            raise JobError(f"template '{template.name}' at {variant.point} is refused: {text.message}")
        return text


def _admitted(operator: Operator, platform: Platform, variant: Variant) -> KernelText | Outcome:
    """Template, rendering, gate, and only then the primitives' C."""
    template = variant.template
    contexts = instantiate.kernel_contexts(operator, platform, variant)
    primitives = contexts[0][1]
    outcome = gate.check_template(template, primitives, instantiate.reserved(operator, platform, variant.kernel.dtype))
    if outcome is not None:
        return outcome
    rendering = render.kernel_texts if template.author == offline.AUTHOR else apart.texts
    arities = {primitive: len(spec.args) for primitive, spec in primitives.with_aliases.items()}
    plain = [context for context, _ in contexts]
    rendered = rendering(operator.templates, c_gate.marked(template.text), instantiate.KERNEL, plain, arities)
    texts = []
    for source, (_, primitives) in zip(rendered, contexts, strict=True):
        if not source.strip():
            texts.append("")
            continue
        read = _expanded(source, template, primitives)
        if isinstance(read, Outcome):
            return read
        texts.append(read)
    return KernelText(variant.id, texts[0], texts[1] if len(texts) > 1 else "")


def _expanded(source: str, template: KernelTemplate, primitives: Primitives) -> str | Outcome:
    callables = instantiate.callables(primitives)
    refused = c_gate.read(source, template.text, primitives, callables)
    return refused or render.expand(c_gate.unmarked(source, template.text), callables)

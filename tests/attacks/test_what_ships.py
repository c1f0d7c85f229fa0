"""What was judged is what ships: a stranger's template is rendered once, and cannot tell for what."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tensorop.author import offline
from tensorop.author.gate import Guard
from tensorop.errors import JobError
from tensorop.instantiate import configuration
from tensorop.model.kernel import Draft, KernelText
from tensorop.model.point import Point
from tensorop.model.trial import Kind, Outcome
from tensorop.model.winner import Leaf, Tree, Variant, Winners
from tensorop.package.sources import sources
from tensorop.specs import operators, platforms
from tensorop.store.journal import Journal
from tensorop.texts import Texts

operator, platform = operators.load("gemm"), platforms.load("generic")
outer = next(d for d in offline.drafts(operator.folder, operator.name) if d.name == "outer")
POINT = Point.of(
    {**{name: values[0] for name, values in outer.tunables.items()}, "mv": 1, "nr": 6, "mc": 64, "kc": 128}
    | {"nc": 256, "pack_a": 1, "pack_b": 1, "a_stays": 0}
)
ENDLESS = "{% for a in range(99999) %}" * 4 + "x" + "{% endfor %}" * 4


def stranger(text: str, **more: object) -> Draft:
    return replace(outer, name="llm-1", author="llm", text=text, **more)  # type: ignore[arg-type]


def packaged(draft: Draft, texts: Texts) -> str:
    """The C of the one tuned unit of a library of this draft."""
    winners = [Winners("f32", (Variant(draft, POINT),), (Tree(Leaf(0)),))]
    made = sources(operator, platform, winners, "{}", texts=texts)
    (unit,) = [unit for library in made.libraries for unit in library.units if unit.tuned]
    return unit.text


def tokens(source: str) -> str:
    return " ".join(re.findall(r"\w+|[^\w\s\\]", re.sub(r"/\*.*?\*/|//[^\n]*", " ", source, flags=re.DOTALL)))


TELLS = [
    "uses is defined",
    "driver_file is defined",
    "variants is defined",
    "written_for is defined",
    "card_literal is defined",
    "use is defined",
    "suffix is defined",
    "mc is defined",
    "kc is defined",
    "a_stays is defined",
    "headers is defined",
    "support is defined",
    "ident == 'k0'",
    "'_2' in ident",
    "point != draft.name and 'mc' in point",
    "'0x' in (fma | string)",
]


def test_a_template_cannot_tell_a_product_from_a_trial() -> None:
    """The branches that would be taken in a product alone are not in it; the product has the text that was judged."""
    told = "".join(f"{{% if {tell} %}}(void)666{number:02};{{% endif %}}\n" for number, tell in enumerate(TELLS))
    draft = stranger(told + outer.text)
    texts = Texts()
    judged = texts.kernel(operator, platform, draft, POINT, "f32")
    assert isinstance(judged, KernelText), judged.message
    assert [TELLS[int(number)] for number in re.findall(r"666(\d\d)", judged.kernel)] == []
    assert tokens(judged.kernel) in tokens(packaged(draft, texts))


def test_one_that_was_not_judged_is_not_packaged() -> None:
    with pytest.raises(JobError, match="was never judged"):
        packaged(stranger(outer.text), Texts())
    with pytest.raises(JobError, match="was never judged"):
        packaged(replace(outer, author=offline.PLUGIN), Texts())


def test_packaging_renders_nothing_of_a_stranger_again(tmp_path: Path) -> None:
    """A template that would never end, whose text a journal knows: the product is made of that text, at once."""
    endless = stranger(ENDLESS)
    name = configuration(operator, platform, endless, POINT, "f32")
    shipped = Texts().kernel(operator, platform, outer, POINT, "f32")
    assert isinstance(shipped, KernelText)
    with Journal.open(tmp_path, {}) as journal:
        journal.text(KernelText(name, shipped.kernel, shipped.edge))
    with Journal.open(tmp_path, {}) as journal:
        texts = Texts(journal.history.texts)
    assert tokens(shipped.kernel.split("*/", 1)[1]) in tokens(packaged(endless, texts))


def test_a_journal_whose_text_was_changed_is_refused(tmp_path: Path) -> None:
    with Journal.open(tmp_path, {}) as journal:
        journal.text(KernelText("c", "int x;"))
        path = journal.path
    path.write_text(path.read_text().replace('"id":"', '"id":"0'))
    with pytest.raises(JobError, match="damaged in line 2"):
        Journal.open(tmp_path, {})


@pytest.mark.parametrize(
    "name", ["element", "ident", "kernel", "edge", "support", "prefix", "driver_file", "registers", "lmul", "mc", "l1"]
)
def test_a_tunable_does_not_take_a_name_of_the_templates_around(name: str) -> None:
    draft = stranger(outer.text, tunables={**outer.tunables, name: ("evil",)})
    outcome = Texts().kernel(operator, platform, draft, Point.of({**POINT, name: "evil"}), "f32")
    assert isinstance(outcome, Outcome)
    assert (outcome.kind, outcome.message.partition(":")[0]) == (Kind.REFUSED, Guard.TUNABLES.value)


def test_prose_of_a_draft_does_not_leave_its_comment() -> None:
    draft = stranger(
        outer.text, strategy="an idea */ __attribute__((constructor)) void f(void) {} /* \\\n\u202e?\u003f/"
    )
    text = Texts().kernel(operator, platform, draft, POINT, "f32")
    assert isinstance(text, KernelText), text.message
    assert "constructor" not in tokens(text.kernel)
    assert text.kernel.isascii()

"""What was judged is what ships: a stranger's template is rendered once, and cannot tell for what."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tensorop.author import offline
from tensorop.author.gate import Guard
from tensorop.errors import JobError
from tensorop.job import authoring
from tensorop.model.job import Job
from tensorop.model.kernel import KernelTemplate, KernelText, Variant
from tensorop.model.point import Point
from tensorop.model.trial import Finished, Kind, Outcome, Score, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.model.winner import Leaf, Tree, Winners
from tensorop.package import manifest
from tensorop.package.sources import OperatorPart, sources, text_ids
from tensorop.render import apart
from tensorop.render.instantiate import as_built, variant
from tensorop.render.texts import Texts
from tensorop.specs import operators, platforms
from tensorop.store.journal import Journal
from tensorop.store.records import template_record, text_record, trial_record

operator, platform = operators.load("gemm"), platforms.load("generic")
outer = next(d for d in offline.templates(operator.folder, operator.name) if d.name == "outer")
POINT = Point.of(
    {**{name: values[0] for name, values in outer.tunables.items()}, "mr_vectors": 1, "nr": 6, "mc": 64, "kc": 128}
    | {"nc": 256, "pack_a": 1, "pack_b": 1, "a_stationary": 0}
)


def stranger(text: str, **more: object) -> KernelTemplate:
    return replace(outer, name="llm-1", author="llm", text=text, **more)  # type: ignore[arg-type]


def at(template: KernelTemplate, point: Point = POINT) -> Variant:
    return variant(operator, template, "f32", point)


def packaged(template: KernelTemplate, texts: Texts) -> str:
    """The C of the one tuned unit of a library of this template."""
    winners = [Winners("f32", (at(template),), (Tree(Leaf(0)),))]
    made = sources(OperatorPart(operator, winners, texts=texts), platform, "{}")
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
    "a_stationary is defined",
    "headers is defined",
    "support is defined",
    "ident == 'k0'",
    "'_2' in ident",
    "point != template.name and 'mc' in point",
    "'0x' in (fma | string)",
]


def test_a_template_cannot_tell_a_product_from_a_trial() -> None:
    """The branches that would be taken in a product alone are not in it; the product has the text that was judged."""
    told = "".join(f"{{% if {tell} %}}(void)666{number:02};{{% endif %}}\n" for number, tell in enumerate(TELLS))
    template = stranger(told + outer.text)
    texts = Texts()
    judged = texts.kernel(operator, platform, at(template))
    assert isinstance(judged, KernelText), judged.message
    assert [TELLS[int(number)] for number in re.findall(r"666(\d\d)", judged.kernel)] == []
    assert tokens(judged.kernel) in tokens(packaged(template, texts))


def test_one_that_was_not_judged_is_not_packaged() -> None:
    with pytest.raises(JobError, match="was never verified"):
        packaged(stranger(outer.text), Texts())
    with pytest.raises(JobError, match="was never verified"):
        packaged(replace(outer, author=offline.PLUGIN), Texts())


def test_packaging_renders_nothing_of_a_stranger_again(monkeypatch: pytest.MonkeyPatch) -> None:
    template, texts = stranger(outer.text), Texts()
    judged = texts.kernel(operator, platform, at(template))
    assert isinstance(judged, KernelText), judged.message
    monkeypatch.setattr(apart, "texts", None)
    assert tokens(judged.kernel.split("*/", 1)[1]) in tokens(packaged(template, texts))


def kept(template: KernelTemplate, folder: Path) -> tuple[Path, KernelText]:
    """A journal that knows the template, what it became at POINT, and a trial of it that passed; and that text."""
    text = Texts().kernel(operator, platform, at(template))
    assert isinstance(text, KernelText), text.message
    trial = Trial("k", 0, Stage.BLOCKING, at(template))
    with Journal.open(folder, {}) as journal:
        journal.template(template)
        journal.start(trial)
        journal.text(text)
        journal.finish(Finished(trial, Outcome(Kind.OK, "measure"), Score(1.0), {}, text.id))
    return journal.path, text


def rewritten(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """The journal as somebody leaves it who knows its format."""
    lines = [change(json.loads(line)) for line in path.read_text().splitlines()]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def known(folder: Path) -> Texts:
    with Journal.open(folder, {}) as journal:
        return Texts(journal.history.texts)


def test_a_run_that_goes_on_ships_what_its_journal_says_was_judged(tmp_path: Path) -> None:
    template = stranger(outer.text)
    _, text = kept(template, tmp_path)
    assert tokens(text.kernel.split("*/", 1)[1]) in tokens(packaged(template, known(tmp_path)))


SMUGGLED = {
    "a constructor": lambda c: f"{c}\n__attribute__((constructor)) static void evil(void) {{}}\n",
    "a call": lambda c: c.replace("{", '{ extern int system(const char *); system("id");', 1),
    "an include": lambda c: f'#include "/etc/passwd"\n{c}',
    "another kernel": lambda c: c.replace("+", "-", 1),
}


@pytest.mark.parametrize("what", SMUGGLED)
def test_code_that_somebody_writes_into_a_journal_is_neither_tried_nor_packaged(tmp_path: Path, what: str) -> None:
    template = stranger(outer.text)
    path, text = kept(template, tmp_path)
    evil = KernelText(text.variant, SMUGGLED[what](text.kernel), text.edge)
    assert evil != text

    def change(line: dict[str, Any]) -> dict[str, Any]:
        if line["event"] == "finished":
            line["text"] = evil.id
        return {**line, **text_record(evil)} if line["event"] == "text" else line

    rewritten(path, change)
    with pytest.raises(
        JobError, match=rf"does not match this version: .* source {evil.id}, and now generates {text.id}"
    ):
        known(tmp_path).kernel(operator, platform, at(template))
    with pytest.raises(JobError, match="the journal does not match this version"):
        packaged(template, known(tmp_path))
    name = as_built(operator, platform, at(outer)).id  # shipped ones are no other case
    told = Texts({name: replace(evil, variant=name)})
    with pytest.raises(JobError, match="the journal does not match this version"):
        told.judged(operator, platform, at(outer))


def test_a_template_that_somebody_writes_into_a_journal_passes_the_gates_too(tmp_path: Path) -> None:
    """All of it is consistent: template, digest, text and the trial's id."""
    path, _ = kept(stranger(outer.text), tmp_path)
    template = stranger(f"system(1);\n{outer.text}")
    evil = KernelText(as_built(operator, platform, at(template)).id, "int x;")

    def change(line: dict[str, Any]) -> dict[str, Any]:
        if line["event"] == "template":
            return {**line, "digest": template.digest, "template": template_record(template)}
        if line["event"] == "started":
            return {**line, **trial_record(Trial("k", 0, Stage.BLOCKING, at(template)))}
        return {**line, **text_record(evil)} if line["event"] == "text" else line

    rewritten(path, change)
    with pytest.raises(JobError, match=r"now rejected .*calls:"):
        packaged(template, known(tmp_path))


def test_a_template_under_anothers_digest_has_no_trials(tmp_path: Path) -> None:
    path, _ = kept(stranger(outer.text), tmp_path)
    other = stranger(f"{outer.text} ")
    rewritten(path, lambda line: {**line, "template": template_record(other)} if line["event"] == "template" else line)
    with pytest.raises(JobError, match=r"damaged in line 3: .*no template [0-9a-f]{16} is in an earlier line"):
        known(tmp_path)


def test_a_trial_of_a_variant_that_has_another_id_is_refused(tmp_path: Path) -> None:
    path, _ = kept(stranger(outer.text), tmp_path)
    rewritten(path, lambda line: {**line, "blocking": {"mc": 32}} if line["event"] == "started" else line)
    with pytest.raises(JobError, match=r"damaged in line 3: .*the variant '[0-9a-f]{16}' is another one"):
        known(tmp_path)


def test_whose_a_template_is_no_journal_says(tmp_path: Path) -> None:
    """One that calls itself shipped would be rendered in the process itself."""
    kept(stranger(outer.text), tmp_path)
    with Journal.open(tmp_path, {}) as journal:
        (before,) = journal.history.replay()
        assert before.trial.variant.template.author == "llm"
        journal.history.trust([outer])
        (after,) = journal.history.replay()
    assert after.trial.variant.template == outer
    assert after.trial.variant.id == before.trial.variant.id


@pytest.mark.parametrize("field", ["name", "strategy", "needs", "reads"])
def test_what_a_journal_says_of_a_template_does_not_leave_its_comment(tmp_path: Path, field: str) -> None:
    evil = "x */ int evil; /*"
    value = {"needs": (evil,), "reads": {"a": evil}}.get(field, evil)
    with Journal.open(tmp_path, {}) as journal:
        journal.template(replace(stranger(outer.text), **{field: value}))
        job = Job("gemm", "generic", out=tmp_path)
        told = authoring.JobAuthor(job, operator, None, Seed.draw(1), tmp_path).templates(journal)
        with pytest.raises(JobError, match="no author could have written"):
            list(told)


def test_a_tunable_of_a_journal_is_a_number_or_a_word(tmp_path: Path) -> None:
    path, _ = kept(stranger(outer.text), tmp_path)
    rewritten(
        path,
        lambda line: {**line, "configuration": {"mr_vectors": "1; evil()"}} if line["event"] == "started" else line,
    )
    with pytest.raises(JobError, match="expected a number or a single word"):
        known(tmp_path)


def test_a_product_names_the_texts_it_is_made_of() -> None:
    texts = Texts()
    judged = texts.kernel(operator, platform, at(outer))
    assert isinstance(judged, KernelText)
    winners = [Winners("f32", (at(outer),), (Tree(Leaf(0)),))]
    part = OperatorPart(operator, winners, texts=texts)
    told = manifest.provenance(part, platform, text_ids(part, platform))
    assert told["dtypes"]["f32"]["variants"][0]["text"] == judged.id


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
    template = stranger(outer.text, tunables={**outer.tunables, name: ("evil",)})
    outcome = Texts().kernel(operator, platform, at(template, Point.of({**POINT, name: "evil"})))
    assert isinstance(outcome, Outcome)
    assert (outcome.kind, outcome.message.partition(":")[0]) == (Kind.REFUSED, Guard.TUNABLES.value)


def test_prose_of_a_template_does_not_leave_its_comment() -> None:
    template = stranger(
        outer.text, strategy="an idea */ __attribute__((constructor)) void f(void) {} /* \\\n\u202e?\u003f/"
    )
    text = Texts().kernel(operator, platform, at(template))
    assert isinstance(text, KernelText), text.message
    assert "constructor" not in tokens(text.kernel)
    assert text.kernel.isascii()


def test_a_text_belongs_to_a_variant_as_it_is_built() -> None:
    """What a call brings makes no text of its own; packing, which the kernel reads, does; and so does the VLEN."""
    texts = Texts()
    first = texts.kernel(operator, platform, at(outer))
    assert isinstance(first, KernelText)
    assert first.variant == as_built(operator, platform, at(outer)).id
    assert texts.kernel(operator, platform, at(outer, Point.of({**POINT, "mc": 128, "a_stationary": 1}))) is first
    alone = Point.of({name: value for name, value in POINT.items() if name not in operator.blocking.values})
    assert texts.kernel(operator, platform, at(outer, alone)) is first  # the first stage's: the defaults pack both
    others = [at(outer, Point.of({**POINT, "pack_b": 0})), at(outer).at(128)]
    assert len({first.variant, *(as_built(operator, platform, other).id for other in others)}) == 3

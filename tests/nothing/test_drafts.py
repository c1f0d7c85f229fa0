"""Draft texts: what is read, what the gate refuses, what a stranger's template can do to us (nothing)."""

import json
import random

import pytest

from tensorop import instantiate, render, render_apart
from tensorop.author import gate, offline
from tensorop.author.parse import parse
from tensorop.errors import SpecError
from tensorop.model.kernel import Draft
from tensorop.model.trial import Kind, Outcome
from tensorop.specs import catalog, operators, platforms, primitives

HEAD = """---
strategy: one idea
reads: {a: columns}
needs: [fma]
tunables: {mv: [1, 2], order: [ab, ba]}
constraints:
  - {must: mv < 2 or order == 'ab', reason: room}
---
"""


def read(text):
    return parse(text, operator="op", name="d", author="llm")


def test_a_draft_is_read():
    draft = read("\n" + HEAD + "x = {{ mv }};\n")
    assert draft.text == "x = {{ mv }};\n"
    assert draft.tunables == {"mv": (1, 2), "order": ("ab", "ba")}
    assert [c.reason for c in draft.constraints] == ["room"]
    assert (draft.author, draft.strategy, draft.needs) == ("llm", "one idea", ("fma",))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("---\n", "", "expected a head between two lines of '---'"),
        ("room}\n---", "room}\n--", "no closing line of '---'"),
        ("strategy: one idea\n", "", "missing key 'strategy'"),
        ("needs", "need", "unknown key 'need'"),
        ("[1, 2]", "[1, 2.5]", "key 'tunables.mv"),
        ("[1, 2]", "[1, true]", "key 'tunables.mv"),
        ("[1, 2]", "3", "key 'tunables.mv'"),
        ("[1, 2]", "[]", "key 'tunables.mv': expected 1 to 64 values"),
        ("[1, 2]", "[1, 99999999]", "99999999 is beyond"),
        ("{mv:", "{mv: [1], mv:", "key 'mv' stands twice"),
        ("{mv:", "{'__class__':", "tunables.__class__': expected a lower-case name"),
        ("[ab, ba]", "[ab, '*/ evil']", "expected numbers or single words"),
        ("one idea", "'one */ int x; /* idea'", "marks that do not belong"),
        ("one idea", '"one \\\\ idea"', "marks that do not belong"),
        ("reason: room", "reason: 'room */'", "marks that do not belong"),
        ("{a: columns}", "{a: '*/ columns'}", "key 'reads'"),
        ("[fma]", "['fma(']", "key 'needs'"),
        ("one idea", "&x one idea\nreads: {b: *x}", "anchors are not allowed|stands twice"),
        ("{a: columns}", "!!python/object/apply:os.system [id]", "not readable as YAML"),
        ("one idea", "x" * 9000, "at most 8192 are read"),
        ("x = {{ mv }};", "  ", "nothing follows the head"),
        ("x = {{ mv }};", "x" * 70000, "at most 65536 are read"),
    ],
)
def test_a_broken_head_is_refused_with_its_key(old, new, complaint):
    text = HEAD + "x = {{ mv }};\n"
    assert old in text
    with pytest.raises(SpecError, match=complaint) as caught:
        read(text.replace(old, new, 1))
    assert "draft 'd'" in str(caught.value)


@pytest.fixture(scope="module")
def operator(tmp_path_factory):
    """A folder of templates with one function around the draft."""
    folder = tmp_path_factory.mktemp("op")
    (folder / "kernel.c.j2").write_text(
        '#include <stddef.h>\nstatic void k(size_t n, const float *a, float *c)\n{\n{% include "draft" %}\n}\n'
    )
    (folder / "secret.txt").write_text("sk-12345")
    return folder


@pytest.fixture(scope="module")
def vocabulary():
    return primitives.vocabulary(platforms.load("rvv"), "f32")


def draft_of(body, **more):
    return Draft("op", "d", "llm", "s", body, **more)


def admit(operator, vocabulary, body, **more):
    def rendered(draft):
        return render_apart.text(operator, {"draft": draft.text}, "kernel.c.j2", {"mv": 2, "n": 3}, vocabulary, 5)

    return gate.admit(draft_of(body, **more), vocabulary, rendered)


GOOD = """
    /* don't worry: "quotes" and #marks in comments say nothing */
    const size_t lanes = {{ full() }}; // nor here's one
{% for i in range(mv) %}
    vfloat32m1_t v{{ i }} = {{ zero("lanes") }};
{% endfor %}
    for (size_t i = 0; i < (n); i += lanes) {
        if (i) v0 = {{ fma("v0", "v1", "*(const float *)(a + i)", "lanes") }};
        c[i] = (float)(a[i]) + 0x1p-3f;
    }
    return;
"""


def test_honest_text_passes_unchanged(operator, vocabulary):
    source = admit(operator, vocabulary, GOOD)
    plain = render.text(
        render.environment(operator, {"draft": GOOD}), "kernel.c.j2", {"mv": 2, **render.words(vocabulary)}
    )
    assert source == plain


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("#include <stdio.h>\n", "'#'"),
        ("%: include <stdio.h>\n", "'%:'"),
        ("??=include <stdio.h>\n", "trigraph"),
        ("{{ '#' }}define x y\n", "'#'"),
        ("_Pragma(x)\n", "'_Pragma'"),
        ('asm volatile ("nop");\n', "'\"'"),
        ("__asm__ (nop);\n", "'__asm__'"),
        ("a\\\nsm(nop);\n", "backslash"),
        ('system("rm -rf /");\n', "'\"'"),
        ("system(a);\n", "calls 'system'"),
        ("{{ 'sys' ~ 'tem' }}(a);\n", "calls 'system'"),
        ("system /* really */ (a);\n", "calls 'system'"),
        ("(system)(a);\n", "calls an expression"),
        ("(*(void (*)(void))a)();\n", "calls"),
        ("void (*f)(void) = (void *)a; f();\n", "calls"),
        ("((size_t)a)(n);\n", "calls an expression"),
        ("a[0](n);\n", "calls an expression"),
        ("int uint8_t = 0; system(uint8_t);\n", "calls 'system'"),
        ("int uint8_t = 0; (system)(uint8_t);\n", "calls an expression"),
        ("float (*f)(float);\n", "calls"),
        ("float f(float);\n", "calls 'f'"),
        ("k(n, a, c);\n", "calls 'k'"),
        ("__builtin_trap();\n", "'__builtin_trap'"),
        ("__riscv_vse64_v_i64m1(c, v, 1);\n", "'__riscv_vse64_v_i64m1'"),
        ("__attribute__((constructor)) int x;\n", "'__attribute__'"),
        ("static int calls = 0;\n", "'static'"),
        ("extern char **environ;\n", "'extern'"),
        ("goto out; out:;\n", "'goto'"),
        ("char x = 'a';\n", '"\'"'),
        ("}\nint evil;\n{\n", "brackets do not match"),
        ("} /* { */\n", "brackets do not match"),
        ("(void)0; /* \n", "'/*'"),
        ("c[0] = 1; // swallow", "swallow what follows"),
        ("c[0] = \u0430;\n", "beyond ASCII"),
        ("int x = ({ 1; });\n", "'({'"),
        ("<% %>\n", "'<%'"),
    ],
)
def test_c_beyond_the_kernel_is_refused(operator, vocabulary, body, complaint):
    outcome = admit(operator, vocabulary, body)
    assert isinstance(outcome, Outcome), outcome
    assert (outcome.kind, outcome.where) == (Kind.REFUSED, "author")
    assert complaint in outcome.message


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("{% include 'secret.txt' %}", "'include' is not allowed"),
        ("{% extends 'secret.txt' %}", "'extends' is not allowed"),
        ("{% import 'kernel.c.j2' as k %}", "'import' is not allowed"),
        ("{% block x %}{% endblock %}", "'block' is not allowed"),
        ("{{ ''.__class__ }}", "'__class__'"),
        ("{{ ''['__class__'] }}", "'__class__'"),
        ("{{ mv|attr('real') }}", "the filter 'attr'"),
        ("{{ [1]|map('upper') }}", "the filter 'map'"),
        ("{{ self }}", "'self'"),
        ("{% set ns = namespace(x=1) %}", "'namespace'"),
        ("{{ 2 ** 9 }}", "'pow' is not allowed"),
        ("line\n{{ 1", "line 2:"),
        ("{% for %}", "line 1:"),
    ],
)
def test_templates_beyond_computing_are_refused(vocabulary, body, complaint):
    outcome = gate.check_template(draft_of(body), vocabulary)
    assert outcome is not None
    assert outcome.kind is Kind.REFUSED
    assert complaint in outcome.message


def test_needs_and_names_are_held_against_the_platform(vocabulary):
    lacking = gate.check_template(draft_of("x", needs=("fma", "gather")), vocabulary)
    assert lacking is not None
    assert "needs gather" in lacking.message
    shadowing = gate.check_template(draft_of("x", tunables={"fma": (1, 2)}), vocabulary)
    assert shadowing is not None
    assert "name of a primitive" in shadowing.message


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("{{ 'x' * 9000000000 }}", "more than 1024 MiB|MemoryError|died"),
        ("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", "recursion|without end"),
        ("{{ nobody }}", "'nobody' is undefined"),
        ("{{ 1 // 0 }}", "zero"),
        ("{{ fma(1) }}", "takes 4 arguments"),
        ("{{ range(999999999)|length }}", "[Rr]ange"),
        ("{{ 'x' * 5000000 }}", "rendered to 500"),
        ("{{ refuse('not here') }}", "not here"),
    ],
)
def test_templates_that_run_wild_are_stopped(operator, vocabulary, body, complaint):
    with pytest.raises(render.RenderError, match=complaint):
        admit(operator, vocabulary, body)


def test_a_template_without_end_is_stopped(operator, vocabulary):
    loops = "{% for a in range(99999) %}" * 4 + "x" + "{% endfor %}" * 4
    with pytest.raises(render.RenderError, match="took more than 1 s"):
        render_apart.text(operator, {"draft": loops}, "kernel.c.j2", {}, vocabulary, 1)


def test_context_that_travels_is_plain(vocabulary):
    """What a stranger's template sees goes to its process as JSON and comes out the same."""
    op, platform = operators.load("gemm"), platforms.load("rvv")
    draft = offline.drafts(op.folder, op.name)[0]
    point = instantiate.micro_space(op, platform, draft, "f32").at(0)
    context = instantiate.context(op, platform, draft, point, "f32")
    plain = {name: value for name, value in context.items() if name not in vocabulary.spoken}
    travelled = json.loads(json.dumps(plain))
    assert {k: tuple(v) if isinstance(v, list) else v for k, v in travelled.items()} == plain


@pytest.mark.parametrize("platform_name", catalog.names("platforms"))
def test_shipped_drafts_pass_the_same_gate(platform_name):
    platform = platforms.load(platform_name)
    for name in catalog.names("templates"):
        op = operators.load(name)
        for draft in offline.drafts(op.folder, op.name):
            if instantiate.missing_words(platform, draft, "f32"):
                continue
            for point in instantiate.micro_space(op, platform, draft, "f32").sample(random.Random(0), 2):
                admit_shipped(op, platform, draft, point)


def admit_shipped(op, platform, draft, point):
    def rendered(text):
        return instantiate.candidate(op, platform, text, point, "f32").files[0][1]

    words, *also = instantiate.vocabularies(platform, draft, point, "f32")
    source = gate.admit(draft, words, rendered, also)
    assert source == rendered(draft), (draft.name, str(point))

"""KernelTemplate texts: what is read, what the gate refuses, what a stranger's template can do to us (nothing)."""

import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tensorop.author import c_gate, gate, offline
from tensorop.author.addresses.linear import Facts, number, symbol
from tensorop.author.parse import parse
from tensorop.errors import SpecError
from tensorop.model.kernel import KernelTemplate, KernelText
from tensorop.model.point import Point
from tensorop.model.trial import Kind, Outcome
from tensorop.render import apart, instantiate, render
from tensorop.render.texts import Texts
from tensorop.specs import catalog, operators, platforms
from tests.support.classes import some

HEAD = """---
strategy: one idea
reads: {a: columns}
needs: [fma]
tunables: {mr_vectors: [1, 2], order: [ab, ba]}
constraints:
  - {must: mr_vectors < 2 or order == 'ab', reason: room}
---
"""


def read(text):
    return parse(text, operator="op", name="d", author="llm")


def test_a_template_is_read():
    template = read("\n" + HEAD + "x = {{ mr_vectors }};\n")
    assert template.text == "x = {{ mr_vectors }};\n"
    assert template.tunables == {"mr_vectors": (1, 2), "order": ("ab", "ba")}
    assert [c.reason for c in template.constraints] == ["room"]
    assert (template.author, template.strategy, template.needs) == ("llm", "one idea", ("fma",))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("---\n", "", "expected a head between two lines of '---'"),
        ("room}\n---", "room}\n--", "expected a line '---' at the end of the head"),
        ("strategy: one idea\n", "", "missing key 'strategy'"),
        ("needs", "need", "unknown key 'need'"),
        ("[1, 2]", "[1, 2.5]", "key 'tunables.mr_vectors"),
        ("[1, 2]", "[1, true]", "key 'tunables.mr_vectors"),
        ("[1, 2]", "3", "key 'tunables.mr_vectors'"),
        ("[1, 2]", "[]", "key 'tunables.mr_vectors': expected 1 to 64 values"),
        ("[1, 2]", "[1, 99999999]", "expected numbers up to .*, got 99999999"),
        ("{mr_vectors:", "{mr_vectors: [1], mr_vectors:", "key 'mr_vectors' appears twice"),
        ("{mr_vectors:", "{'__class__':", "tunables.__class__': expected a lower-case name"),
        ("[ab, ba]", "[ab, '*/ evil']", "expected numbers or single words"),
        ("one idea", "'one */ int x; /* idea'", "characters that are not allowed"),
        ("one idea", '"one \\\\ idea"', "characters that are not allowed"),
        ("reason: room", "reason: 'room */'", "characters that are not allowed"),
        ("{a: columns}", "{a: '*/ columns'}", "key 'reads'"),
        ("[fma]", "['fma(']", "key 'needs'"),
        ("one idea", "&x one idea\nreads: {b: *x}", "anchors are not allowed|appears twice"),
        ("{a: columns}", "!!python/object/apply:os.system [id]", "no tags are"),
        ("one idea", "x" * 13000, "at most 12288 are read"),
        ("x = {{ mr_vectors }};", "  ", "expected C text after the head"),
        ("x = {{ mr_vectors }};", "x" * 70000, "at most 65536 are read"),
    ],
)
def test_a_broken_head_is_refused_with_its_key(old, new, complaint):
    text = HEAD + "x = {{ mr_vectors }};\n"
    assert old in text
    with pytest.raises(SpecError, match=complaint) as caught:
        read(text.replace(old, new, 1))
    assert "template 'd'" in str(caught.value)


@pytest.fixture(scope="module")
def operator(tmp_path_factory):
    """A folder of templates with one function around the template."""
    folder = tmp_path_factory.mktemp("op")
    (folder / "kernel.c.j2").write_text(
        "#include <stddef.h>\nstatic void k(size_t n, const float *a, float *c)\n{\n"
        "/*@ reads(a, n, 1); writes(c, n, 1); */\n"
        '{% include "template" %}\n}\n'
    )
    (folder / "secret.txt").write_text("sk-12345")
    return folder


@pytest.fixture(scope="module")
def primitives():
    return platforms.load("rvv").primitives_of("f32")


def template_of(body, **more):
    return KernelTemplate("op", "d", "llm", "s", body, **more)


def admit(operator, primitives, body):
    """The C of a template between gate and expansion, as `texts` makes it."""
    outcome = gate.check_template(template_of(body), primitives)
    if outcome is not None:
        return outcome
    arities = {name: len(one.args) for name, one in primitives.with_aliases.items()}
    context = {"mr_vectors": 2, "n": 3}
    (source,) = apart.texts(operator, c_gate.marked(body), "kernel.c.j2", [context], arities, 5)
    callables = instantiate.callables(primitives)
    read = c_gate.read(source, body, primitives, callables)
    return read if isinstance(read, Outcome) else render.expand(c_gate.unmarked(read.trapped(), body), callables)


GOOD = """
    /* don't worry: "quotes" and #marks in comments say nothing */
    const size_t lanes = {{ full() }}; // nor here's one
{% for i in range(mr_vectors) %}
    vfloat32m1_t v{{ i }} = {{ zero("lanes") }};
{% endfor %}
    for (size_t i = 0; i < (n); i += lanes) {
        if (i) v0 = {{ fma("v0", "v1", "*(a + i)", "lanes") }};
        c[i] = (a[i]) + 0.f;
    }
"""


def test_honest_text_passes_unchanged(operator, primitives):
    source = admit(operator, primitives, GOOD)
    plain = render.text(
        render.environment(operator, {"template": GOOD}),
        "kernel.c.j2",
        {"mr_vectors": 2, **render.functions(primitives)},
    )
    assert source == c_gate.unmarked(plain, GOOD)


EXPONENTIAL = """
    const size_t vl = {{ tail("n < lanes() ? n : lanes()") }};
    const vfloat32m1_t v = {{ exp(load_tail("a", "vl"), "vl") }};
    for (size_t i = 0; i < n; i++) c[i] = {{ max_across("v", "vl") }};
"""


def test_the_support_of_a_primitive_stands_once_and_only_before_kernels_that_call_it(operator, primitives):
    support = primitives.by_name["exp"].support
    assert support.count("tensorop_scale2_f32m1(") == 2  # its definition, and the call
    assert admit(operator, primitives, EXPONENTIAL).startswith(support + "\n#include")
    nested = EXPONENTIAL.replace('exp(load_tail("a", "vl"), "vl")', 'exp(exp(load_tail("a", "vl"), "vl"), "vl")')
    assert admit(operator, primitives, nested).count(support) == 1
    assert "tensorop_exp" not in admit(operator, primitives, GOOD)
    text = render.text(render.environment(operator, {"t": "{{ exp.support }}"}), "t", render.functions(primitives))
    assert text == support


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ('max_across("v", "full()")', "'max_across' reads lanes lanes of a vector"),
        ('sum(select("v", "v", "vl"))', "'sum' reads lanes lanes of a vector"),
        ('sum(select("v", zero("full()"), "vl"))', None),  # it has all lanes of w
        ('max_across(select("v", "v", "vl"), "vl")', None),
    ],
)
def test_lanes_that_were_never_written_are_not_read(operator, primitives, value, complaint):
    made = admit(operator, primitives, EXPONENTIAL.replace('max_across("v", "vl")', value))
    if complaint is None:
        assert isinstance(made, str), made
    else:
        assert complaint in made.message


def test_a_function_that_configurations_share_is_proved_once(primitives, monkeypatch):
    callables, prove, ran = instantiate.callables(primitives), c_gate.prove, []

    def counted(*given):
        ran.append(given)
        return prove(*given)

    monkeypatch.setattr(c_gate, "prove", counted)

    def refused(name, text):
        head = f"#include <stddef.h>\nstatic void {name}(size_t n, const float *a, float *c)\n{{\n"
        contract = "/*@ reads(a, n, 1); writes(c, n, 1); */\n"
        return c_gate.read(f"{head}{contract}{c_gate.marked(text)}}}\n", text, primitives, callables)

    inside, outside = (
        "for (size_t i = 0; i < n; i++) c[i] = a[i];\n",
        "for (size_t i = 0; i < n; i++) c[i + 1] = a[i];\n",
    )
    assert not any(isinstance(refused(name, inside), Outcome) for name in ("one", "two"))
    assert len(ran) == 1
    assert all(
        "bounds" in refused(name, outside).message for name in ("one", "two")
    )  # what is refused is looked at anew
    assert len(ran) == 3


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("{% include 'secret.txt' %}", "'include' is not allowed"),
        ("{% extends 'secret.txt' %}", "'extends' is not allowed"),
        ("{% import 'kernel.c.j2' as k %}", "'import' is not allowed"),
        ("{% block x %}{% endblock %}", "'block' is not allowed"),
        ("{{ ''.__class__ }}", "'__class__'"),
        ("{{ ''['__class__'] }}", "'__class__'"),
        ("{{ mr_vectors|attr('real') }}", "the filter 'attr'"),
        ("{{ [1]|map('upper') }}", "the filter 'map'"),
        ("{{ self }}", "'self'"),
        ("{% set ns = namespace(x=1) %}", "'namespace'"),
        ("{{ 2 ** 9 }}", "'pow' is not allowed"),
        ("line\n{{ 1", "line 2:"),
        ("{% for %}", "line 1:"),
    ],
)
def test_templates_beyond_computing_are_refused(primitives, body, complaint):
    outcome = gate.check_template(template_of(body), primitives)
    assert outcome is not None
    assert outcome.kind is Kind.REFUSED
    assert complaint in outcome.message


def test_needs_and_names_are_held_against_the_platform(primitives):
    lacking = gate.check_template(template_of("x", needs=("fma", "gather")), primitives)
    assert lacking is not None
    assert "needs gather" in lacking.message
    shadowing = gate.check_template(template_of("x", tunables={"fma": (1, 2)}), primitives)
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
        ("{{ 'x' * 5000000 }}", "rendered to more than"),
        ("{{ refuse('not here') }}", "not here"),
    ],
)
def test_templates_that_run_wild_are_stopped(operator, primitives, body, complaint):
    with pytest.raises(render.RenderError, match=complaint):
        admit(operator, primitives, body)


def test_a_template_without_end_is_stopped(operator, primitives):
    loops = "{% for a in range(99999) %}" * 4 + "{% endfor %}" * 4
    with pytest.raises(render.RenderError, match="took more than 1 s"):
        apart.texts(operator, loops, "kernel.c.j2", [{}], {}, 1)


def test_context_that_travels_is_plain(primitives):
    """What a stranger's template sees goes to its process as JSON and comes out the same."""
    op, platform = operators.load("gemm"), platforms.load("rvv")
    template = offline.templates(op.folder, op.name)[0]
    point = instantiate.micro_space(platform, template, "f32").at(0)
    for context, _ in instantiate.kernel_contexts(op, platform, instantiate.variant(op, template, "f32", point)):
        assert json.loads(json.dumps(context)) == context
        own = context.keys() - template.tunables.keys()
        assert own <= instantiate.reserved(op, platform, "f32")


@pytest.mark.covers("platform {platform_name}")
@pytest.mark.parametrize(
    "platform_name",
    some(
        [p.name for p in platforms.whole() if p.device is None] + ["native"],
        lambda name: name in ("avx512", "generic", "neon", "rvv"),
    ),
)
def test_shipped_templates_pass_the_same_gate(platform_name):
    """Each of any operator at one point of one dtype, packed and in place: another one on each platform."""
    platform, draw = platforms.load(platform_name), random.Random(platform_name)
    admitted = 0
    for name in catalog.names("templates"):
        op = operators.load(name)
        direct = offline.direct(op.folder, op.name)
        for template in (*offline.templates(op.folder, op.name, op.added), *([direct] if direct else [])):
            dtypes = [d for d in op.dtypes if d in platform.dtypes]
            dtype = draw.choice(
                [d for d in dtypes if not instantiate.missing_primitives(platform, template, d)] or [""]
            )
            for point in instantiate.micro_space(platform, template, dtype).sample(draw, 1) if dtype else ():
                packed = draw.choice((0, 1)) if not platform.formats(dtype).widened else 1
                chosen = Point.of(
                    {**point, **({"pack_a": packed, "pack_b": packed} if "pack_a" in op.defaults else {})}
                )
                chosen = instantiate.defaults(op, platform, dtype, chosen)
                text = Texts().kernel(op, platform, instantiate.variant(op, template, dtype, chosen))
                assert isinstance(text, KernelText), (template.name, str(chosen), text.message)
                admitted += 1
    assert admitted


def test_threads_that_ask_what_is_known_get_the_same_answer():
    """Jobs read templates side by side: what one of them has begun to look up is no answer for another."""
    switched = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for turn in range(120):
                names = [symbol(f"s{turn}_{i}") for i in range(60)]
                facts = Facts(tuple(number(i + 1) - name for i, name in enumerate(names)))
                asked = [names[k:] + names[:k] for k in (0, 15, 30, 45)]
                ready = Barrier(4)

                def prove(some, facts=facts, ready=ready):
                    ready.wait()
                    return all(facts.prove(number(60) - one) for one in some)

                assert all(pool.map(prove, asked))
    finally:
        sys.setswitchinterval(switched)

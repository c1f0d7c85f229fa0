"""C that a template must not become: each piece is refused by the guard whose business it is, and honest C passes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tensorop.author import c_gate, gate
from tensorop.author.gate import Guard
from tensorop.model.kernel import KernelTemplate
from tensorop.model.primitive import Primitives
from tensorop.model.trial import Kind, Outcome
from tensorop.render import instantiate, render
from tensorop.specs import platforms

AROUND = """\
#include <stddef.h>
typedef int other_t;
static void helper(void);
static void k(size_t n, const float *restrict a, float *restrict c, const float *const *rows)
{
    const size_t lanes = 4;
    const size_t full = lanes;
{% include "template" %}
}
"""
rvv = platforms.load("rvv").primitives_of("f32")


def judged(body: str, primitives: Primitives = rvv) -> Outcome | str:
    """The C of a template once gate and expansion are through with it."""
    outcome = gate.check_template(KernelTemplate("op", "d", "llm", "s", body), primitives)
    if outcome is not None:
        return outcome
    env = render.environment(Path(__file__).parent, {"k": AROUND, "template": c_gate.marked(body)})
    said = {name: render.Call(name, len(primitive.args)) for name, primitive in primitives.with_aliases.items()}
    source = render.text(env, "k", said)
    callables = instantiate.callables(primitives)
    return c_gate.read(source, body, primitives, callables) or render.expand(c_gate.unmarked(source, body), callables)


HONEST = [
    "(void)n;\n",
    "/* don't worry: \"quotes\" and #marks in comments say nothing */\n// nor here's one\n",
    "for (size_t i = 0; i < (n); i += lanes) { c[i] = (float)(a[i]) + 0x1p-3f; }\nreturn;\n",
    "const vfloat32m1_t v = {{ load('a + 4', 'full') }};\n{{ store('c', fma('v', 'v', 'a[3]', 'full'), 'full') }};\n",
    "const float *p = a + n; float s = 0; while (p-- != a) s += *p; c[0] = s;\n",
    "float part[4] = {0, 1.5e+3f, .5f, 1}; float *q = part; q += 2; *q = a[0]; c[1] = part[2];\n",
    "const char *bytes = (const char *)(a + n); (void)bytes;\n",
    "switch (n) { case 1: c[0] = 0; break; default: c[0] = n > 2 ? a[1] : -a[0]; }\n",
    "do { if (n & 1) continue; --n; } while (n);\n",
    "const float *const r0 = rows[0], *r1 = rows[1]; c[0] = r0[0] * r1[0];\n",
    "unsigned long long x = (unsigned long long)n << 3, y = x ^ 0xffu; c[0] = (float)(y % 7 + sizeof(float));\n",
    "{{ prefetch('a + 64') }};\n{{ order('a') }};\n",
    "vfloat32m1_t load = {{ zero('full') }}, store = load; {{ store('c', 'store', 'full') }};\n",
    "c[0] = 1; /* load( */ // zero((((\n",
]

ATTACKS = [
    # characters: what would tell the compiler from the reader
    ("c[0] = 1; // comment\r system(a);\n", Guard.CALLS),  # a template's line end is one of its C
    ("c[0] = 1; // comment{{ '\\r' }} system(a);\n", Guard.CHARACTERS),
    ("c[0] = 1; // comment{{ '\\x0d' }} asm(nop);\n", Guard.CHARACTERS),
    ("c[0] = 1; // comment{{ '%c' % 13 }}static int x;\n", Guard.CHARACTERS),
    ("c[0] = 1; // comment\x0b system(a);\n", Guard.CHARACTERS),
    ("c[0] = 1; // comment\x0c#include <stdio.h>\n", Guard.CHARACTERS),
    ("c[0] = 1; // comment\u2028 system(a);\n", Guard.CHARACTERS),
    ("c[0] = 1; // comment\x85 system(a);\n", Guard.CHARACTERS),
    ("c[0] = 1; /* \u202e */\n", Guard.CHARACTERS),
    ("c[0] = \u0430;\n", Guard.CHARACTERS),
    ("c[0] = 1;\x00\n", Guard.CHARACTERS),
    ("c[0] = 1;\x1a\n", Guard.CHARACTERS),
    ("c[0] = 1;\x7f\n", Guard.CHARACTERS),
    ("c[0] = a\ufeff[0];\n", Guard.CHARACTERS),
    ("c[0] = 1; // joined \\\n c[0] = 2;\n", Guard.CHARACTERS),
    ("a\\\nsm(nop);\n", Guard.CHARACTERS),
    ("c[0] = 1; // joined ??/\n c[0] = 2;\n", Guard.CHARACTERS),
    ("#include <stdio.h>\n", Guard.CHARACTERS),
    ("{{ '#' }}embed </etc/shadow>\n", Guard.CHARACTERS),
    ("/* */ # pragma comment(lib, x)\n", Guard.CHARACTERS),
    ("%: include <stdio.h>\n", Guard.CHARACTERS),
    ("%:%: x\n", Guard.CHARACTERS),
    ("??=include <stdio.h>\n", Guard.CHARACTERS),
    ("<% c[0] = 1; %>\n", Guard.CHARACTERS),
    ("c<:0:> = 1;\n", Guard.CHARACTERS),
    ('asm volatile ("nop");\n', Guard.CHARACTERS),
    ('c[0] = *(float *)"text";\n', Guard.CHARACTERS),
    ("char x = 'a';\n", Guard.CHARACTERS),
    ("c[0] = `id`;\n", Guard.CHARACTERS),
    ("float $x = 1;\n", Guard.CHARACTERS),
    ("c[0] = @1;\n", Guard.CHARACTERS),
    # syntax: what would leave the function, or take what follows with it
    ("}\nint evil;\nvoid other(void) {\n", Guard.SYNTAX),
    ("}\n__attribute__((constructor)) static void other(void) {\n", Guard.SYNTAX),
    ("{\n", Guard.SYNTAX),
    ("}\n", Guard.SYNTAX),
    ("} /* { */\n", Guard.SYNTAX),
    ("if (n)", Guard.SYNTAX),
    ("c[0] = 1", Guard.SYNTAX),
    ("for (;;)", Guard.SYNTAX),
    ("(void)0; /* \n", Guard.SYNTAX),
    ("c[0] = 1; // swallow", Guard.SYNTAX),
    ("c[0] = fma(a[0];\n", Guard.SYNTAX),
    ("((((((((c\n", Guard.SYNTAX),
    ("int 3x;\n", Guard.SYNTAX),
    ("{{ load('a)); system((a', 'full') }};\n", Guard.SYNTAX),
    ("{{ load('a, full); system(a', 'full') }};\n", Guard.CALLS),
    # grammar: kinds of statements and declarations that no kernel needs
    ("asm(nop);\n", Guard.SYNTAX),
    ("__asm__ (nop);\n", Guard.SYNTAX),
    ("static int calls = 0;\n", Guard.GRAMMAR),
    ("static const float kept[4];\n", Guard.GRAMMAR),
    ("extern char **environ;\n", Guard.GRAMMAR),
    ("register float x = 1;\n", Guard.GRAMMAR),
    ("auto float x = 1;\n", Guard.GRAMMAR),
    ("_Thread_local static int x;\n", Guard.SYNTAX),
    ("__thread int x;\n", Guard.GRAMMAR),
    ("thread_local int x;\n", Guard.GRAMMAR),
    ("volatile float x = 1;\n", Guard.GRAMMAR),
    ("_Atomic float x = 1;\n", Guard.GRAMMAR),
    ("typedef float g(float);\n", Guard.GRAMMAR),
    ("struct { float f; } s;\n", Guard.GRAMMAR),
    ("union { float f; size_t n; } s;\n", Guard.GRAMMAR),
    ("enum { A };\n", Guard.GRAMMAR),
    ("goto out; out:;\n", Guard.GRAMMAR),
    ("again: c[0] = 1;\n", Guard.GRAMMAR),
    ("void *p = &&again; again: goto *p;\n", Guard.SYNTAX),
    ("int x = ({ 1; });\n", Guard.GRAMMAR),
    ("__attribute__((constructor)) int x;\n", Guard.GRAMMAR),
    ("int x __attribute__((section));\n", Guard.SYNTAX),
    ("float x __attribute__((cleanup(helper)));\n", Guard.SYNTAX),
    ("int f(void) __attribute__((ifunc));\n", Guard.GRAMMAR),
    ("extern int f(void) __attribute__((alias));\n", Guard.GRAMMAR),
    ("[[gnu::constructor]] int x;\n", Guard.GRAMMAR),
    ("__declspec(naked) int x;\n", Guard.GRAMMAR),
    ("_Alignas(64) float x;\n", Guard.GRAMMAR),
    ("float f(float);\n", Guard.GRAMMAR),
    ("float (*f)(float);\n", Guard.GRAMMAR),
    ("void (*f)(void) = (void *)a; f();\n", Guard.GRAMMAR),
    ("void inner(void) { c[0] = 1; }\n", Guard.GRAMMAR),
    ("inline void inner(void) { c[0] = 1; }\n", Guard.GRAMMAR),
    ("c[0] = _Generic(n, size_t: 1);\n", Guard.GRAMMAR),
    ("c[0] = ((float[]){1, 2})[0];\n", Guard.GRAMMAR),
    ("c[0] = a->x;\n", Guard.GRAMMAR),
    ("c[0] = (a[0]).x;\n", Guard.GRAMMAR),
    ("c = NULL;\n", Guard.GRAMMAR),
    ("float x[2] = {[0] = 1};\n", Guard.GRAMMAR),
    ("__extension__ c[0] = 1;\n", Guard.GRAMMAR),
    ("int __stdcall x;\n", Guard.GRAMMAR),
    # calls: of anything that is no primitive
    ("system(a);\n", Guard.CALLS),
    ("{{ 'sys' ~ 'tem' }}(a);\n", Guard.CALLS),
    ("system /* really */ (a);\n", Guard.CALLS),
    ("system // really\n (a);\n", Guard.CALLS),
    ("(system)(a);\n", Guard.CALLS),
    ("(*(void (*)(void))a)();\n", Guard.GRAMMAR),
    ("a[0](n);\n", Guard.CALLS),
    ("k(n, a, c, rows);\n", Guard.CALLS),
    ("helper();\n", Guard.CALLS),
    ("_Pragma(x)\n", Guard.SYNTAX),
    ("_Pragma(x);\n", Guard.CALLS),
    ("__builtin_trap();\n", Guard.CALLS),
    ("c[0] = __builtin_va_arg(a, float);\n", Guard.CALLS),
    ("__riscv_vse64_v_i64m1(c, v, 1);\n", Guard.CALLS),
    ("vfloat32m1_t v = __riscv_vle32_v_f32m1(a, 4);\n", Guard.CALLS),  # a primitive's own C, said by the template
    ("float alloca_ = *(float *)alloca(64);\n", Guard.CALLS),
    ("int uint8_t = 0; system(uint8_t);\n", Guard.CALLS),
    ("int uint8_t = 0; c[0] = (uint8_t)(n);\n", Guard.NAMES),
    ("c[0] = load(a);\n", Guard.CALLS),
    ("c[0] = fma(a, a, a, a, a);\n", Guard.CALLS),
    ("float typeof_ = 0; typeof(n) x = 1;\n", Guard.GRAMMAR),
    ("__auto_type x = 1;\n", Guard.TYPES),
    # types and names
    ("FILE *f;\n", Guard.TYPES),
    ("other_t x = 1;\n", Guard.TYPES),
    ("uintptr_t x = 1;\n", Guard.TYPES),
    ("__m256 v;\n", Guard.TYPES),  # of another set
    ("c[0] = *environ;\n", Guard.NAMES),
    ("c[0] = errno;\n", Guard.NAMES),
    ("c[0] = (float)SIZE_MAX;\n", Guard.NAMES),
    ("c[0] = __COUNTER__;\n", Guard.NAMES),
    ("c[0] = __LINE__ % 2;\n", Guard.NAMES),
    ("c[0] = k != 0;\n", Guard.NAMES),  # the address of the function itself
    ("c[0] = (float)(helper != 0);\n", Guard.NAMES),
    ("float __riscv_vle32_v_f32m1 = 1;\n", Guard.NAMES),
    ("float _mine = 1;\n", Guard.NAMES),
    ("float vfloat32m1_t = 1;\n", Guard.NAMES),
    # storage and pointers
    ("float x[n]; x[0] = 1;\n", Guard.STORAGE),
    ("float x[100000000]; x[0] = 1;\n", Guard.STORAGE),
    ("float x[-1];\n", Guard.STORAGE),
    ("float *p = (float *)0x7fff0000; *p = 1;\n", Guard.POINTERS),
    ("float *p = (float *)n; *p = 1;\n", Guard.POINTERS),
    ("float *p = (float *)(a - (const float *)16); *p = 1;\n", Guard.POINTERS),
    ("size_t x = (size_t)a; c[0] = x;\n", Guard.POINTERS),
    ("float **p = (float **)c; **p = 1;\n", Guard.POINTERS),
    ("float *q = c; size_t *w = (size_t *)&q; *w = 16;\n", Guard.POINTERS),
    ("size_t *w = (size_t *)rows; *w = 16;\n", Guard.POINTERS),
    ("float *q = c; {{ store('&q', zero('full'), 'full') }};\n", Guard.POINTERS),
    ("{{ store('n', zero('full'), 'full') }};\n", Guard.POINTERS),
    ("c[0] = ((const float *)(n ? 16 : 32))[0];\n", Guard.POINTERS),
    ("c[0] = *(const float *)(c[0] = 3);\n", Guard.POINTERS),
]


@pytest.mark.parametrize("body", HONEST)
def test_honest_c_passes_and_speaks_primitives(body: str) -> None:
    source = judged(body)
    assert isinstance(source, str), source.message
    assert "begins*/" not in source


@pytest.mark.parametrize(("body", "guard"), ATTACKS)
def test_c_beyond_the_kernel_is_refused_by_its_guard(body: str, guard: Guard) -> None:
    outcome = judged(body)
    assert isinstance(outcome, Outcome), outcome
    assert (outcome.kind, outcome.where) == (Kind.REFUSED, "author")
    assert outcome.message.startswith(f"{guard.value}: "), outcome.message


DEEP = {
    "brackets": "(" * 60000,
    "braces": "{ " * 30000 + "} " * 29999,
    "calls": "c[0] = " + "fma(" * 3000 + "1" + ", 1, 1, full)" * 3000 + ";\n",
    "casts": "c[0] = " + "(float)" * 9000 + "1;\n",
    "a sum": "c[0] = " + "1+" * 30000 + "1;\n",
    "comments": "c[0] = 1;" + "/*" * 30000,
    "too much": "c[0] = 1;\n" * 20000,
    "stars": "float " + "*" * 60000 + "p;\n",
    "subscripts": "c[0] = " + "c[" * 20000 + "0" + "]" * 20000 + ";\n",
}


@pytest.mark.parametrize("what", DEEP)
def test_what_is_deep_or_long_is_refused_in_no_time(what: str) -> None:
    began = time.process_time()
    outcome = judged(DEEP[what])
    assert isinstance(outcome, Outcome)
    assert outcome.message.startswith(f"{Guard.SYNTAX.value}: "), outcome.message
    assert time.process_time() - began < 5


def test_rows_of_comments_are_read_once() -> None:
    began = time.process_time()
    source = judged("float fma = 0; fma " + "/*x*/" * 1000 + " = 1; c[0] = {{ fma('a[0]', 'fma', '2', 'full') }};\n")
    assert isinstance(source, str), source.message
    assert time.process_time() - began < 5


def test_what_is_said_of_a_line_is_printable() -> None:
    outcome = judged("c[0] = 1; // {{ '\\x1b[2J\\r' }}\n")
    assert isinstance(outcome, Outcome)
    assert outcome.message.isprintable()


@pytest.mark.parametrize(
    "body", ["{{ " + "1" * 5000 + " }}\n", "{{ " + "(" * 3000 + " }}\n", "{{ 1" + " + 1" * 5000 + " }}\n"]
)
def test_a_template_that_cannot_be_read_is_an_outcome(body: str) -> None:
    outcome = judged(body)
    assert isinstance(outcome, Outcome)
    assert outcome.message.startswith(f"{Guard.TEMPLATE.value}: "), outcome.message

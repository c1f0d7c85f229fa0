"""C that a template must not become: each piece is refused by the guard whose business it is, and honest C passes."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tensorop.author import c_gate, gate, offline
from tensorop.author.gate import Guard
from tensorop.cuda import kernels
from tensorop.model.kernel import KernelTemplate, KernelText
from tensorop.model.point import Point
from tensorop.model.primitive import Primitives
from tensorop.model.trial import Kind, Outcome
from tensorop.render import instantiate, render
from tensorop.render.texts import Texts
from tensorop.specs import operators, platforms

AROUND = """\
#include <stddef.h>
typedef int other_t;
static void helper(void);
static void k(size_t n, const float *restrict a, float *restrict c, const float *const *rows)
{
    /*@ holds(n >= 1);
        reads(a, n + 2 * lanes + 3, 1); writes(c, n + lanes + 3, 1);
        reads(rows, 2, 1); reads(*rows, 1, 1); */
    const size_t lanes = lanes();
    const size_t full = full();
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
    said = {
        name: render.PrimitiveCall(name, len(primitive.args)) for name, primitive in primitives.with_aliases.items()
    }
    source = render.text(env, "k", said)
    callables = instantiate.callables(primitives)
    read = c_gate.read(source, body, primitives, callables)
    if isinstance(read, Outcome):
        return read
    return render.expand(c_gate.unmarked(read.trapped(), body), callables)


HONEST = [
    "(void)n;\n",
    "/* don't worry: \"quotes\" and #marks in comments say nothing */\n// nor here's one\n",
    "for (size_t i = 0; i < (n); i += lanes) { c[i] = (a[i]) + 0.f; }\n",
    "const vfloat32m1_t v = {{ load('a + 4', 'full') }};\n{{ store('c', fma('v', 'v', 'a[3]', 'full'), 'full') }};\n",
    "float s = 0; for (size_t i = n; i > 0; --i) s += a[i - 1]; c[0] = s;\n",
    "float part[4] = {0, 0.f, 0, a[1]}; float *q = part; q += 2; *q = a[0]; c[1] = part[2];\n",
    "if (n == 1) c[0] = 0; else { if (n > 2) c[0] = a[1]; else c[0] = 0 - a[0]; }\n",
    "if (n <= 9) for (; n; --n) c[0] = 0;\n",
    "for (size_t i = 0; i < n; ++i) { if (i != 3) { if (n % 2 == 1) c[i] = a[i]; else c[i] = 0; } }\n",
    "size_t i = n; while (i > 0) { --i; c[i] = 0; }\n",
    "for (size_t i = n; i > 0; --i) c[i - 1] = 0;\n",
    "for (ptrdiff_t i = (ptrdiff_t)n - 1; i >= 0; --i) c[i] = 0;\n",
    "const float *p = a; for (size_t i = 0; i < n; ++i, ++p) c[0] += *p;\n",
    "float part[8] = {0}; for (int i = 0; i < 8; ++i) part[i] += a[0]; c[0] = part[7];\n",
    "size_t i = 0; for (; i < n; i += 1) { c[i] = 0; }\n",
    "size_t left = n; const float *p = a; while (left >= 4) { c[0] += p[3]; p += 4; left -= 4; }\n"
    "if (left) c[0] += p[left - 1];\n",
    "for (size_t i = 0; i < n; i += lanes) {\n"
    "const size_t some = n - i < lanes ? n - i : lanes; for (size_t j = 0; j < some; ++j) c[i + j] = a[i + j]; }\n",
    "for (size_t i = 0; i < n; i += lanes) { size_t some = lanes; if (n - i < lanes) some = n - i;\n"
    "{{ store_tail('c + i', 'zero(full)', 'tail(some)') }}; }\n",
    "for (size_t i = 0; i < n; ++i) { size_t j = 0; for (; j < i; ++j) c[j] = 0; c[j] = a[0]; }\n",
    "size_t i = 0; if (n >= 8) { c[7] = 0; i = 8; } for (; i < n; ++i) c[i] = 0;\n",
    "const float *p = a; for (size_t i = 0; i < n; ++i) { for (size_t j = 0; j < 2; ++j) c[i] += p[j]; p += 1; }\n",
    "if (n / 4 > 0) c[n / 4 * 4 - 1] = 0; c[n % 4] = a[0];\n",
    "const float *const r0 = rows[0], *r1 = rows[1]; c[0] = r0[0] * r1[0];\n",
    "unsigned long long x = (size_t)n << 3; (void)x;\n",
    "{{ prefetch('a + 64') }};\n{{ order('a') }};\n",
    "vfloat32m1_t load = {{ zero('full') }}, store = load; {{ store('c', 'store', 'full') }};\n",
    "c[0] = 0; /* load( */ // zero((((\n",
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
    ("{{ store('c', load('rows', 'full'), 'full') }};\n", Guard.BOUNDS),
    ("c[0] = ((const float *)(n ? 16 : 32))[0];\n", Guard.POINTERS),
    ("c[0] = *(const float *)(c[0] = 3);\n", Guard.POINTERS),
]


# Text within a tile of 2 vectors by 4 columns, k deep: what is wrong with it, by how it reads A.
IN_TILES = {
    # beyond an operand, by one, at either end
    "A before its first": ("columns", "c[0] = a[0 - 1];", Guard.BOUNDS),
    "A before its first, by a pointer": ("columns", "--a; c[0] = *a;", Guard.BOUNDS),
    "a choice of a number below 0": ("columns", "const int i = k > 4 ? -5 : 0; c[i] = 0;", Guard.GRAMMAR),
    "a choice of -1 as a size": ("columns", "size_t i = k > 4 ? -1 : (size_t)0; c[i] = 0;", Guard.GRAMMAR),
    "k is 1000, by a choice below 0": (
        "columns",
        "ptrdiff_t z = k > 2 ? (ptrdiff_t)k - 1000 : 0; if (z == 0) c[0] = 0;",
        Guard.GRAMMAR,
    ),
    "a choice of a size below 0": (
        "columns",
        "const ptrdiff_t i = k > 4 ? (ptrdiff_t)0 - 5 : 0; c[0] = a[i];",
        Guard.GRAMMAR,
    ),
    "A one step past": ("columns", "for (size_t p = 0; p <= k; ++p) c[0] += a[p * lda];", Guard.BOUNDS),
    "A one row past": ("columns", "c[0] = a[m];", Guard.BOUNDS),
    "A one vector past": ("columns", "{{ store('c', a_vector(mr_vectors, 0), 'full') }};", Guard.BOUNDS),
    "A one step ahead": (
        "columns",
        "for (; k; --k) { {{ store_tail('c', a_vector(0, 1), vl(0)) }}; a += lda; }",
        Guard.BOUNDS,
    ),
    "A, its pointer advanced twice": (
        "columns",
        "for (; k; --k) { c[0] += *a; a += lda; if (k > 1) c[0] += *a; a += lda; }",
        Guard.BOUNDS,
    ),
    "A by rows, a column past": ("rows", "for (size_t p = 0; p <= k; ++p) c[0] += a[p];", Guard.BOUNDS),
    "A by rows, a row past": ("rows", "c[0] = a[m * lda];", Guard.BOUNDS),
    "A by rows, a vector over its end": (
        "rows",
        "for (size_t p = 0; p < k; p += lanes) c[0] += {{ sum(load_unpacked('a + p', 'full')) }};",
        Guard.BOUNDS,
    ),
    "A streamed, a vector over its end": (
        "stream",
        "for (size_t i = 0; i < m; i += lanes) c[0] += {{ sum(load_unpacked('a + i', 'full')) }};",
        Guard.BOUNDS,
    ),
    "B before its first": ("columns", "c[0] = *(b - 1);", Guard.BOUNDS),
    "B a column past": ("columns", "c[0] = b[{{ b_at(0, n) }}];", Guard.BOUNDS),
    "B a step past": ("columns", "c[0] = b[k * rsb];", Guard.BOUNDS),
    "B by A's stride": ("columns", "for (size_t p = 0; p < k; ++p) c[0] += b[p * lda];", Guard.BOUNDS),
    "B by both strides": ("columns", "for (size_t p = 0; p < k; ++p) c[0] += b[p * rsb + p * csb];", Guard.BOUNDS),
    "B between its elements": ("rows", "c[0] = b[{{ n }}];", Guard.BOUNDS),
    "C before its first": ("columns", "c[0 - 1] = 0;", Guard.BOUNDS),
    "C a row past": ("columns", "c[m] = 0;", Guard.BOUNDS),
    "C a column past": ("columns", "c[{{ n }} * ldc] = 0;", Guard.BOUNDS),
    "C a whole vector where a part is left": (
        "columns",
        "{{ store('c + %d * lanes' % (mr_vectors - 1), zero('full'), 'full') }};",
        Guard.BOUNDS,
    ),
    "C a part of a vector too far": ("stream", "{{ store_tail('c + m', zero('tail(m)'), 'tail(m)') }};", Guard.BOUNDS),
    "C by another's stride": ("columns", "c[lda] = 0;", Guard.BOUNDS),
    "C by a stride times itself": ("columns", "c[ldc * ldc] = 0;", Guard.BOUNDS),
    "C where ldc says so": ("columns", "c[ldc - 1] = 0;", Guard.BOUNDS),
    "an operand that is there to be read: A": (
        "columns",
        "{{ element }} *q = ({{ element }} *)a; q[0] = 0;",
        Guard.POINTERS,
    ),
    "an operand that is there to be read: B": ("columns", "*({{ element }} *)b = 0;", Guard.POINTERS),
    # loops
    "a loop in the wrong direction": (
        "columns",
        "for (size_t p = k - 1; p < k; ++p) c[0] += a[(p + 1) * lda];",
        Guard.BOUNDS,
    ),
    "a loop that goes up without end": ("columns", "for (; k; ++k) { c[0] += *a; a += lda; }", Guard.GRAMMAR),
    "a counter below 0": ("columns", "for (size_t p = k; p >= 0; --p) c[0] += a[p * lda];", Guard.BOUNDS),
    "a counter that wraps": ("columns", "for (size_t p = 0; p + 1 != 0; p += 2) c[0] = 0;", Guard.GRAMMAR),
    "a counter that is narrow": ("columns", "for (uint8_t p = 0; p < k; ++p) c[0] += a[p * lda];", Guard.CONDITIONS),
    "a step that the operands' numbers say": (
        "columns",
        "for (size_t p = 0; p < k; p += (size_t)b[0]) c[0] = 0;",
        Guard.DATA,
    ),
    "a pointer moved by a step that changes": (
        "columns",
        "size_t s = 0; for (size_t p = 0; p < k; ++p) { c[0] += *a; s += lda; a += s; }",
        Guard.BOUNDS,
    ),
    "a pointer moved behind a jump": (
        "columns",
        "{{ element }} *q = c; for (size_t i = 0; i < m; ++i) { c[0] = 0; continue; q += 1; } q -= m; *q = 0;",
        Guard.GRAMMAR,
    ),
    "a bound of another loop": (
        "rows",
        "size_t p = 0; for (; p < k; ++p) c[0] = 0; c[0] = a[p];",
        Guard.BOUNDS,
    ),
    "a bound that one branch has": ("rows", "size_t p = 0; if (k > 4) p = k; c[0] = a[p];", Guard.BOUNDS),
    "a jump over a pointer's step": (
        "columns",
        "for (size_t p = 0; p < k; ++p) { if (p == 2) continue; c[0] += *a; a += lda; a += lda; }",
        Guard.GRAMMAR,
    ),
    "a case that falls through": (
        "rows",
        "size_t p = 0; switch (m) { case 1: p = k; default: c[0] = a[p]; }",
        Guard.GRAMMAR,
    ),
    "unsigned numbers below 0": ("rows", "c[0] = a[k - 2];", Guard.BOUNDS),
    "a narrow sum": ("rows", "int p = (int)k; c[0] = a[p - 1];", Guard.GRAMMAR),
    "a product of counters": ("rows", "for (size_t p = 0; p < k; ++p) c[0] += a[p * p];", Guard.GRAMMAR),
    # the stack, and addresses
    "the stack past a local array": ("columns", "{{ element }} x[4] = {0}; c[0] = x[4];", Guard.BOUNDS),
    "the stack before a local array": ("columns", "{{ element }} x[4] = {0}; *(x - 1) = alpha;", Guard.BOUNDS),
    "the stack past a local array, in a loop": (
        "columns",
        "{{ element }} x[4] = {0}; for (size_t i = 0; i <= 4; ++i) c[0] += x[i];",
        Guard.BOUNDS,
    ),
    "a vector into a local array that may be shorter": (
        "columns",
        "{{ element }} x[2] = {0}; {{ store('x', zero('full'), 'full') }}; c[0] = x[1];",
        Guard.BOUNDS,
    ),
    "an array of pointers": ("columns", "{{ element }} *x[2]; x[0] = c; x[1] = c; *x[1] = 0;", Guard.DATA),
    "an array of whole numbers": ("columns", "size_t x[2] = {0}; x[0] = 0; c[x[0]] = 0;", Guard.DATA),
    "an operand as whole numbers": ("columns", "const size_t *x = (const size_t *)a; c[x[0]] = 0;", Guard.POINTERS),
    "an operand as bytes": ("columns", "const char *x = (const char *)a; c[0] = x[1];", Guard.POINTERS),
    "an operand as whole numbers, through void": (
        "columns",
        "const void *v = a; const size_t *x = v; c[x[0]] = 0;",
        Guard.DATA,
    ),
    "a local's address": ("columns", "size_t x = 0, *q = &x; *q = 1000; c[x] = 0;", Guard.POINTERS),
    "one of two operands": ("columns", "const {{ element }} *q = k > 2 ? a : c; c[0] = q[k];", Guard.POINTERS),
    "the distance of two operands": ("columns", "c[a - c] = 0;", Guard.POINTERS),
    "a pointer as a condition": ("columns", "if (a < c) c[0] = 0;", Guard.POINTERS),
    # numbers of operands that choose
    "an index from an operand": ("columns", "c[(size_t)a[0]] = 0;", Guard.DATA),
    "an index from an operand, by a local": ("columns", "size_t i = a[0]; c[i] = 0;", Guard.DATA),
    "an index from a sum": ("rows", "size_t i = {{ sum(zero('full')) }}; c[i] = 0;", Guard.DATA),
    "a length from an operand": ("columns", "{{ store_tail('c', zero('full'), 'tail(a[0])') }};", Guard.DATA),
    "a branch on an operand": ("columns", "if (a[0] > 2) c[0] = 0;", Guard.DATA),
    "a branch on two operands": ("columns", "if (a[0] == b[0]) c[0] = 0;", Guard.DATA),
    "a branch on what was computed": ("columns", "{{ element }} x = a[0] * b[0]; c[0] = x < 0 ? 0 : x;", Guard.DATA),
    "a loop on an operand": ("columns", "while (c[0] != 0) c[0] = 0;", Guard.GRAMMAR),
    "a switch on an operand": ("columns", "switch ((int)a[0]) { case 3: c[0] = 0; }", Guard.GRAMMAR),
    "a truth of an operand": ("columns", "c[0] = !a[0];", Guard.DATA),
    "a number of a truth": ("columns", "size_t i = a[0] == 1; c[i] = 0;", Guard.GRAMMAR),
    "bits of an operand": ("columns", "size_t i = a[0]; i &= 1; c[0] = i;", Guard.DATA),
    # alpha and beta
    "alpha is 0.69": ("columns", "if (alpha == 0.69f) c[0] = 0;", Guard.CONDITIONS),
    "alpha is large": ("columns", "if (alpha > 1) c[0] = 0;", Guard.CONDITIONS),
    "alpha is no number": ("columns", "if (alpha != alpha) c[0] = 0;", Guard.CONDITIONS),
    "beta is 2": ("columns", "c[0] = beta == 2 ? 0 : alpha;", Guard.DATA),
    "beta and alpha": ("columns", "if (beta == alpha) c[0] = 0;", Guard.CONDITIONS),
    "a number made of beta": ("columns", "if ((beta == 0) + k > 3) c[0] = 0;", Guard.GRAMMAR),
    "alpha, computed with": ("columns", "if (alpha - 1 == 0) c[0] = 0;", Guard.DATA),
    # sizes
    "k is 79": ("columns", "if (k == 79) c[0] = 0;", Guard.CONDITIONS),
    "k is large": ("columns", "if (k > 2400) c[0] = 0;", Guard.CONDITIONS),
    "k is large, by a product": ("columns", "if (k * 3 + 1 == 7200) c[0] = 0;", Guard.CONDITIONS),
    "k is large, by small numbers": ("columns", "if (k > 60 + 60) c[0] = 0;", Guard.CONDITIONS),
    "k is large, by a local": ("columns", "size_t x = 60; x *= 40; if (k > x) c[0] = 0;", Guard.CONDITIONS),
    "k is large, by a quotient": ("columns", "if (k / 60 > 40) c[0] = 0;", Guard.CONDITIONS),
    "k is large, by two quotients": ("columns", "if (k / 60 / 40) c[0] = 0;", Guard.CONDITIONS),
    "k is large, by a shift": ("columns", "if (k >> 11) c[0] = 0;", Guard.CONDITIONS),
    "k is large, by bits": ("columns", "if (k & 2048) c[0] = 0;", Guard.GRAMMAR),
    "k is large, by a loop": (
        "columns",
        "size_t x = 0; for (size_t i = 0; i < 60; ++i) x += 40; if (k > x) c[0] = 0;",
        Guard.CONDITIONS,
    ),
    "k is large, by vectors": ("columns", "if (k > 600 * lanes) c[0] = 0;", Guard.CONDITIONS),
    "k is large, by a choice": ("columns", "size_t x = k > 2 ? 2400 : 0; if (k > x) c[0] = 0;", Guard.GRAMMAR),
    "k is large, as a number": ("columns", "c[0] = k > 2400;", Guard.DATA),
    "k is large, in a loop's condition": ("columns", "for (size_t p = 2400; p < k; ++p) c[0] = 0;", Guard.CONDITIONS),
    "a remainder of k": ("columns", "if (k % 4096 == 79) c[0] = 0;", Guard.CONDITIONS),
    "ldc is large": ("columns", "if (ldc > 5000) c[0] = 0;", Guard.CONDITIONS),
    "ldc is 48": ("columns", "if (ldc == 48) c[0] = 0;", Guard.CONDITIONS),
    "ldc is larger than lda": ("columns", "if (ldc > lda) c[0] = 0;", Guard.CONDITIONS),
    "a switch on k": ("columns", "switch (k) { case 79: c[0] = 0; }", Guard.GRAMMAR),
    # locals
    "a local that was never written": ("columns", "{{ element }} x; c[0] = x;", Guard.LOCALS),
    "a local that one branch writes": ("columns", "{{ element }} x; if (k > 2) x = 0; c[0] = x;", Guard.LOCALS),
    "a local that a loop may write": (
        "columns",
        "{{ element }} x; for (size_t p = 1; p < k; ++p) x = 0; c[0] = x;",
        Guard.LOCALS,
    ),
    "a local that a case may write": (
        "columns",
        "{{ element }} x; switch (k) { case 1: x = 1; } c[0] = x;",
        Guard.GRAMMAR,
    ),
    "a sum that begins as it was": (
        "columns",
        "{{ vector }} x; x = {{ add('x', zero('full'), 'full') }};",
        Guard.LOCALS,
    ),
    "a counter that was never written": ("columns", "size_t i; if (i) c[0] = 0;", Guard.LOCALS),
    "an array that was never written": ("columns", "{{ element }} x[4]; c[0] = x[2];", Guard.LOCALS),
    "an array of which a part was written": ("columns", "{{ element }} x[4]; x[0] = 0; c[0] = x[2];", Guard.LOCALS),
    "a local that hides another": ("columns", "{{ element }} x = 0; { {{ element }} x; c[0] = x; }", Guard.LOCALS),
    # in what order
    "a change in the second half of a condition": (
        "rows",
        "size_t p = 0; if (k > 2 && (p = p + k) > 1) c[0] = 0; c[0] = a[p];",
        Guard.GRAMMAR,
    ),
    "a change in a choice": ("rows", "size_t p = 0; c[0] = k > 2 ? (p = k, alpha) : alpha; c[0] = a[p];", Guard.DATA),
    "two changes of a name": ("rows", "size_t p = 0; c[p++] = a[p++];", Guard.GRAMMAR),
    "a change beside a use": ("rows", "size_t p = k; c[p] = (p = 0);", Guard.DATA),
    "a change that happens twice": ("rows", "size_t p = 0; c[p++] += 1;", Guard.GRAMMAR),
    "a change in a primitive's argument": (
        "columns",
        "for (; k; --k) { {{ store_tail('c', load_tail('a++', vl(0)), vl(0)) }}; }",
        Guard.POINTERS,
    ),
    "a truth that is more than 1": ("rows", "bool p = m; c[0] = a[k - 1 - p + 1];", Guard.GRAMMAR),
    "a quotient of another turn": (
        "rows",
        "for (size_t p = 0; p < (k - p) / 2; ++p) c[0] += a[p + k / 2 + 1];",
        Guard.GRAMMAR,
    ),
    "the end of a loop that is none": ("rows", "break;", Guard.GRAMMAR),
    "a case within a loop": ("rows", "switch (m) { case 1: for (;;) { case 2: c[0] = a[k]; break; } }", Guard.GRAMMAR),
    "a lane of a vector": ("columns", "{{ vector }} v = {{ zero('full') }}; c[0] = v[9];", Guard.POINTERS),
    # what C computes, and in which type
    "nothing times a write": ("columns", "c[0] = 0 * (c[1000000] = 1);", Guard.DATA),
    "nothing times a read": ("columns", "c[0] = 0 * a[1000000];", Guard.BOUNDS),
    "nothing times an operand": ("columns", "size_t i = 0 * a[0]; c[i] = 0;", Guard.DATA),
    "nothing times a size": ("columns", "if (0 * k - 1 > 5) c[1000000] = 0;", Guard.CONDITIONS),
    "nothing that has a suffix": ("columns", "if (-1 + 0ul > 5) c[1000000] = 0;", Guard.GRAMMAR),
    "a number with a suffix": ("rows", "c[0] = a[k + (0u - 1)];", Guard.GRAMMAR),
    "a number that its base makes unsigned": ("columns", "c[(0xffffffff + 2) - 0x100000001] = 0;", Guard.GRAMMAR),
    "what a narrow counter becomes": ("columns", "uint8_t i = 255; size_t j = ++i; c[j - 256] = 0;", Guard.GRAMMAR),
    "a count that an element held": ("rows", "size_t j = (c[0] = k); c[0] = a[j - 1];", Guard.GRAMMAR),
    "a choice of two below 0": ("columns", "ptrdiff_t z = k > 2 ? -1 : -5; c[z * 1000] = 0;", Guard.GRAMMAR),
    "a distance that wraps": ("columns", "ptrdiff_t d = (a + lda * lda) - a; c[d - lda * lda] = 0;", Guard.POINTERS),
    "a divisor that wraps": ("columns", "if (m > 1) c[1 / (lda * lda + 1)] = 0;", Guard.BOUNDS),
    # how far a pointer moves
    "steps of a wider number": (
        "rows",
        "const int64_t *x = (const int64_t *)a; c[0] = *(const {{ compute }} *)(x + (k - 1));",
        Guard.POINTERS,
    ),
    "steps of a vector": (
        "columns",
        "{{ element }} *q = ({{ element }} *)(({{ vector }} *)c + (m - 1)); *q = 0;",
        Guard.POINTERS,
    ),
    # loops that go on where two are equal
    "a loop while equal": ("rows", "size_t p = 1; for (; p == k; ++p) c[0] = 0; c[0] = a[p];", Guard.GRAMMAR),
    "a loop while not unequal": ("rows", "size_t p = 1; for (; !(p != k); ++p) c[0] = 0; c[0] = a[p];", Guard.GRAMMAR),
    "a loop while either is unequal": (
        "rows",
        "if (k > 1) for (size_t p = 0, q = 0; q != 1 || p != k; ++p, ++q) c[0] = a[p];",
        Guard.GRAMMAR,
    ),
    "a loop to the end and beyond, by pointers": (
        "rows",
        "const {{ compute }} *e = a + k; for (const {{ compute }} *p = a; p <= e; ++p) c[0] = 0; c[k * 1000] = 0;",
        Guard.POINTERS,
    ),
    # lanes of a vector that nothing wrote
    "lanes past a tail": (
        "columns",
        "const {{ vector }} v = {{ load_tail('c', 'tail(0)') }}; c[0] = {{ sum('v') }};",
        Guard.LOCALS,
    ),
    "lanes past a tail, stored": (
        "columns",
        "const {{ vector }} v = {{ zero('tail(1)') }}; {{ store_tail('c', add('v', 'v', vl(0)), vl(0)) }};",
        Guard.LOCALS,
    ),
    "lanes past a tail, on one branch": (
        "columns",
        "{{ vector }} v = {{ zero('full') }}; if (k > 2) v = {{ load_tail('c', 'tail(0)') }}; c[0] = {{ sum('v') }};",
        Guard.LOCALS,
    ),
    "lanes past a tail, by a choice": (
        "columns",
        "const {{ vector }} w = {{ load_tail('c', 'tail(0)') }}, v = k > 2 ? {{ zero('full') }} : w;"
        " c[0] = {{ sum('v') }};",
        Guard.DATA,
    ),
    "lanes past a tail, by an operator": (
        "columns",
        "{{ vector }} v = {{ zero('full') }}; v += {{ load_tail('c', 'tail(0)') }}; c[0] = {{ sum('v') }};",
        Guard.LOCALS,
    ),
    "lanes past a tail, after a turn": (
        "columns",
        "{{ vector }} v = {{ zero('full') }}; for (; k; --k) v = {{ fma_vv('v', 'v', 'v', 'tail(1)') }};"
        " c[0] = {{ sum('v') }};",
        Guard.LOCALS,
    ),
    # which name, and for how long
    "a pointer made of itself": ("columns", "{ {{ element }} *c = c; *c = 0; }", Guard.NAMES),
    "a counter made of itself": ("columns", "size_t i = 0; { size_t i = i; c[i] = 0; }", Guard.NAMES),
    "an element made of itself": (
        "columns",
        "{{ element }} s = 0; { {{ element }} s = s; c[0] = s; }",
        Guard.LOCALS,
    ),
    "a local that cases jump past": (
        "columns",
        "size_t x = 0; switch (m) { case 7: ; size_t x = 0; case 1: c[x] = 0; }",
        Guard.GRAMMAR,
    ),
    "an array that is gone": (
        "columns",
        "{{ element }} *q = c; { {{ element }} x[4] = {0}; q = x; } *q = 0;",
        Guard.LOCALS,
    ),
    "an array that another hid": (
        "columns",
        "{{ element }} x[4]; { {{ element }} x[4] = {0}; x[0] = 1; } c[0] = x[0];",
        Guard.NAMES,
    ),
    "an array that another hides": (
        "columns",
        "{{ element }} x[4], *q = x; { {{ element }} x[4] = {0}; x[0] = 1; c[0] = q[0]; }",
        Guard.NAMES,
    ),
    "a name of another block": ("columns", "{ size_t i = 0; c[i] = 0; } i = 1;", Guard.NAMES),
    "a size in octal": ("columns", "{{ element }} x[0500] = {0}; x[499] = 1;", Guard.STORAGE),
    "lanes of one's own": (
        "columns",
        "{ size_t lanes = 99; {{ transpose_tail('c', 'ldc', 'a', 'lda', '1', '1') }}; }",
        Guard.NAMES,
    ),
    "alpha, in the next turn": (
        "columns",
        "for (size_t p = 0; p < k; ++p) { if (alpha == 0) c[0] = 1; alpha = a[p * lda] - 3; }",
        Guard.DATA,
    ),
    # one size, by several conditions that say little each
    "k is 1024, by a loop that two conditions end": (
        "columns",
        "size_t x = 0; for (size_t i = 0; i < 64 && k; ++i) x += 16; if (k == x) c[0] = 0;",
        Guard.GRAMMAR,
    ),
    "k is 1024, by a pointer": (
        "rows",
        "const {{ compute }} *p = a; for (size_t i = 0; i < 64 && k; ++i) p += 16; if (p == a + k) c[0] = 0;",
        Guard.GRAMMAR,
    ),
    "k is 1055, by a turn": (
        "columns",
        "for (size_t i = 0; i < k; ++i) if (k == 16 * i + 47) if (i > 62) if (i < 64) c[0] = 0;",
        Guard.CONDITIONS,
    ),
    "k is 16 times m": (
        "columns",
        "for (size_t i = 0; i < k; ++i) if (i == m) if (k == 16 * i + 15) c[0] = 0;",
        Guard.CONDITIONS,
    ),
    "k is 256, by choices of choices": (
        "columns",
        "size_t x = k > 2 ? 64 : 0, y = k > 2 ? x + 64 : 0, z = k > 2 ? y + 64 : 0, w = k > 2 ? z + 64 : 0;"
        " if (k == w) c[0] = 0;",
        Guard.GRAMMAR,
    ),
    "k is 255, by a sum of choices": (
        "columns",
        "size_t x = k > 2 ? 64 : 0, y = k > 2 ? 64 : 1, z = k > 2 ? 64 : 2, w = k > 2 ? 63 : 4;"
        " if (k == x + y + z + w) c[0] = 0;",
        Guard.GRAMMAR,
    ),
    "k by three remainders": (
        "columns",
        "if (k % 61 == 7) if (k % 59 == 3) if (k % 53 == 11) c[0] = 0;",
        Guard.CONDITIONS,
    ),
    "k is 3,200, by a turn": (
        "columns",
        "for (size_t t = 0; t < k / 64; ++t) if (t == 50) c[0] = 0;",
        Guard.CONDITIONS,
    ),
    "k is 3,200, by a turn of twice as many": (
        "columns",
        "for (size_t t = 0; t < k / 64 * 2; ++t) if (t == 64) c[0] = 0;",
        Guard.CONDITIONS,
    ),
    "k by what three loops leave": (
        "columns",
        "size_t r = k, s = k, u = k; for (; r >= 13; r -= 13) c[0] = 0; for (; s >= 11; s -= 11) c[0] = 0;"
        " for (; u >= 7; u -= 7) c[0] = 0; if (r == 5) if (s == 7) if (u == 3) c[0] = 0;",
        Guard.CONDITIONS,
    ),
    # predicates
    "a predicate of another's bits": ("columns", "{{ store('c', zero('full'), 'tail(2 * lanes)') }};", Guard.BOUNDS),
    "a whole load under a tail": ("stream", "c[0] = {{ sum(load_unpacked('a', 'tail(m)')) }};", Guard.BOUNDS),
    "more lanes than there are": ("stream", "{{ store_tail('c', zero('full'), 'tail(m)') }};", Guard.BOUNDS),
}


# What an honest newcomer writes in such a tile.
HONEST_TILES = {
    "k counted down": ("columns", "while (k > 0) { c[0] += *a * *b; a += lda; b += rsb; --k; }"),
    "signed counters": ("columns", "for (ptrdiff_t p = 0; p < (ptrdiff_t)k; ++p) { c[0] += *a; a += lda; }"),
    "every other one": ("rows", "size_t u = 1; for (; u < 8; u += 2) c[0] = 0; c[0] = a[k - 1];"),
    "from the end": ("columns", "for (size_t p = k; p > 0; --p) c[0] += a[(p - 1) * lda];"),
    "indices of their own": (
        "columns",
        "size_t x = 0, y = 0; for (size_t p = 0; p < k; ++p) { c[0] += a[x] * b[y]; x += lda; y += rsb; }",
    ),
    "pointers": (
        "rows",
        "const {{ compute }} *p = a, *q = b; size_t i = 0; for (; i + 4 <= k; i += 4, p += 4, q += 4)"
        " c[0] += p[3] * q[3]; for (; i < k; ++i, ++p, ++q) c[0] += *p * *q;",
    ),
    "pointers, by what is left": (
        "rows",
        "const {{ compute }} *p = a; for (; k >= 4; k -= 4, p += 4) c[0] += p[3]; for (; k; --k, ++p) c[0] += *p;",
    ),
    "pointers, by rows": (
        "columns",
        "const {{ compute }} *p = a; for (size_t i = 0; i < k; ++i) { c[0] += *p; p += lda; }",
    ),
    "unrolled, by a quotient": (
        "columns",
        "for (size_t q = 0; q < k / 4; ++q) { c[0] += a[3 * lda]; a += 4 * lda; }"
        " for (size_t r = 0; r < k % 4; ++r) { c[0] += *a; a += lda; }",
    ),
    "unrolled, by a bound": (
        "columns",
        "const size_t most = k - k % 4; size_t p = 0; for (; p < most; p += 4) c[0] += a[(p + 3) * lda];"
        " for (; p < k; ++p) c[0] += a[p * lda];",
    ),
    "unrolled, the rest one by one": (
        "columns",
        "for (; k >= 4; k -= 4) { c[0] += a[3 * lda]; a += 4 * lda; } for (; k; --k) { c[0] += *a; a += lda; }",
    ),
    "tiles of k, by a height": (
        "columns",
        "for (size_t p = 0; p < k; p += 32) { const size_t h = k - p < 32 ? k - p : 32;"
        " for (size_t q = 0; q < h; ++q) c[0] += a[(p + q) * lda]; }",
    ),
    "tiles of k, by an end": (
        "columns",
        "for (size_t p = 0; p < k; p += 32) { const size_t end = p + 32 < k ? p + 32 : k;"
        " for (size_t q = p; q < end; ++q) c[0] += a[q * lda]; }",
    ),
    "vectors and their rest": (
        "stream",
        "for (; m >= lanes; m -= lanes, a += lanes, c += lanes) {{ store('c', load_unpacked('a', 'full'), 'full') }};"
        " if (m) {{ store_tail('c', load_unpacked_tail('a', 'tail(m)'), 'tail(m)') }};",
    ),
    "a sum by parts of vectors": (
        "columns",
        "{{ vector }} v = {{ zero('full') }}; const {{ predicate }} two = {{ tail('1') }};"
        " for (; k; --k) { v = {{ fma_vv_tail('v', 'v', 'v', 'two') }}; } c[0] = {{ sum('v') }};",
    ),
    "a sum that a part is wanted of": (
        "columns",
        "{{ vector }} v = {{ zero('full') }}; const {{ predicate }} two = {{ tail('1') }};"
        " for (; k; --k) { v = {{ fma_vv('v', 'v', 'v', 'two') }}; } {{ store_tail('c', 'v', 'two') }};",
    ),
    "vectors by pointers": (
        "stream",
        "const {{ compute }} *p = a; {{ element }} *q = c; for (; m >= lanes; m -= lanes, p += lanes, q += lanes)"
        " {{ store('q', load_unpacked('p', 'full'), 'full') }};",
    ),
}


def in_a_tile(reads: str, body: str, platform_name: str = "avx2") -> KernelText | Outcome:
    """What becomes of a template of gemm, whose text is this in every tile."""
    operator, platform = operators.load("gemm"), platforms.load(platform_name)
    needs = {"columns": "scalars", "rows": "columns", "stream": "scalars"}
    template = KernelTemplate(
        "gemm",
        "d",
        offline.AUTHOR,
        "s",
        f"{body}\n",
        {"a": reads, "b": needs[reads]},
        tunables={"mr_vectors": (2,), "nr": (4,)},
    )
    point = instantiate.defaults(operator, platform, "f32", Point.of({"mr_vectors": 2, "nr": 4}))
    return Texts().kernel(operator, platform, instantiate.variant(operator, template, "f32", point))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("what", IN_TILES)
def test_what_leaves_its_operands_or_hides_a_choice_is_refused(what: str) -> None:
    reads, body, guard = IN_TILES[what]
    for platform_name in ("avx2", "rvv"):
        outcome = in_a_tile(reads, body, platform_name)
        assert isinstance(outcome, Outcome), outcome.kernel
        assert (outcome.kind, outcome.where) == (Kind.REFUSED, "author")
        assert outcome.message.startswith(f"{guard.value}: "), outcome.message


@pytest.mark.one_in(5)
@pytest.mark.parametrize("what", HONEST_TILES)
def test_what_an_honest_newcomer_writes_passes(what: str) -> None:
    for platform_name in ("avx2", "rvv", "neon"):
        text = in_a_tile(*HONEST_TILES[what], platform_name)
        assert isinstance(text, KernelText), text.message


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


def test_a_precondition_that_cannot_be_read_is_never_proved() -> None:
    """It is on integers alone, but no comparison of sums and products."""
    store = replace(rvv.by_name["store"], preconditions=("vl % 2 == 0",))
    outcome = judged("{{ store('c', zero('full'), 'full') }};\n", replace(rvv, by_name={**rvv.by_name, "store": store}))
    assert isinstance(outcome, Outcome), outcome
    assert outcome.message.startswith("bounds: 'store' requires vl % 2 == 0, "), outcome.message


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
    text = "float fma = 0; fma " + "/*x*/" * 1000
    source = judged(text + " = a[1]; c[0] = {{ fma('a[0]', 'fma', 'a[2]', 'full') }};\n")
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


# ---- the same of a device's kernels, over collective primitives

WMMA = platforms.load("cuda-wmma")
FAMILY = next(
    one for one in offline.templates(operators.load("gemm").folder, "gemm", suffix=".cu.j2") if one.name == "wmma"
)
NUMBERS = {
    "threads": 64,
    "tile_m": 64,
    "tile_n": 64,
    "raster": 4,
    "shared": 4096,
    "resident": 1,
    "c_size": 2,
    "in_size": 2,
    "a_along_m": 0,
    "b_along_k": 1,
}


def on_device(body: str, **more: int | str) -> Outcome | str:
    """The whole file of a kernel whose template another wrote."""
    template = replace(FAMILY, author="llm", name="d", text=body)
    return kernels.text(operators.load("gemm"), WMMA, template, "bf16", {**NUMBERS, **more})


ON_DEVICE = {
    "an element a thread": "const int row = row0 + thread;\nif (row < m) for (int j = 0; j < n; ++j) { float s = 0;\n"
    "for (int p = 0; p < k; ++p) s += value(a[row * lda + p]) * value(b[j * ldb + p]);\n"
    "s *= alpha; c[row * ldc + j] = (Element)s; }\n",
    "a copy of what is left": "const int left = row0 + thread < m ? k : 0;\n"
    "elements_copy(tiles + 8 * thread, left > 0 ? a + (row0 + thread) * lda : a, left);\n",
    "turns of a block": "for (int i = 0; i < 32; ++i) tiles[thread + 64 * i] = (Element)beta;\n",
    "an address that is chosen": "Element *x = thread < 3 ? tiles : tiles + 2040; elements_copy(x, a, 0);\n",
    "an array of its own": "float s[8] = {0};\n#pragma unroll\nfor (int e = 0; e < 8; ++e) s[e] += alpha;\n"
    "c[row0 * ldc + col0] = (Element)s[thread % 8];\n",
    "tiles through shared memory": "SumTile s; sum_clear(s); TileA x; TileB y;\n"
    "for (int i = thread; i < 256; i += 64) tiles[i] = (Element)alpha;\n__syncthreads();\n"
    "tile_a(x, tiles, 16); tile_b(y, tiles, 16); tile_multiply(s, x, y); __syncthreads();\n"
    "sum_spread(sums + thread / 32 * 256, s, 16); __syncwarp();\n"
    "if (col0 + 1 < n) pair_put(c + row0 * ldc + col0, sums[thread], 0, 1, pairs);\n",
    "what is known of a choice": "const bool inner = row0 + 64 <= m && col0 + 8 <= n;\n"
    "if (inner && beta == 0) c[(row0 + thread) * ldc + col0 + 7] = tiles[0];\n",
    "copies that are waited for": "word_copy(tiles, a, k); copies_commit(); copies_wait(0); __syncthreads();\n",
}
NOT_ON_DEVICE = {
    "C a row past": ("c[m * ldc] = tiles[0];", Guard.BOUNDS),
    "C by a thread that nothing bounds": ("c[(row0 + thread) * ldc] = tiles[0];", Guard.BOUNDS),
    "C by a column that nothing bounds": (
        "if (row0 + thread < m) c[(row0 + thread) * ldc + col0 + 1] = tiles[0];",
        Guard.BOUNDS,
    ),
    "C before its first": ("c[row0 * ldc + col0 - 1] = tiles[0];", Guard.BOUNDS),
    "C by a row that was tested for another": (
        "if (row0 + thread < n) c[(row0 + thread) * ldc] = tiles[0];",
        Guard.BOUNDS,
    ),
    "A is written": ("*(Element *)a = value(b[0]);", Guard.POINTERS),
    "A as another type": ("const float *x = (const float *)a; sums[0] = x[0];", Guard.POINTERS),
    "A with B's stride": ("c[0] = a[(m - 1) * ldb];", Guard.BOUNDS),
    "shared memory one past": ("tiles[2048] = tiles[0];", Guard.BOUNDS),
    "shared memory by threads": ("tiles[33 * thread] = tiles[0];", Guard.BOUNDS),
    "shared memory by a size": ("tiles[k] = tiles[0];", Guard.BOUNDS),
    "shared memory before its first": ("tiles[thread - 1] = tiles[0];", Guard.BOUNDS),
    "a primitive past shared memory": ("elements_copy(tiles + 2041, a, 0);", Guard.BOUNDS),
    "a primitive past its operand": ("elements_copy(tiles, a, k + 1);", Guard.BOUNDS),
    "a primitive past what was chosen": ("elements_copy(tiles, a + k, thread < 4 ? 1 : 0);", Guard.BOUNDS),
    "a copy that leaves where something is left": (
        "const int left = row0 + thread < m ? k : 0;\n"
        "elements_copy(tiles, left > 0 ? a + (row0 + thread + 1) * lda : a, left);",
        Guard.BOUNDS,
    ),
    "a tile past shared memory": ("TileA x; tile_a(x, tiles + 2048 - 255, 16);", Guard.BOUNDS),
    "a tile with rows too far apart": ("TileA x; tile_a(x, tiles, 136);", Guard.BOUNDS),
    "a tile that goes backwards": ("TileA x; tile_a(x, tiles + 200, -1);", Guard.BOUNDS),
    "a tile of what is no shared memory": ("TileA x; if (m > 15 && k > 15) tile_a(x, a, 0);", Guard.BOUNDS),
    "a copy to what is no shared memory": ("if (n > 7) word_copy(c, a, 0);", Guard.BOUNDS),
    "a copy from what is shared memory": ("word_copy(tiles, tiles, 8);", Guard.BOUNDS),
    "a copy from a local": ("Element x[8] = {0}; word_copy(tiles, x, 8);", Guard.BOUNDS),
    "a tile with rows that nothing is known of": ("TileA x; tile_a(x, tiles, (int)lda);", Guard.GRAMMAR),
    "a tile with rows of a size": ("TileA x; tile_a(x, tiles, k < 32 ? k : 32);", Guard.BOUNDS),
    "a count that nothing is known of": (
        "if (floats_aligned(sums, (int)lda)) c[0] = tiles[0];",
        Guard.GRAMMAR,
    ),
    "a tile with rows that are no words": ("TileA x; tile_a(x, tiles, 12);", Guard.BOUNDS),
    "sums past shared memory": ("SumTile s; sum_clear(s); sum_spread(sums + 1024 - 255, s, 16);", Guard.BOUNDS),
    "a pair of which one may be written": ("pair_put(c + (m - 1) * ldc + n - 1, 0, 0, 1, pairs);", Guard.BOUNDS),
    "an array of its own, past": ("float s[4] = {0}; s[thread % 5] = 1;", Guard.BOUNDS),
    "an array of words, past": ("uint4 s[4] = {0}; s[4] = s[0];", Guard.BOUNDS),
    "a condition on shared memory": ("if (value(tiles[0]) > 0) c[0] = tiles[0];", Guard.DATA),
    "a condition on sums": ("if (sums[thread] != 0) c[0] = tiles[0];", Guard.DATA),
    "an index that was loaded": ("c[(int)value(tiles[0])] = tiles[0];", Guard.DATA),
    "an index of bits that were loaded": (
        "const uint32_t x = (uint32_t)sums[0]; tiles[x >> 31] = tiles[0];",
        Guard.DATA,
    ),
    "a part of a word as an index": ("const uint4 x = make_uint4(1, 2, 3, 4); tiles[x.x] = tiles[0];", Guard.DATA),
    "a count that was loaded": ("elements_copy(tiles, a, (int)value(tiles[0]));", Guard.DATA),
    "a count of turns that was loaded": ("for (float i = 0; i < sums[0]; i += 1) tiles[0] = tiles[0];", Guard.DATA),
    "a branch on alpha": ("if (alpha == 3) c[0] = tiles[0];", Guard.CONDITIONS),
    "a size": ("if (k == 1000) c[0] = tiles[0];", Guard.CONDITIONS),
    "a size by threads": ("if (k == 100 * thread) c[0] = tiles[0];", Guard.CONDITIONS),
    "a size by a division": ("if (k / 100 == 10) c[0] = tiles[0];", Guard.CONDITIONS),
    "a size by a division and threads": ("if (k / 100 == thread) c[0] = tiles[0];", Guard.CONDITIONS),
    "a size by a quotient of threads": ("if (k / 64 == thread * 4) c[0] = tiles[0];", Guard.CONDITIONS),
    "a size by a remainder": ("if (k % 1000 == 1) c[0] = tiles[0];", Guard.CONDITIONS),
    "a size by a choice": ("const int x = thread < 3 ? 1000 : 0; if (k == x) c[0] = tiles[0];", Guard.CONDITIONS),
    "a size by how long a loop goes on": (
        "int r = 0; for (int i = 0; i < 1000; ++i) { if (i >= k) { r = 1; break; } } if (r) c[0] = tiles[0];",
        Guard.GRAMMAR,
    ),
    "C past a choice of pairs": ("pair_put(c + row0 * ldc + col0, 0, 0, col0 < n, pairs);", Guard.BOUNDS),
    "an address that is chosen, past": (
        "Element *x = thread < 3 ? tiles : tiles + 2041; elements_copy(x, a, 0);",
        Guard.BOUNDS,
    ),
    "a size by turns": ("for (int i = 0; i < k; ++i) if (k == (size_t)100 * i) c[0] = tiles[0];", Guard.CONDITIONS),
    "a stride": ("if (lda > m) c[0] = tiles[0];", Guard.CONDITIONS),
    "an address": ("if (a == b) c[0] = tiles[0];", Guard.POINTERS),
    "an address by its bits": ("if (floats_aligned(sums, 1024)) c[0] = tiles[0];", Guard.BOUNDS),
    "addresses that were chosen": (
        "const Element *p = thread > 3 ? a + k : a; if (p == a) c[0] = tiles[0];",
        Guard.POINTERS,
    ),
    "how far apart addresses are that were chosen": (
        "const Element *p = thread > 3 ? tiles + 1000 : tiles; if (p - tiles == k) c[0] = tiles[0];",
        Guard.POINTERS,
    ),
    "a number that was cut off as a count": ("elements_copy(tiles, a, (int)lda);", Guard.GRAMMAR),
    "what a test said of a number before it changed": (
        "int i = row0 + thread; const bool in = i < m; i += 1; if (in) c[i * ldc] = tiles[0];",
        Guard.BOUNDS,
    ),
    "what a turn before said": (
        "bool in = 0; for (int i = 0; i < 4; ++i) { if (in) c[(row0 + i) * ldc] = tiles[0]; in = row0 + i < m; }",
        Guard.BOUNDS,
    ),
    "what the other way said": (
        "const bool in = row0 + thread < m; if (!in) c[(row0 + thread) * ldc] = tiles[0];",
        Guard.BOUNDS,
    ),
    "what one of two tests said": (
        "const bool in = row0 + thread < m || beta == 0; if (in) c[(row0 + thread) * ldc] = tiles[0];",
        Guard.BOUNDS,
    ),
    "a size by three remainders": (
        "if (k % 61 == 7) if (k % 59 == 3) if (k % 53 == 11) c[0] = tiles[0];",
        Guard.CONDITIONS,
    ),
    "a size by a turn of a quotient's": (
        "for (int i = 0; i < k / 64; ++i) if (i == 50) c[0] = tiles[0];",
        Guard.CONDITIONS,
    ),
    "a size by twice a quotient": (
        "for (int i = 0; i < k / 64 * 2; ++i) if (i == 100) c[0] = tiles[0];",
        Guard.CONDITIONS,
    ),
    "a size by a turn that threads tell": (
        "for (int i = 0; i < k; ++i) if (i == thread) if (k == 16 * i + 15) c[0] = tiles[0];",
        Guard.CONDITIONS,
    ),
    "a size by a sum of choices": (
        "int x = k > 2 ? 200 : 0, y = k > 2 ? 200 : 1, z = k > 2 ? 200 : 2; if (k == x + y + z) c[0] = tiles[0];",
        Guard.CONDITIONS,
    ),
    "a choice of -1 as a size": ("tiles[k > 4 ? -1 : (size_t)0] = tiles[0];", Guard.BOUNDS),
    "a number with a suffix": ("tiles[2047 + (0u - 1)] = tiles[0];", Guard.GRAMMAR),
    "a local made of itself": ("float s = 1; { float s = s; sums[0] = s; }", Guard.LOCALS),
    "an array that is gone": (
        "float y[4] = {0}; float *q = y; { float x[4] = {0}; q = x; } *q = 1;",
        Guard.LOCALS,
    ),
    "a size by a large remainder": ("if (k % 300 == 1) c[0] = tiles[0];", Guard.CONDITIONS),
    "a tile that is nowhere set": ("SumTile s; sum_spread(sums, s, 16);", Guard.LOCALS),
    "a sum that begins with what was there": (
        "SumTile s; TileA x; TileB y; tile_a(x, tiles, 16); tile_b(y, tiles, 16);\ntile_multiply(s, x, y);",
        Guard.LOCALS,
    ),
    "a local that is set in one turn alone": ("float s; if (thread < 3) s = 0; sums[thread] = s;", Guard.LOCALS),
    "an array that is nowhere set": ("float s[4]; sums[0] = s[0];", Guard.LOCALS),
    "memory of its own in the block": ("__shared__ float kept[4];", Guard.SYNTAX),
    "a static": ("static int kept = 0; ++kept;", Guard.GRAMMAR),
    "assembly": ("asm(x);", Guard.SYNTAX),
    "a lambda": ("int x = [&](int i) { return i; }(3);", Guard.SYNTAX),
    "a template's call": ("copies_wait<0>();", Guard.SYNTAX),
    "a template's call that is a comparison": ("int x = copies_wait < 0 > (1);", Guard.NAMES),
    "a cast of C++": ("const float *x = reinterpret_cast<const float *>(m);", Guard.SYNTAX),
    "a pointer made of a number": ("const float *x = (const float *)lda; sums[0] = *x;", Guard.POINTERS),
    "a member": ("SumTile s; sum_clear(s); sums[0] = s.x[300];", Guard.POINTERS),
    "a member by an address": ("sums[0] = a->x;", Guard.GRAMMAR),
    "the thread's number as the device has it": ("tiles[threadIdx.x] = tiles[0];", Guard.NAMES),
    "an intrinsic": ("__nanosleep(100);", Guard.CALLS),
    "a function of the toolkit": ("atomicAdd(sums, 1);", Guard.CALLS),
    "the function itself": (
        "block(m, n, k, alpha, beta, a, lda, b, ldb, c, ldc, row0, col0, thread, pairs, words, tiles, sums);",
        Guard.CALLS,
    ),
    "a launch": ("block<<<1, 1>>>();", Guard.SYNTAX),
    "another function": ("}\n__device__ int kept; void other() {", Guard.SYNTAX),
    "a pragma": ("#pragma nv_diag_suppress 1\n", Guard.CHARACTERS),
    "an include": ("#include <stdio.h>\n", Guard.CHARACTERS),
}


@pytest.mark.parametrize("what", ON_DEVICE)
def test_honest_c_of_a_device_passes(what: str) -> None:
    source = on_device(ON_DEVICE[what])
    assert isinstance(source, str), source.message


@pytest.mark.one_in(5)
@pytest.mark.parametrize("what", NOT_ON_DEVICE)
def test_what_leaves_its_operands_on_a_device_is_refused(what: str) -> None:
    body, guard = NOT_ON_DEVICE[what]
    outcome = on_device(body + "\n")
    assert isinstance(outcome, Outcome), outcome
    assert outcome.message.startswith(f"{guard.value}: "), outcome.message


@pytest.mark.parametrize(
    ("body", "guard"),
    [
        ("cluster_rank();", Guard.CALLS),
        ("shared_address(tiles);", Guard.CALLS),
        ("shared_float_store(4 * thread, 1);", Guard.POINTERS),
        ("barrier_init(0, 1);", Guard.POINTERS),
        ("shared_word(tiles);", Guard.BOUNDS),
    ],
)
def test_a_primitive_of_addresses_that_are_numbers_takes_none_made_here(body: str, guard: Guard) -> None:
    template = replace(FAMILY, author="llm", name="d", text=body + "\n", needs=("pair_store",))
    outcome = kernels.text(operators.load("gemm"), platforms.load("cuda-sm90"), template, "bf16", NUMBERS)
    assert isinstance(outcome, Outcome)
    assert outcome.message.startswith(f"{guard.value}: "), outcome.message


@pytest.mark.parametrize("use", ["x[0] = tiles[0];", "sums[0] = value(x[0]);", "elements_copy(x, a, 0);"])
def test_what_was_proved_of_a_choice_is_not_taken_for_another(use: str) -> None:
    """Of both choices the same is known but for what they choose among."""
    assert isinstance(on_device(f"Element *x = thread < 3 ? tiles : tiles + 2040; {use}\n"), str)
    outcome = on_device(f"Element *x = thread < 3 ? tiles : tiles + 9000; {use}\n")
    assert isinstance(outcome, Outcome)
    assert outcome.message.startswith(f"{Guard.BOUNDS.value}: "), outcome.message


def test_a_device_clears_shared_memory_before_another_s_kernel() -> None:
    """What the block before left there could tell a kernel that it was called before."""
    source = on_device(ON_DEVICE["an array of its own"])
    assert isinstance(source, str)
    assert "for (unsigned i = thread; i < 1024; i += 64)" in source


@pytest.mark.parametrize(
    ("name", "value"),
    [("threads", 2048), ("raster", 0), ("tile_m", 0), ("shared", -4), ("shared", 4098), ("matrices", "x")],
)
def test_a_fact_that_no_launch_can_have_is_refused(name: str, value: int | str) -> None:
    outcome = on_device(ON_DEVICE["an array of its own"], **{name: value})
    assert isinstance(outcome, Outcome)
    assert f"the fact {name} is {value}" in outcome.message


@pytest.mark.parametrize("name", ["c_size", "a_along_m", "element", "cleared"])
def test_a_tunable_that_says_how_operands_are_is_refused(name: str) -> None:
    template = replace(FAMILY, author="llm", name="d", text="\n", tunables={name: (4,)})
    outcome = kernels.text(operators.load("gemm"), WMMA, template, "bf16", {**NUMBERS, name: 4})
    assert isinstance(outcome, Outcome)
    assert outcome.message.startswith("tunables: "), outcome.message


# ---- the same of kernels that take tensor maps: the copy engine's boxes, barriers, wgmma's tiles

WITH_MAPS = {
    "threads": 256, "tile_m": 64, "tile_n": 64, "raster": 4, "resident": 1, "stages": 4, "body": 65536,
    "c_bytes": 16384, "shared": 1024 + 65536 + 16384 + 64, "cluster": 2, "cluster_m": 2, "cluster_n": 1, "split_k": 1,
    "box_a": 64, "box_b": 64, "chunk_b": 64, "piece": 64, "wgn": 64, "align_c": 16, "c_size": 2, "a_along_m": 0,
    "b_along_k": 1,
}  # fmt: skip
MAPS_TEXT = """
    if (thread == 0) {
        for (int s = 0; s < 4; ++s) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, 2);
        }
        barriers_visible();
    }
    cluster_barrier();
    const int rank_m = rank % 2;
    if (thread / 128 == 0) {
        registers_fewer(40);
        if (thread == 0) {
            const int mask = blocks_mask(0, 1, 2);
            int stage = 0, phase = 1;
            for (int tile = first; tile < clusters; tile += step) {
                const int row = tile_row(launch, tile, rank_m), col = tile_col(launch, tile, 0);
                const int z = tile_batch(launch, tile);
                for (int k = k_begin; k < k_end; ++k) {
                    barrier_wait(empty + 8 * stage, phase);
                    barrier_expect(full + 8 * stage, 16384);
                    tile_load(ring + stage * 16384, map_a, full + 8 * stage, k * 64, row, z, keep_a);
                    tile_load_shared(ring + stage * 16384 + 8192, map_b, full + 8 * stage, k * 64, col, z, mask);
                    ++stage;
                    if (stage == 4)
                        stage = 0, phase = flipped(phase, 1);
                }
            }
        }
    } else {
        registers_more(232);
        int stage = 0, phase = 0, buffer = 0;
        float sum[32] = {0};
        for (int tile = first; tile < clusters; tile += step) {
            for (int k = k_begin; k < k_end; ++k) {
                barrier_wait(full + 8 * stage, phase);
                const TileOfA a = tile_of_a(ring + stage * 16384);
                const TileOfB b = tile_of_b(ring + stage * 16384 + 8192);
                wgmma_begin();
                for (int kk = 0; kk < 4; ++kk)
                    wgmma(sum, a, 0, b, kk, k > k_begin || kk > 0);
                wgmma_commit();
                wgmma_wait(0);
                if (thread % 128 < 2)
                    barrier_arrive_at(empty + 8 * stage, thread % 128);
                ++stage;
                if (stage == 4)
                    stage = 0, phase = flipped(phase, 1);
            }
            const int row = tile_row(launch, tile, rank_m), col = tile_col(launch, tile, 0);
            const int z = tile_batch(launch, tile);
            const int lane = thread % 128, its_row = lane / 32 * 16 + lane % 16;
            const Shared to = pieces + buffer * 8192;
            buffer = flipped(buffer, 1);
            for (int g = 0; g < 4; ++g) {
                const float *const s = sum + 8 * g;
                const int swizzled = chunk_swizzled(2 * g + lane % 32 / 16, its_row % 8);
                matrix_store(to + its_row * 128 + swizzled * 16, pair_packed(s[0], s[1]), pair_packed(s[2], s[3]),
                             pair_packed(s[4], s[5]), pair_packed(s[6], s[7]));
            }
            shared_written();
            named_barrier(1, 128);
            if (lane == 0)
                tile_store(map_c, to, col, row, z, keep_c);
            if (beta != 0 && row + its_row < m && col < n)
                c[z * stride_c + (row + its_row) * ldc + col] = (uint16_t)pair_packed(sum[0], sum[1]);
            tile_stores_done();
        }
    }
"""


def with_maps(text: str, **more: int | str) -> Outcome | str:
    """The whole file of a kernel whose template another wrote."""
    template = replace(FAMILY, author="llm", name="d", text=text, needs=("wgmma",), reads={"operands": "maps"})
    return kernels.text(operators.load("gemm"), platforms.load("cuda-sm90"), template, "bf16", {**WITH_MAPS, **more})


MAPS = {  # what is put in which place
    "a stage past the last": ("if (stage == 4)", "if (stage == 5)", Guard.BOUNDS),
    "a stage that is never 0 again": ("stage = 0, phase = flipped", "phase = flipped", Guard.BOUNDS),
    "a stage before the first": ("int stage = 0, phase = 1;", "int stage = -1, phase = 1;", Guard.BOUNDS),
    "a tile of a stage past its end": (
        "ring + stage * 16384 + 8192, map_b",
        "ring + stage * 16384 + 8320, map_b",
        Guard.BOUNDS,
    ),
    "stages too far apart": ("ring + stage * 16384, map_a", "ring + stage * 20480, map_a", Guard.BOUNDS),
    "a box at no line": ("ring + stage * 16384, map_a", "ring + stage * 16384 + 64, map_a", Guard.BOUNDS),
    "a copy to C's pieces past their end": (
        "tile_load(ring + stage * 16384,",
        "tile_load(pieces + stage * 8192,",
        Guard.BOUNDS,
    ),
    "a copy to a barrier": ("tile_load(ring + stage * 16384,", "tile_load(full,", Guard.BOUNDS),
    "a map behind another": ("map_a, full", "map_a + 1, full", Guard.BOUNDS),
    "a barrier past the last": ("s < 4;", "s < 5;", Guard.BOUNDS),
    "a barrier between two": ("barrier_wait(empty + 8 * stage", "barrier_wait(empty + 4 * stage", Guard.BOUNDS),
    "a barrier of a thread": (
        "barrier_init(full + 8 * s, 1);",
        "barrier_init(full + 8 * thread + 32, 1);",
        Guard.BOUNDS,
    ),
    "a barrier in the ring": ("barrier_expect(full + 8 * stage", "barrier_expect(ring + 8 * stage", Guard.BOUNDS),
    "a barrier of no block": ("if (thread % 128 < 2)", "if (thread % 128 < 3)", Guard.BOUNDS),
    "a barrier with too large a number": ("named_barrier(1, 128)", "named_barrier(16, 128)", Guard.BOUNDS),
    "copies to blocks beyond the cluster": ("blocks_mask(0, 1, 2)", "blocks_mask(0, 1, 3)", Guard.BOUNDS),
    "a mask of its own": (
        "map_b, full + 8 * stage, k * 64, col, z, mask",
        "map_b, full + 8 * stage, k * 64, col, z, 4",
        Guard.BOUNDS,
    ),
    "a tile for wgmma at no 1024": (
        "tile_of_a(ring + stage * 16384)",
        "tile_of_a(ring + stage * 16384 + 512)",
        Guard.BOUNDS,
    ),
    "a tile for wgmma past the ring": (
        "tile_of_b(ring + stage * 16384 + 8192)",
        "tile_of_b(ring + stage * 16384 + 9216)",
        Guard.BOUNDS,
    ),
    "a tile for wgmma in C's pieces": ("tile_of_a(ring + stage * 16384)", "tile_of_a(pieces + 9216)", Guard.BOUNDS),
    "a descriptor that is moved": ("wgmma(sum, a, 0,", "wgmma(sum, a + 512, 0,", Guard.BOUNDS),
    "a descriptor made of a number": (
        "const TileOfA a = tile_of_a(ring + stage * 16384);",
        "const TileOfA a = keep_a;",
        Guard.POINTERS,
    ),
    "a descriptor of the other operand": ("wgmma(sum, a, 0, b,", "wgmma(sum, b, 0, b,", Guard.BOUNDS),
    "rows of A past the tile": ("wgmma(sum, a, 0,", "wgmma(sum, a, 8,", Guard.BOUNDS),
    "a step of K past the tile": ("b, kk, k >", "b, kk + 1, k >", Guard.BOUNDS),
    "sums past their array": ("wgmma(sum, a,", "wgmma(sum + 1, a,", Guard.BOUNDS),
    "sums that nothing set": ("float sum[32] = {0};", "float sum[32];", Guard.LOCALS),
    "a matrix past the pieces": ("its_row * 128 + swizzled", "its_row * 256 + swizzled", Guard.BOUNDS),
    "a matrix by bits that reach further": ("its_row % 8)", "its_row)", Guard.BOUNDS),
    "a matrix at no word": ("swizzled * 16", "swizzled * 8", Guard.BOUNDS),
    "a piece that begins too late": ("tile_store(map_c, to,", "tile_store(map_c, to + 8192,", Guard.BOUNDS),
    "a store by A's map": ("tile_store(map_c, to,", "tile_store(map_a, ring,", Guard.BOUNDS),
    "a store of what is no piece": ("tile_store(map_c, to,", "tile_store(map_c, full,", Guard.BOUNDS),
    "C a row past": ("row + its_row < m && col < n", "row + its_row <= m && col < n", Guard.BOUNDS),
    "C of another product": ("c[z * stride_c", "c[(z + 1) * stride_c", Guard.BOUNDS),
    "a word of another block's memory, past": ("shared_written();", "load_remote(ring + 65536, 1);", Guard.BOUNDS),
    "a word of no block's memory": ("shared_written();", "load_remote(ring, 2);", Guard.BOUNDS),
    "a word past the pieces": ("shared_written();", "shared_word(pieces + 64 * thread + 64);", Guard.BOUNDS),
    "a word across the ring's end": ("shared_written();", "shared_word(ring + 65528);", Guard.BOUNDS),
    "a float to a barrier": ("shared_written();", "shared_float_store(full, 1);", Guard.BOUNDS),
    "an address made of a number": ("shared_written();", "const Shared x = 4096;", Guard.POINTERS),
    "an address made of a cast": ("shared_written();", "shared_word((Shared)thread);", Guard.POINTERS),
    "an address with its bits cut": ("shared_written();", "shared_word(ring & 1023);", Guard.POINTERS),
    "an address that is multiplied": ("shared_written();", "shared_word(ring * 2);", Guard.POINTERS),
    "two addresses added": ("shared_written();", "shared_word(ring + pieces);", Guard.POINTERS),
    "an address as a number": ("shared_written();", "const uint64_t x = ring;", Guard.POINTERS),
    "how far two addresses are apart": ("shared_written();", "const int x = pieces - pieces;", Guard.POINTERS),
    "an address that is followed": ("shared_written();", "sum[0] = *ring;", Guard.BOUNDS),
    "an address as a pointer": ("shared_written();", "const float *x = (const float *)ring;", Guard.POINTERS),
    "addresses compared": ("shared_written();", "if (to == pieces) named_barrier(2, 128);", Guard.POINTERS),
    "an address chosen by what was loaded": ("shared_written();", "shared_word(ring + 16 * c[0]);", Guard.DATA),
    "a map of its own": ("shared_written();", "CUtensorMap x[1];", Guard.TYPES),
    "the launch, past": ("shared_written();", "tile_batch(launch + 1, tile);", Guard.BOUNDS),
    "a tile of no number": ("shared_written();", "tile_batch(launch, clusters);", Guard.BOUNDS),
    "a rank of no block": ("tile_row(launch, tile, rank_m), col", "tile_row(launch, tile, 2), col", Guard.BOUNDS),
    "a size by steps of K": ("shared_written();", "if (k_end == 17) shared_written();", Guard.CONDITIONS),
    "a size by turns over K": (
        "shared_written();",
        "for (int k = k_begin; k < k_end; ++k) if (k == 20) sum[0] = 0;",
        Guard.CONDITIONS,
    ),
    "a size by tiles": ("shared_written();", "if (clusters == 9) shared_written();", Guard.CONDITIONS),
    "a size by where a tile lies": ("shared_written();", "if (row == 128) shared_written();", Guard.CONDITIONS),
    "a size by a tile's batch": ("shared_written();", "if (z == 1) shared_written();", Guard.CONDITIONS),
    "a size by the row of a tile that was counted": (
        "shared_written();",
        "for (int i = 0; i < clusters; ++i) if (i == 20) if (tile_row(launch, i, 0) + 5 == m) sum[0] = 0;",
        Guard.CONDITIONS,
    ),
    "a size by states": (
        "shared_written();",
        "int x = 0, y = 0; for (int k = k_begin; k < k_end; ++k) {\n"
        "++x; if (x == 61) x = 0;\n++y; if (y == 59) y = 0;\n}\nif (x == 7 && y == 3) sum[0] = 0;",
        Guard.CONDITIONS,
    ),
    "a size by states that were halved": (
        "shared_written();",
        "int x = 0, y = 0; for (int k = k_begin; k < k_end; ++k) {\n"
        "++x; if (x == 61) x = 0;\n++y; if (y == 59) y = 0;\n}\nif (x / 2 == 7 && y / 2 == 3) sum[0] = 0;",
        Guard.CONDITIONS,
    ),
    "a size by mixed bits": ("shared_written();", "if (flipped(k_end % 2, 1)) shared_written();", Guard.CONDITIONS),
    "a lambda": ("shared_written();", "auto f = [&](int i) { return i; };", Guard.SYNTAX),
    "assembly": ("shared_written();", "asm volatile(x);", Guard.SYNTAX),
    "the device's own number": ("shared_written();", "sum[0] = threadIdx.x;", Guard.NAMES),
    "a function of the device": ("shared_written();", "__nanosleep(100);", Guard.CALLS),
    "a structure": ("shared_written();", "struct place { int m; } x;", Guard.GRAMMAR),
    "a member of the launch": ("shared_written();", "sum[0] = launch->alpha;", Guard.GRAMMAR),
    "a cast of C++": ("shared_written();", "const float *x = reinterpret_cast<const float *>(c);", Guard.SYNTAX),
}


def test_honest_c_with_maps_passes() -> None:
    source = with_maps(MAPS_TEXT)
    assert isinstance(source, str), source.message


@pytest.mark.one_in(5)
@pytest.mark.parametrize("what", MAPS)
def test_what_leaves_its_operands_with_maps_is_refused(what: str) -> None:
    old, new, guard = MAPS[what]
    assert old in MAPS_TEXT
    outcome = with_maps(MAPS_TEXT.replace(old, new))
    assert isinstance(outcome, Outcome), outcome
    assert outcome.message.startswith(f"{guard.value}: "), outcome.message


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"box_a": 256}, "bounds: "),  # of A's map: more than the last stage has room for
        ({"box_b": 256}, "bounds: "),
        ({"wgn": 128}, "bounds: "),
        ({"align_c": 2}, "bounds: "),  # the host makes no map of C then
        ({"cluster": 1, "cluster_m": 1}, "bounds: "),
        ({"body": 65536 + 16384}, "ring, pieces and barriers need"),
        ({"body": 65536 - 16384}, "bounds: "),
        ({"stages": 8}, "ring, pieces and barriers need"),
        ({"stages": 3}, "bounds: "),
        ({"c_bytes": 8192 - 16}, "bounds: "),
        ({"c_bytes": -16}, "the fact c_bytes is -16"),
        ({"chunk_b": 16}, "the fact chunk_b is 16"),
        ({"box_a": 512}, "the fact box_a is 512"),
        ({"cluster": "2"}, "the fact cluster is 2"),
        ({"tile_m": 4096}, "more than 4096 rows"),
    ],
)
def test_a_tile_that_the_head_has_no_room_for_is_refused(facts: dict[str, int], says: str) -> None:
    outcome = with_maps(MAPS_TEXT, **facts)
    assert isinstance(outcome, Outcome), outcome
    assert says in outcome.message, outcome.message


def test_operands_of_another_kind_are_refused() -> None:
    template = replace(FAMILY, author="llm", reads={"operands": "views"})
    outcome = kernels.text(operators.load("gemm"), WMMA, template, "bf16", NUMBERS)
    assert isinstance(outcome, Outcome)
    assert "operands are 'views'" in outcome.message


def test_a_device_clears_shared_memory_before_another_s_kernel_with_maps() -> None:
    source = with_maps(MAPS_TEXT)
    assert isinstance(source, str)
    assert f"i < {WITH_MAPS['shared'] // 4}; i += 256)" in source

"""C that a template must not become: each piece is refused by the guard whose business it is, and honest C passes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tensorop.author import c_gate, gate, offline
from tensorop.author.gate import Guard
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
    "do { if (n > 9) break; --n; } while (n);\n",
    "for (size_t i = 0; i < n; ++i) { if (i == 3) continue; c[i] = n & 1 ? a[i] : 0; }\n",
    "size_t i = n; while (i--) c[i] = 1;\n",
    "for (size_t i = n; i-- > 0;) c[i] = 1;\n",
    "for (ptrdiff_t i = (ptrdiff_t)n - 1; i >= 0; --i) c[i] = 1;\n",
    "const float *end = a + n; for (const float *p = a; p < end; ++p) c[0] += *p;\n",
    "float part[8] = {0}; for (int i = 0; i < 8; ++i) part[i] += 1; c[0] = part[7];\n",
    "size_t i = 0; do { c[i] = 0; i += 1; } while (i < n);\n",
    "size_t left = n; const float *p = a; while (left >= 4) { c[0] += p[3]; p += 4; left -= 4; }\n"
    "if (left) c[0] += p[left - 1];\n",
    "for (size_t i = 0; i < n; i += lanes) {\n"
    "const size_t some = n - i < lanes ? n - i : lanes; for (size_t j = 0; j < some; ++j) c[i + j] = a[i + j]; }\n",
    "for (size_t i = 0; i < n; i += lanes) { size_t some = lanes; if (n - i < lanes) some = n - i;\n"
    "{{ store_tail('c + i', 'zero(full)', 'tail(some)') }}; }\n",
    "for (size_t i = 0; i < n; ++i) { size_t j = 0; for (; j < i; ++j) c[j] = 0; c[j] = 1; }\n",
    "size_t i = 0; if (n >= 8) { c[7] = 0; i = 8; } for (; i < n; ++i) c[i] = 0;\n",
    "const float *p = a; for (size_t i = 0; i < n; ++i) { for (size_t j = 0; j < 2; ++j) c[i] += p[j]; p += 1; }\n",
    "if (n / 4 > 0) c[n / 4 * 4 - 1] = 0; c[n % 4] = 1;\n",
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


# Text within a tile of 2 vectors by 4 columns, k deep: what is wrong with it, by how it reads A.
IN_TILES = {
    # beyond an operand, by one, at either end
    "A before its first": ("columns", "c[0] = a[0 - 1];", Guard.BOUNDS),
    "A before its first, by a pointer": ("columns", "--a; c[0] = *a;", Guard.BOUNDS),
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
        Guard.BOUNDS,
    ),
    "an operand that is there to be read: B": ("columns", "*({{ element }} *)b = 0;", Guard.BOUNDS),
    # loops
    "a loop in the wrong direction": (
        "columns",
        "for (size_t p = k - 1; p < k; ++p) c[0] += a[(p + 1) * lda];",
        Guard.BOUNDS,
    ),
    "a loop that goes up without end": ("columns", "for (; k; ++k) { c[0] += *a; a += lda; }", Guard.BOUNDS),
    "a counter below 0": ("columns", "for (size_t p = k; p >= 0; --p) c[0] += a[p * lda];", Guard.BOUNDS),
    "a counter that wraps": ("columns", "for (size_t p = 0; p + 1 != 0; p += 2) c[0] = 0;", Guard.CONDITIONS),
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
        Guard.BOUNDS,
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
        Guard.BOUNDS,
    ),
    "a case that falls through": (
        "rows",
        "size_t p = 0; switch (m) { case 1: p = k; default: c[0] = a[p]; }",
        Guard.BOUNDS,
    ),
    "unsigned numbers below 0": ("rows", "c[0] = a[k - 2];", Guard.BOUNDS),
    "a narrow sum": ("rows", "int p = (int)k; c[0] = a[p - 1];", Guard.BOUNDS),
    "a product of counters": ("rows", "for (size_t p = 0; p < k; ++p) c[0] += a[p * p];", Guard.BOUNDS),
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
    "an array of pointers": ("columns", "{{ element }} *x[2]; x[0] = c; x[1] = c; *x[1] = 0;", Guard.BOUNDS),
    "an array of whole numbers": ("columns", "size_t x[2] = {0}; x[0] = 1; c[x[0]] = 0;", Guard.BOUNDS),
    "an operand as whole numbers": ("columns", "const size_t *x = (const size_t *)a; c[x[0]] = 0;", Guard.BOUNDS),
    "an operand as bytes": ("columns", "const char *x = (const char *)a; c[0] = x[1];", Guard.BOUNDS),
    "an operand as whole numbers, through void": (
        "columns",
        "const void *v = a; const size_t *x = v; c[x[0]] = 0;",
        Guard.BOUNDS,
    ),
    "a local's address": ("columns", "size_t x = 0, *q = &x; *q = 1000; c[x] = 0;", Guard.BOUNDS),
    "one of two operands": ("columns", "const {{ element }} *q = k > 2 ? a : c; c[0] = q[k];", Guard.BOUNDS),
    "the distance of two operands": ("columns", "c[a - c] = 0;", Guard.BOUNDS),
    "a pointer as a condition": ("columns", "if (a < c) c[0] = 0;", Guard.CONDITIONS),
    # numbers of operands that choose
    "an index from an operand": ("columns", "c[(size_t)a[0]] = 0;", Guard.DATA),
    "an index from an operand, by a local": ("columns", "size_t i = a[0]; c[i] = 0;", Guard.DATA),
    "an index from a sum": ("rows", "size_t i = {{ sum(zero('full')) }}; c[i] = 0;", Guard.DATA),
    "a length from an operand": ("columns", "{{ store_tail('c', zero('full'), 'tail(a[0])') }};", Guard.DATA),
    "a branch on an operand": ("columns", "if (a[0] > 2) c[0] = 0;", Guard.DATA),
    "a branch on two operands": ("columns", "if (a[0] == b[0]) c[0] = 0;", Guard.DATA),
    "a branch on what was computed": ("columns", "{{ element }} x = a[0] * b[0]; c[0] = x < 0 ? 0 : x;", Guard.DATA),
    "a loop on an operand": ("columns", "while (c[0] != 0) c[0] = 0;", Guard.DATA),
    "a switch on an operand": ("columns", "switch ((int)a[0]) { case 3: c[0] = 0; }", Guard.DATA),
    "a truth of an operand": ("columns", "c[0] = !a[0];", Guard.DATA),
    "a number of a truth": ("columns", "size_t i = a[0] == 1; c[i] = 0;", Guard.DATA),
    "bits of an operand": ("columns", "size_t i = a[0]; i &= 1; c[0] = i;", Guard.DATA),
    # alpha and beta
    "alpha is 0.69": ("columns", "if (alpha == 0.69f) c[0] = 0;", Guard.CONDITIONS),
    "alpha is large": ("columns", "if (alpha > 1) c[0] = 0;", Guard.CONDITIONS),
    "alpha is no number": ("columns", "if (alpha != alpha) c[0] = 0;", Guard.CONDITIONS),
    "beta is 2": ("columns", "c[0] = beta == 2 ? 0 : alpha;", Guard.CONDITIONS),
    "beta and alpha": ("columns", "if (beta == alpha) c[0] = 0;", Guard.CONDITIONS),
    "a number made of beta": ("columns", "if ((beta == 0) + k > 3) c[0] = 0;", Guard.CONDITIONS),
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
    "k is large, by bits": ("columns", "if (k & 2048) c[0] = 0;", Guard.CONDITIONS),
    "k is large, by a loop": (
        "columns",
        "size_t x = 0; for (size_t i = 0; i < 60; ++i) x += 40; if (k > x) c[0] = 0;",
        Guard.CONDITIONS,
    ),
    "k is large, by vectors": ("columns", "if (k > 600 * lanes) c[0] = 0;", Guard.CONDITIONS),
    "k is large, by a choice": ("columns", "size_t x = k > 2 ? 2400 : 0; if (k > x) c[0] = 0;", Guard.CONDITIONS),
    "k is large, as a number": ("columns", "c[0] = k > 2400;", Guard.CONDITIONS),
    "k is large, in a loop's condition": ("columns", "for (size_t p = 2400; p < k; ++p) c[0] = 0;", Guard.CONDITIONS),
    "a remainder of k": ("columns", "if (k % 4096 == 79) c[0] = 0;", Guard.CONDITIONS),
    "ldc is large": ("columns", "if (ldc > 5000) c[0] = 0;", Guard.CONDITIONS),
    "ldc is 48": ("columns", "if (ldc == 48) c[0] = 0;", Guard.CONDITIONS),
    "ldc is larger than lda": ("columns", "if (ldc > lda) c[0] = 0;", Guard.CONDITIONS),
    "a switch on k": ("columns", "switch (k) { case 79: c[0] = 0; }", Guard.CONDITIONS),
    # locals
    "a local that was never written": ("columns", "{{ element }} x; c[0] = x;", Guard.LOCALS),
    "a local that one branch writes": ("columns", "{{ element }} x; if (k > 2) x = 1; c[0] = x;", Guard.LOCALS),
    "a local that a loop may write": (
        "columns",
        "{{ element }} x; for (size_t p = 1; p < k; ++p) x = 1; c[0] = x;",
        Guard.LOCALS,
    ),
    "a local that a case may write": (
        "columns",
        "{{ element }} x; switch (k) { case 1: x = 1; } c[0] = x;",
        Guard.LOCALS,
    ),
    "a sum that begins as it was": (
        "columns",
        "{{ vector }} x; x = {{ add('x', zero('full'), 'full') }};",
        Guard.LOCALS,
    ),
    "a counter that was never written": ("columns", "size_t i; if (i) c[0] = 0;", Guard.LOCALS),
    "an array that was never written": ("columns", "{{ element }} x[4]; c[0] = x[2];", Guard.LOCALS),
    "an array of which a part was written": ("columns", "{{ element }} x[4]; x[0] = 1; c[0] = x[2];", Guard.LOCALS),
    "a local that hides another": ("columns", "{{ element }} x = 1; { {{ element }} x; c[0] = x; }", Guard.LOCALS),
    # in what order
    "a change in the second half of a condition": (
        "rows",
        "size_t p = 0; if (k > 2 && (p = p + k) > 1) c[0] = 0; c[0] = a[p];",
        Guard.BOUNDS,
    ),
    "a change in a choice": ("rows", "size_t p = 0; c[0] = k > 2 ? (p = k, alpha) : alpha; c[0] = a[p];", Guard.BOUNDS),
    "two changes of a name": ("rows", "size_t p = 0; c[p++] = a[p++];", Guard.BOUNDS),
    "a change beside a use": ("rows", "size_t p = k; c[p] = (p = 0);", Guard.BOUNDS),
    "a change that happens twice": ("rows", "size_t p = 0; c[p++] += 1;", Guard.BOUNDS),
    "a change in a primitive's argument": (
        "columns",
        "for (; k; --k) { {{ store_tail('c', load_tail('a++', vl(0)), vl(0)) }}; }",
        Guard.BOUNDS,
    ),
    "a truth that is more than 1": ("rows", "bool p = m; c[0] = a[k - 1 - p + 1];", Guard.BOUNDS),
    "a quotient of another turn": (
        "rows",
        "for (size_t p = 0; p < (k - p) / 2; ++p) c[0] += a[p + k / 2 + 1];",
        Guard.CONDITIONS,
    ),
    "the end of a loop that is none": ("rows", "break;", Guard.SYNTAX),
    "a case within a loop": ("rows", "switch (m) { case 1: for (;;) { case 2: c[0] = a[k]; break; } }", Guard.BOUNDS),
    "a lane of a vector": ("columns", "{{ vector }} v = {{ zero('full') }}; c[0] = v[9];", Guard.BOUNDS),
    # what C computes, and in which type
    "nothing times a write": ("columns", "c[0] = 0 * (c[1000000] = 1);", Guard.BOUNDS),
    "nothing times a read": ("columns", "c[0] = 0 * a[1000000];", Guard.BOUNDS),
    "nothing times an operand": ("columns", "size_t i = 0 * a[0]; c[i] = 0;", Guard.DATA),
    "nothing times a size": ("columns", "if (0 * k - 1 > 5) c[1000000] = 0;", Guard.CONDITIONS),
    "nothing that has a suffix": ("columns", "if (-1 + 0ul > 5) c[1000000] = 0;", Guard.CONDITIONS),
    "a number with a suffix": ("rows", "c[0] = a[k + (0u - 1)];", Guard.BOUNDS),
    "a number that its base makes unsigned": ("columns", "c[(0xffffffff + 2) - 0x100000001] = 0;", Guard.BOUNDS),
    "what a narrow counter becomes": ("columns", "uint8_t i = 255; size_t j = ++i; c[j - 256] = 0;", Guard.BOUNDS),
    "a count that an element held": ("rows", "size_t j = (c[0] = k); c[0] = a[j - 1];", Guard.DATA),
    "a choice of two below 0": ("columns", "ptrdiff_t z = k > 2 ? -1 : -5; c[z * 1000] = 0;", Guard.BOUNDS),
    "a distance that wraps": ("columns", "ptrdiff_t d = (a + lda * lda) - a; c[d - lda * lda] = 0;", Guard.BOUNDS),
    "a divisor that wraps": ("columns", "if (m > 1) c[1 / (lda * lda + 1)] = 0;", Guard.BOUNDS),
    # how far a pointer moves
    "steps of a wider number": (
        "rows",
        "const int64_t *x = (const int64_t *)a; c[0] = *(const {{ compute }} *)(x + (k - 1));",
        Guard.BOUNDS,
    ),
    "steps of a vector": (
        "columns",
        "{{ element }} *q = ({{ element }} *)(({{ vector }} *)c + (m - 1)); *q = 0;",
        Guard.BOUNDS,
    ),
    # loops that go on where two are equal
    "a loop while equal": ("rows", "size_t p = 1; for (; p == k; ++p) c[0] = 0; c[0] = a[p];", Guard.BOUNDS),
    "a loop while not unequal": ("rows", "size_t p = 1; for (; !(p != k); ++p) c[0] = 0; c[0] = a[p];", Guard.BOUNDS),
    "a loop while either is unequal": (
        "rows",
        "if (k > 1) for (size_t p = 0, q = 0; q != 1 || p != k; ++p, ++q) c[0] = a[p];",
        Guard.BOUNDS,
    ),
    "a loop to the end and beyond, by pointers": (
        "rows",
        "const {{ compute }} *e = a + k; for (const {{ compute }} *p = a; p <= e; ++p) c[0] = 0; c[k * 1000] = 0;",
        Guard.BOUNDS,
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
    "lanes past a tail, after a turn": (
        "columns",
        "{{ vector }} v = {{ zero('full') }}; for (; k; --k) v = {{ fma_vv('v', 'v', 'v', 'tail(1)') }};"
        " c[0] = {{ sum('v') }};",
        Guard.LOCALS,
    ),
    # which name, and for how long
    "a pointer made of itself": ("columns", "{ {{ element }} *c = c; *c = 0; }", Guard.LOCALS),
    "a counter made of itself": ("columns", "size_t i = 0; { size_t i = i; c[i] = 0; }", Guard.LOCALS),
    "an element made of itself": (
        "columns",
        "{{ element }} s = 1; { {{ element }} s = s; c[0] = s; }",
        Guard.LOCALS,
    ),
    "a local that cases jump past": (
        "columns",
        "size_t x = 0; switch (m) { case 7: ; size_t x = 0; case 1: c[x] = 0; }",
        Guard.LOCALS,
    ),
    "an array that is gone": (
        "columns",
        "{{ element }} *q = c; { {{ element }} x[4] = {0}; q = x; } *q = 1;",
        Guard.LOCALS,
    ),
    "an array that another hid": (
        "columns",
        "{{ element }} x[4]; { {{ element }} x[4] = {0}; x[0] = 1; } c[0] = x[0];",
        Guard.LOCALS,
    ),
    "an array that another hides": (
        "columns",
        "{{ element }} x[4], *q = x; { {{ element }} x[4] = {0}; x[0] = 1; c[0] = q[0]; }",
        Guard.LOCALS,
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
        Guard.CONDITIONS,
    ),
    "k is 1024, by a pointer": (
        "rows",
        "const {{ compute }} *p = a; for (size_t i = 0; i < 64 && k; ++i) p += 16; if (p == a + k) c[0] = 0;",
        Guard.CONDITIONS,
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
        Guard.CONDITIONS,
    ),
    "k is 255, by a sum of choices": (
        "columns",
        "size_t x = k > 2 ? 64 : 0, y = k > 2 ? 64 : 1, z = k > 2 ? 64 : 2, w = k > 2 ? 63 : 4;"
        " if (k == x + y + z + w) c[0] = 0;",
        Guard.CONDITIONS,
    ),
    "k by three remainders": (
        "columns",
        "if (k % 61 == 7) if (k % 59 == 3) if (k % 53 == 11) c[0] = 0;",
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
    "k counted down": ("columns", "while (k--) { c[0] += *a * *b; a += lda; b += rsb; }"),
    "signed counters": ("columns", "for (ptrdiff_t p = 0; p < (ptrdiff_t)k; ++p) { c[0] += *a; a += lda; }"),
    "every other one": ("rows", "size_t u = 1; for (; u < 8; u += 2) c[0] = 0; c[0] = a[k - 1];"),
    "from the end": ("columns", "for (size_t p = k; p-- > 0;) c[0] += a[p * lda];"),
    "indices of their own": (
        "columns",
        "size_t x = 0, y = 0; for (size_t p = 0; p < k; ++p) { c[0] += a[x] * b[y]; x += lda; y += rsb; }",
    ),
    "pointers": (
        "rows",
        "const {{ compute }} *p = a, *q = b, *end = a + k; for (; p + 4 <= end; p += 4, q += 4) c[0] += p[3] * q[3];"
        " for (; p < end; ++p, ++q) c[0] += *p * *q;",
    ),
    "pointers, by what is left": (
        "rows",
        "const {{ compute }} *p = a, *end = a + k; for (; end - p >= 4; p += 4) c[0] += p[3];"
        " for (; p != end; ++p) c[0] += *p;",
    ),
    "pointers, by rows": (
        "columns",
        "const {{ compute }} *end = a + k * lda; for (const {{ compute }} *p = a; p < end; p += lda) c[0] += *p;",
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
    "unrolled, the rest by cases": (
        "columns",
        "for (; k >= 4; k -= 4) { c[0] += a[3 * lda]; a += 4 * lda; }"
        " switch (k) { case 3: { c[0] += *a; a += lda; } case 2: { c[0] += *a; a += lda; } case 1: c[0] += *a; }",
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
        "const {{ compute }} *p = a; {{ element }} *q = c; for (; p + lanes <= a + m; p += lanes, q += lanes)"
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


@pytest.mark.parametrize("what", IN_TILES)
def test_what_leaves_its_operands_or_hides_a_choice_is_refused(what: str) -> None:
    reads, body, guard = IN_TILES[what]
    for platform_name in ("avx2", "rvv"):
        outcome = in_a_tile(reads, body, platform_name)
        assert isinstance(outcome, Outcome), outcome.kernel
        assert (outcome.kind, outcome.where) == (Kind.REFUSED, "author")
        assert outcome.message.startswith(f"{guard.value}: "), outcome.message


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

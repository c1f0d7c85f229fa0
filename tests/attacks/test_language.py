"""The language of templates: texts just outside it, and texts that use a corner of C against the proof.

Each is refused by a named rule or guard; beside it stands what an honest template writes.
"""

from __future__ import annotations

import pytest

from tensorop.author.gate import Guard
from tensorop.author.grammar import language
from tensorop.model.kernel import KernelText
from tensorop.model.trial import Kind, Outcome
from tests.attacks.test_template_c import in_a_tile, on_device

MANY = "".join(f"if (k == {number}) c[0] = 0; " for number in range(2, 63))
MANY += "".join(f"if (alpha == {number}) c[0] = 0; if (beta == {number}) c[0] = 0; " for number in (0, 1))
NESTED = "for (size_t p = 0; p < k; ++p) for (size_t q = 0; q < k; ++q) if (q == p) c[0] = 0;"
# What breaks: how A is read, the text, and what names the rule
TEXTS = {
    # loops that do not end, and what follows them
    "a step of no lanes": ("columns", "for (size_t p = 0; p < k; p += lanes - lanes) c[0] = 0; c[m] = 0;", "loop"),
    "a step of a quotient": ("columns", "size_t s = 1 / (k + 1), p = 0; while (p < k) p += s; c[m] = 0;", "loop"),
    "a step that is 0 for small k": ("columns", "for (size_t p = 0; p < k; p += k / 64) c[0] = 0;", "loop"),
    "a step of a local": ("columns", "size_t s = 1; for (size_t p = 0; p < k; p += s) { s = 0; c[0] = 0; }", "loop"),
    "a step of a stride": ("columns", "for (size_t p = 0; p < k; p += lda) c[0] = 0;", "loop"),
    "a step of half a vector": ("columns", "for (size_t p = 0; p < k; p += lanes / 2) c[0] = 0;", "loop"),
    "a step of 0": ("columns", "for (size_t p = 0; p < k; p += 0) c[0] = 0; c[m] = 0;", "loop"),
    "a step of 0 lanes": ("columns", "for (size_t p = 0; p < k; p += 0 * lanes) c[0] = 0; c[m] = 0;", "loop"),
    "no step": ("columns", "for (size_t p = 0; p < k;) c[0] = 0; c[m] = 0;", "loop"),
    "no test": ("columns", "for (;;) c[0] = 0;", "loop"),
    "a test that always holds": ("columns", "while (1) c[0] = 0; c[m] = 0;", "loop"),
    "a test of nothing that changes": ("columns", "while (k > 2) c[0] = 0; c[m] = 0;", "loop"),
    "a step and its undoing": ("columns", "for (size_t p = 0; p < k; ++p) { c[0] = 0; --p; }", "loop"),
    "a step in the other direction": ("columns", "for (size_t p = k; p < m; --p) c[0] = 0;", "loop"),
    "a step in an if": ("columns", "for (size_t p = 0; p < k;) { c[0] = 0; if (csb == 1) ++p; }", "loop"),
    "a step in an inner loop": (
        "columns", "for (size_t p = 0; p < k;) { for (size_t q = 0; q < m; ++q) ++p; } c[m] = 0;", "loop",
    ),
    "a counter that is set": ("columns", "for (size_t p = 0; p < k; ++p) { if (m == 1) p = 0; c[0] = 0; }", "loop"),
    "a counter that is halved": ("columns", "for (size_t p = k; p > 0; p = p / 2) c[0] = 0;", "loop"),
    "a bound that moves": ("columns", "for (size_t p = 0; p < k; ++p) { c[0] = 0; ++k; }", "loop"),
    "a bound that moves in an if": ("columns", "for (size_t p = 0; p < k; ++p) if (m > 1) k += 1;", "loop"),
    "two counters": ("columns", "for (size_t p = 0, q = k; p < q; ++p, ++q) c[0] = 0; c[m] = 0;", "loop"),
    "a counter on both sides": ("columns", "for (size_t p = 0; p < p + k; ++p) c[0] = 0; c[m] = 0;", "loop"),
    "a counter times a size": ("columns", "for (size_t p = 0; p * lanes < k; ++p) c[0] = 0;", "loop"),
    "while unequal": ("columns", "for (size_t p = 2; p != k; ++p) c[0] = 0; c[m] = 0;", "loop"),
    "while equal": ("columns", "for (size_t p = 1; p == k; ++p) c[0] = 0; c[m] = 0;", "loop"),
    "while nonzero, by 2": ("columns", "for (; k; k -= 2) c[0] = 0; c[m] = 0;", "loop"),
    "while nonzero, by 1 twice": ("columns", "for (; k; --k) { c[0] = 0; --k; } c[m] = 0;", "loop"),
    "while nonzero, upwards": ("columns", "for (; k; ++k) c[0] = 0; c[m] = 0;", "loop"),
    "two tests": ("columns", "for (size_t p = 0; p < k && m > 0; ++p) c[0] = 0;", "loop"),
    "one of two tests": ("columns", "for (size_t p = 0; p < k || m > 0; ++p) c[0] = 0; c[m] = 0;", "loop"),
    "a test with a negation": ("columns", "for (size_t p = 0; !(p >= k); ++p) c[0] = 0;", "loop"),
    "a pointer as a counter": (
        "rows", "const {{ compute }} *e = a + k; for (const {{ compute }} *p = a; p < e; ++p) c[0] += *p;", "pointer",
    ),
    "a bool as a counter": ("columns", "for (bool p = 0; p < 1; ++p) c[0] = 0; c[m] = 0;", "change"),
    "an int that wraps": ("columns", "for (int p = 1; p > 0; p += 1) c[0] = 0; c[m] = 0;", "loop"),
    "a narrow counter": ("columns", "for (uint8_t p = 0; p < k; ++p) c[0] = 0; c[m] = 0;", "conditions"),
    "a counter below 0 by a step of 2": ("columns", "for (; k > 0; k -= 2) c[0] = 0; c[m] = 0;", "conditions"),
    "an unsigned counter that stays above 0": ("columns", "for (size_t p = k; p >= 0; --p) c[0] = 0;", "conditions"),
    "a loop in a do": ("columns", "do { c[0] = 0; --k; } while (k);", "statement"),
    "a loop that is left": ("columns", "for (; k; --k) { if (k == 2) break; c[0] = 0; }", "statement"),
    "a turn that is cut short": ("columns", "for (; k; --k) { if (k == 2) continue; c[0] = 0; }", "statement"),
    "a function that is left": ("columns", "if (k == 2) return; c[0] = 0;", "statement"),
    # side effects where a proof may read them once or often
    "a change in a switch's head": ("columns", "switch (k = k - 1) { case 0: c[m] = 0; }", "statement"),
    "a switch": ("columns", "switch (k) { case 1: c[0] = 0; }", "statement"),
    "a step in an if's condition": ("columns", "if (--k == 0) c[m] = 0;", "size"),
    "a change in a condition": ("columns", "if ((k = 0)) c[m] = 0;", "size"),
    "a change in a loop's test": ("columns", "while (k--) c[0] = 0;", "loop"),
    "a comma in a condition": ("columns", "if ((k, m) == 0) c[m] = 0;", "size"),
    "a change in an index": ("columns", "size_t i = 0; c[i++] = 0; c[i] = 0;", "size"),
    "a change in an initializer": ("columns", "size_t i = 0, j = (i = 1); c[j] = 0;", "size"),
    "a change in a chain": ("columns", "size_t i, j; i = j = 0; c[i] = 0;", "size"),
    "a change in a choice": ("columns", "size_t i = k < m ? k++ : m; c[0] = 0;", "size"),
    "a change in an argument": ("columns", "{{ store_tail('c', load_tail('a++', vl(0)), vl(0)) }};", "pointer"),
    "a change behind &&": ("columns", "if (k > 2 && (m = 0) == 0) c[m] = 0;", "size"),
    "an element that is stepped": ("columns", "++c[0];", "change"),
    # conversions of C
    "^ of an int and an unsigned": ("columns", "if ((m ^ 1u) < 0) c[m] = 0;", "size"),
    "^=": ("columns", "size_t i = k; i ^= 1; c[0] = 0;", "change"),
    "& of a size": ("columns", "if (k & 1) c[0] = 0;", "size"),
    "| of a size": ("columns", "if ((k | 1) == 1) c[0] = 0;", "size"),
    "~ of a size": ("columns", "if (~k == 0) c[m] = 0;", "size"),
    "%= of a size": ("columns", "k %= 4; c[0] = 0;", "change"),
    "-1": ("columns", "if (-1 > k) c[m] = 0;", "size"),
    "-k": ("columns", "if (-k > k) c[m] = 0;", "size"),
    "an unsigned literal": ("columns", "if (0u - 1 < k) c[m] = 0;", "size"),
    "a literal that its base makes unsigned": ("columns", "if (0xffffffff + 1 == 0) c[m] = 0;", "size"),
    "an octal literal": ("columns", "if (k < 010) c[0] = 0;", "size"),
    "a sum that overflows": ("columns", "int x = 2147483647; x += 1; c[0] = 0; (void)x;", "bounds"),
    "a large literal": ("columns", "c[4294967296 - 4294967296] = 0;", "size"),
    "a fraction as a size": ("columns", "if (k < 1.5) c[0] = 0;", "size"),
    "a size cut to int": ("columns", "if ((int)k < 0) c[m] = 0;", "size"),
    "a size cut to a byte": ("columns", "const uint8_t i = k; if (i < k) c[m] = 0;", "conditions"),
    "sizeof": ("columns", "if (k < sizeof(float)) c[0] = 0;", "size"),
    "a truth as a size": ("columns", "const size_t i = k > 2; c[i] = 0;", "size"),
    "a sum of truths": ("columns", "if ((k > 2) + (m > 2) == 2) c[0] = 0;", "size"),
    "a bool of a size": ("columns", "bool p = m; if (p) c[0] = 0; c[p] = 0;", "size"),
    "a product of sizes": ("columns", "if (k * m == 6) c[0] = 0;", "size"),
    "a shift by a size": ("columns", "if (k >> m == 0) c[0] = 0;", "size"),
    "a shift by -1": ("columns", "if (k >> -1 == 0) c[0] = 0;", "size"),
    "a shift by 64": ("columns", "if (k >> 64 == 1) c[m] = 0;", "size"),
    "a choice that is none of two": ("columns", "const size_t i = k < 3 ? 0 : 1; c[0] = 0; (void)i;", "size"),
    "a mixed condition": ("columns", "if (k > 2 && m > 2 || csb == 1) c[0] = 0;", "condition"),
    # more outcomes together than verification calls
    "many numbers": ("columns", MANY, "path"),
    "many turns": ("columns", NESTED, "path"),
    # divisors
    "a divisor that may be 0": ("columns", "size_t i = m / (k - 1); if (k - 1 == 0) c[m] = 0; (void)i;", "division"),
    "a remainder by what may be 0": ("columns", "size_t i = m % (k / 2); if (k / 2 == 0) c[m] = 0;", "division"),
    "a divisor by which a test is late": ("columns", "size_t i = m / rsb; if (rsb == 0) c[m] = 0;", "division"),
    "a divisor of 0": ("columns", "size_t i = k / 0; c[0] = 0;", "division"),
    "a divisor in an index": ("columns", "c[0 / (k - 1)] = 0;", "division"),
    "a divisor in a prefetch": ("columns", "{{ prefetch('a + 1 / (k - 1)') }}; if (k == 1) c[m] = 0;", "division"),
    "a divisor cut to 0": ("columns", "int d = k; size_t i = m / d; if (k == 0) c[m] = 0; (void)i;", "division"),
    "a divisor that wraps to 0": ("columns", "size_t i = 1 / (lda * lda * lda + 1); c[0] = 0;", "division"),
    "an element by a large quotient": ("columns", "c[k / 60 / 60 % 2 * 0] = b[k / 4096 % 1];", "division"),
    "an element by a shift": ("columns", "c[0] += b[(k >> 16) % m * 0 + (k >> 16) % 2 * csb];", "division"),
    "a remainder by a large number": ("columns", "c[0] += a[k % 4096 % k * lda];", "division"),
    "a quotient of data": ("columns", "c[0] = a[0] / b[0];", "data"),
    # sizes, literals and choices as data
    "a size as data": ("columns", "c[0] = k;", "data"),
    "a size in a local of data": ("columns", "{{ element }} f = ldc; c[0] = alpha * f;", "data"),
    "a size cast to data": ("columns", "c[0] = ({{ element }})k;", "data"),
    "a size in a product": ("columns", "c[0] = alpha * (ldc - 70001);", "data"),
    "a size as a scalar of a primitive": (
        "columns", "{{ vector }} v = {{ mul(zero(vl(0)), 'k', vl(0)) }}; (void)v;", "data",
    ),
    "a condition as data": ("columns", "c[0] = k > 2;", "data"),
    "a literal as data": ("columns", "c[0] = alpha * 1e30f;", "data"),
    "a literal in an array": ("columns", "{{ element }} x[2] = {0, 3}; c[0] = x[1];", "data"),
    "a quotient that selects": ("columns", "alpha *= 1 + 1 / (1 + a[0] * a[0] * 1e30f);", "data"),
    "a quotient that selects a stride": ("columns", "{{ element }} f = ldc; alpha *= 1 + 1 / (1 + f * f);", "data"),
    "a choice of data": ("columns", "c[0] = beta == 0 ? alpha : 0;", "data"),
    "a choice by a size": ("columns", "c[0] = k < 3 ? a[0] : b[0];", "data"),
    "data below 0": ("columns", "c[0] = -a[0];", "data"),
    "a truth of data": ("columns", "c[0] = !a[0];", "data"),
    "a size of data": ("columns", "size_t i = a[0]; c[i] = 0;", "data"),
    "a comparison of data": ("columns", "if (a[0] > b[0]) c[0] = 0;", "data"),
    # addresses
    "addresses compared": ("columns", "if (a + 1 == a) c[m] = 0;", "pointer"),
    "a difference of addresses": ("rows", "c[(a + k) - a - k] = 0;", "pointer"),
    "an address cast": ("columns", "const char *x = (const char *)a; (void)x;", "pointer"),
    "the address of an element": ("columns", "{{ element }} *x = &c[0]; *x = 0;", "pointer"),
    "a choice of addresses": ("columns", "{{ element }} *x = k < 2 ? c : c + 1; *x = 0;", "pointer"),
    # names
    "a name of the function": ("columns", "size_t k = 0; c[k] = 0;", "hiding"),
    "a name of a block around": ("columns", "size_t i = 0; { size_t i = 5; c[i] = 0; }", "hiding"),
    "a counter's name in its body": ("columns", "for (size_t p = 0; p < k; ++p) { size_t p = 0; ++p; }", "hiding"),
}  # fmt: skip
DEVICE = {
    "a step of nothing": ("for (int i = 0; i < k; i += thread - thread) sums[0] = 0; c[m * ldc] = tiles[0];", "loop"),
    "a loop without a step": ("for (int i = 0; i < k;) sums[0] = 0; c[m * ldc] = tiles[0];", "loop"),
    "a loop that a bool ends": ("bool on = 1; while (on) sums[0] = 0; c[m * ldc] = tiles[0];", "loop"),
    "a switch whose head changes": ("int i = 0; switch (++i) { case 1: sums[0] = 0; }", "statement"),
    "a divisor that may be 0": ("int i = 8 / k; if (k == 0) c[m * ldc] = tiles[0]; sums[i % 4] = 0;", "division"),
    "a divisor that may have wrapped": (
        "unsigned d = k; d *= 65536; d = 8 / d; if (k == 0) c[0] = tiles[0];",
        "division",
    ),
    "a sum that may overflow": ("int x = k + 2147483647; sums[0] = 0; (void)x;", "bounds"),
    "a product that may overflow": ("int x = k * 65536; sums[0] = 0; (void)x;", "bounds"),
    "a step that may overflow": ("int x = 0; for (int i = 0; i < n; ++i) x += 2; sums[0] = 0; (void)x;", "bounds"),
    "a remainder that may be by 0": ("int i = 8 % k; if (i < 0) c[m * ldc] = tiles[0];", "division"),
    "mixed bits": ("if ((thread ^ 1) < 0) c[m * ldc] = tiles[0];", "size"),
    "a step in a condition": ("int i = 0; if (++i == 2) c[m * ldc] = tiles[0];", "size"),
    "a turn that is cut short": ("for (int i = 0; i < 4; ++i) { if (i == 2) continue; sums[i] = 0; }", "statement"),
    "a thread that leaves": ("if (thread == 3) return; __syncthreads();", "statement"),
    # one combination of small numbers, which no call may have
    "four numbers": ("if (k == 53 && m == 14 && beta == 0 && alpha == 1) sums[0] = 0;", "path"),
    "two numbers": ("if (k == 53) if (m == 14) sums[0] = 0;", "path"),
    "a number and both scales": ("if (k == 53) if (beta == 0) if (alpha == 1) sums[0] = 0;", "path"),
    "a number and the rest of a tile": ("if (k == 53) if (row0 + 14 == m) sums[0] = 0;", "path"),
    "the rests of two sides": ("if (m - row0 == 14 && n - col0 > 2) sums[0] = 0;", "path"),
    "a number by two comparisons": ("if (k > 52) if (k < 54) if (row0 + 13 < m) sums[0] = 0;", "path"),
    "a number by a local": ("int x = 0; if (k == 53) x = 1; if (x == 1) if (m == 14) sums[0] = 0;", "path"),
    "a number by a bool": ("const bool p = k == 53; if (p) if (m == 14) sums[0] = 0;", "path"),
    "a number by a turn": ("for (int p = 0; p < k; ++p) if (p == 52) if (m == 14) sums[0] = 0;", "path"),
    "a number by steps": (
        "const int end = (k + 31) / 32; for (int s = 0; s < end; ++s) if (s == 3) if (m == 14) sums[0] = 0;", "path",
    ),
    "a number by a remainder": ("if (k % 16 == 3) if (m > 13) sums[0] = 0;", "path"),
    "a number by an index": ("const int x = k == 53 ? 4 : 0; if (m == 14) sums[x] = 0;", "path"),
    "a number by a count": ("const int x = k == 53 ? 8 : 0; if (m == 14) elements_copy(tiles, a, 0 * x);", "path"),
    "a number by data": ("float f = k == 53 ? 0 : alpha; if (m == 14) sums[0] = f;", "path"),
    "a number by a bool as a size": ("const bool p = k == 53; if (m == 14) sums[p] = 0;", "path"),
    "a count of 0 for one size": ("elements_copy(tiles, a, (k - 53) * (k - 53) * 8);", "size"),
    "a factor that becomes a size": (
        "int x = (int)thread; x = k - 53; elements_copy(tiles, a, x * (k - 53) * 8);",
        "size",
    ),
    "a factor that becomes a size later": (
        "int x = (int)thread; for (int i = 0; i < 2; ++i) { elements_copy(tiles, a, x * (k - 53)); x = k - 53; }",
        "size",
    ),
    "a count of 0 for two sizes": ("word_copy(tiles, a, (k - 53) * (k - 53) + (m - 14) * (m - 14));", "size"),
    # sizes, literals and quotients as data
    "a quotient that selects": ("alpha *= 1 + 1 / (1 + value(a[0]) * value(b[0]));", "data"),
    "a quotient that selects a stride": ("float f = ldc; alpha *= 1 + 1 / (1 + f * f);", "data"),
    "a quotient by a literal": ("alpha = alpha / 3;", "data"),
    "a size as data": ("sums[0] = k;", "data"),
    "a size cast to data": ("sums[0] = (float)k;", "data"),
    "a size in a product": ("alpha *= ldc - 70001;", "data"),
    "a size as a number of a primitive": ("pair_put(c, k, 0, 0, pairs);", "data"),
    "a size as bits": ("uint4 x = make_uint4(k, 0, 0, 0); (void)x;", "data"),
    "a number of a thread as data": ("sums[thread] = thread;", "data"),
    "a condition as data": ("sums[0] = k > 2;", "data"),
    "a literal as data": ("alpha *= 1e30f;", "data"),
    "a literal as bits": ("uint4 x = make_uint4(1065353216, 0, 0, 0); (void)x;", "data"),
}  # fmt: skip
HONEST = {
    "upwards": ("columns", "for (size_t p = 0; p < k; ++p) { c[0] += a[p * lda]; }"),
    "upwards by vectors": ("rows", "size_t p = 0; for (; p + 2 * lanes <= k; p += 2 * lanes) {{ prefetch('a + p') }};"),
    "downwards": ("columns", "for (; k; --k) { c[0] += *a; a += lda; }"),
    "downwards by 4": ("columns", "for (; k >= 4; k -= 4) { c[0] += a[3 * lda]; a += 4 * lda; }"),
    "downwards in the body": ("columns", "while (k > 1) { c[0] += *a; a += lda; k -= 1; }"),
    "from the end": ("columns", "for (size_t p = k; p > 0; --p) c[0] += a[(p - 1) * lda];"),
    "one less before": ("columns", "for (--k; k; --k) { a += lda; c[0] += *a; }"),
    "a divisor that is at least 1": ("columns", "const size_t s = (4 << 16) / (k / 4 + 1); {{ prefetch('c + s') }};"),
    "the smaller of two": (
        "columns", "const size_t h = k < 32 ? k : 32; for (size_t q = 0; q < h; ++q) c[0] += a[q * lda];",
    ),
    "numbers of one size": ("columns", "if (k == 5) c[0] = 0; if (k > 40 && rsb == 1 && beta == 0) c[0] = alpha;"),
    "numbers of one size and of its turns": (
        "columns", "if (k > 6) c[0] = 0; for (size_t p = 0; p < k; ++p) if (p < 14) c[0] += a[p * lda];",
    ),
    "a number of constant turns": (
        "columns", "if (k > 6) c[0] = 0; for (size_t q = 0; q < 4; ++q) if (q == 2) c[0] = 0;",
    ),
    "beta": ("columns", "if (beta == 0) c[0] = alpha * a[0]; else if (beta != 1) c[0] = beta * c[0];"),
}  # fmt: skip


@pytest.mark.one_in(5)
@pytest.mark.parametrize("what", TEXTS)
def test_what_is_not_of_the_language_is_refused_by_its_rule(what: str) -> None:
    reads, body, rule = TEXTS[what]
    for platform in ("avx2", "rvv"):
        outcome = in_a_tile(reads, body, platform)
        assert isinstance(outcome, Outcome), outcome.kernel
        assert (outcome.kind, outcome.where) == (Kind.REFUSED, "author")
        _named(outcome, rule)


@pytest.mark.parametrize("what", DEVICE)
def test_what_is_not_of_a_device_s_language_is_refused_by_its_rule(what: str) -> None:
    outcome = on_device(f"{DEVICE[what][0]}\n")
    assert isinstance(outcome, Outcome)
    _named(outcome, DEVICE[what][1])


@pytest.mark.parametrize(
    ("condition", "passes"),
    [
        ("k == 53", True),
        ("k == 53 && beta == 0", True),
        ("k / 32 == 3 && alpha == 1", True),
        ("k == 16 && beta == 0 && alpha == 1", True),
        ("k == 17 && beta == 0 && alpha == 1", False),
        ("m == 256 && ldc == 1", True),
        ("m == 257", False),
    ],
)
def test_what_a_family_for_a_device_may_pick(condition: str, passes: bool) -> None:
    """No path of it is called: it may be wrong where such a condition holds, as docs/explanation/security.md says."""
    for text in (f"if ({condition}) sums[0] = 0;\n", f"for (int i = 0; i < 4; ++i) if ({condition}) sums[i] = 0;\n"):
        assert isinstance(on_device(text), str) is passes


def _named(outcome: Outcome, rule: str) -> None:
    """The rule's name and its honest form, or the guard of what is proved; never a name that the proof made."""
    if rule in language().rules:
        assert outcome.message.startswith(f"{language().rules[rule].guard}: rule '{rule}': "), outcome.message
        assert language().rules[rule].honest in outcome.message
    else:
        assert outcome.message.startswith(f"{rule}: "), outcome.message
    assert "#" not in outcome.message, outcome.message


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("body", "trap"),
    [
        ("if (k == 0) c[m] = 0; c[0] = 0;", "if (k == 0) __builtin_trap();"),
        ("if (lanes < 1) c[m] = 0; else c[0] = 0;", "if (lanes < 1) __builtin_trap();"),
        ("if (ldc >= 1) { c[0] = 0; } else { c[m] = 0; }", "else __builtin_trap();"),
        ("for (size_t p = k; p < k; ++p) c[m] = 0;", "for (size_t p = k; p < k; ++p) __builtin_trap();"),
    ],
)
def test_what_nothing_executes_is_a_trap(body: str, trap: str) -> None:
    """What is not checked is not compiled; and it must be of the language."""
    for platform in ("avx2", "rvv"):
        text = in_a_tile("columns", body, platform)
        assert isinstance(text, KernelText), text.message
        assert "c[m] = 0" not in text.kernel
        assert " ".join(trap.split()) in " ".join(text.kernel.split())
        outcome = in_a_tile("columns", body.replace("c[m] = 0;", "break;"), platform)
        assert isinstance(outcome, Outcome)
        _named(outcome, "statement")


@pytest.mark.one_in(5)
@pytest.mark.parametrize("what", HONEST)
def test_the_honest_forms_pass(what: str) -> None:
    for platform in ("avx2", "rvv", "neon"):
        text = in_a_tile(*HONEST[what], platform)
        assert isinstance(text, KernelText), text.message


# What breaks, by the guard that shows where: one line of a template
LINES = {
    Guard.CHARACTERS: "c[0] = '0';",
    Guard.SYNTAX: "c[0] = (0;",
    Guard.GRAMMAR: "do --k; while (k);",
    Guard.CALLS: "abort();",
    Guard.TYPES: "FILE z{{ i }};",
    Guard.NAMES: "c[errno] = 0;",
    Guard.STORAGE: "{{ element }} z{{ i }}[k];",
    Guard.POINTERS: "if (a + 1 == a) c[0] = 0;",
    Guard.BOUNDS: "c[m + {{ i }}] = 0;",
    Guard.CONDITIONS: "if (k > 5000) c[0] = 0;",
    Guard.DATA: "c[0] = alpha * 2;",
    Guard.LOCALS: "{{ element }} z{{ i }}; c[0] = z{{ i }};",
}
AROUND_A_LINE = {  # and the number of its line
    "alone": ("{% set i = 0 %}\n\nLINE", 3),
    "in a loop": ("(void)k;\n{% for i in range(2) %}\n    (void)m;\n    LINE\n{% endfor %}\n(void)k;", 4),
    "in a macro": ("{% macro f(i) -%}\n\n    LINE\n{%- endmacro %}\n(void)k;\n{{ f(0) }} (void)m;", 3),
    "in a text": ("{% set i = 0 %}\n{% set z %}\nLINE\n{% endset %}\n\n{{ z | trim }}", 3),
    "in a text that is computed with": (
        "{% set i = 0 %}\n{% set z %}\nLINE\n{% endset %}\n{% if z | first in 'acdfiF' %}\n{{ z }}\n{% endif %}", 6,
    ),
}  # fmt: skip


@pytest.mark.one_in(5)
@pytest.mark.parametrize("around", AROUND_A_LINE)
@pytest.mark.parametrize("guard", LINES, ids=lambda guard: guard.value)
def test_a_refusal_names_the_line_of_the_template(guard: Guard, around: str) -> None:
    text, number = AROUND_A_LINE[around]
    text = text.replace("LINE", LINES[guard])
    outcome = in_a_tile("columns", text)
    assert isinstance(outcome, Outcome), outcome.kernel
    assert outcome.message.startswith(f"{guard.value}: "), outcome.message
    assert outcome.message.endswith(f": line {number}: {text.splitlines()[number - 1].strip()}"), outcome.message


@pytest.mark.parametrize(
    ("complaint", "lines", "number"),
    [
        ("more than 512 paths", ["(void)a;", *MANY.replace("; if", ";\nif").strip().split("\n"), "(void)m;"], 66),
        ("'k' and 'm' together", ["size_t x = k + m;", "if (beta == 0) x += 1;", "if (x > 40)", "    c[0] = 0;"], 3),
        ("turns until their paths", ["for (size_t p = 0; p < 4; ++p) c[0] = 0;", NESTED], 2),
    ],
)
def test_a_refusal_of_paths_names_the_line(complaint: str, lines: list[str], number: int) -> None:
    outcome = in_a_tile("stream", "\n".join(lines))
    assert isinstance(outcome, Outcome), outcome.kernel
    assert outcome.message.startswith("conditions: rule 'path': "), outcome.message
    assert complaint in outcome.message, outcome.message
    assert outcome.message.endswith(f"; write {language().rules['path'].honest}: line {number}: {lines[number - 1]}")


def test_a_refusal_names_the_line_of_a_family() -> None:
    body = (
        "{% for i in range(2) %}\n#pragma unroll\nfor (int e = 0; e < 4; ++e)\n    sums[e + 4096] = 0;\n{% endfor %}\n"
    )
    outcome = on_device(body)
    assert isinstance(outcome, Outcome)
    assert outcome.message.endswith(": line 4: sums[e + 4096] = 0;"), outcome.message

"""Answers of a language model that was asked for a kernel family: a right one, and what is wrong with others."""

from __future__ import annotations

HEAD = """---
strategy: two warps share a 32 x 32 part of C and take half of each step of K ({what})
reads: {{operands: pointers}}
needs: [word_copy, copies_commit, copies_wait, sum_clear, tile_a, tile_b, tile_multiply, sum_spread, pair_put, value]
tunables:
  tile_m: [32, 64]
  tile_n: [32, 64]
  deep: [3, 4]
  raster: [8]
facts:
  step: "32"
  parts: tile_m // 32 * (tile_n // 32)
  threads: parts * 64
  a_high: a_along_m * step + (1 - a_along_m) * tile_m
  a_wide: a_along_m * tile_m + (1 - a_along_m) * step
  b_high: b_along_k * tile_n + (1 - b_along_k) * step
  b_wide: b_along_k * step + (1 - b_along_k) * tile_n
  ring: a_high * (a_wide + 8) + b_high * (b_wide + 8)
  shared: max(2 * deep * ring, threads * 32)
  align_ab: "16"
  align_c: "2"
constraints:
  - {{must: shared <= shared_most, reason: more shared memory than a block may have}}
  - {{must: a_high * a_wide // 8 % threads + b_high * b_wide // 8 % threads == 0, reason: threads copy alike}}
seed_configurations:
  - {{tile_m: 32, tile_n: 32, deep: 4, raster: 8}}
---
"""
GOOD = """
{% set a_ld, b_ld = a_wide + 8, b_wide + 8 %}
{% macro fetch(to, from, high, wide, line0, at0, lines, ats) %}
            {
                const int line = thread / {{ wide // 8 }}, at = thread % {{ wide // 8 }} * 8;
                const int left = {{ ats }} - {{ at0 }} - at;
#pragma unroll
                for (int i = 0; i < {{ high * wide // 8 // threads }}; ++i) {
                    const int here = line + i * {{ threads * 8 // wide }};
                    const bool inside = {{ line0 }} + here < {{ lines }} && left > 0;
                    word_copy({{ to }} + here * {{ wide + 8 }} + at,
                              inside ? {{ from }} + ({{ line0 }} + here) * ld{{ from }} + {{ at0 }} + at : {{ from }},
                              inside ? left : 0);
                }
            }
{% endmacro %}
{% macro fetch_step(s, where) %}
            Element *const to_a = tiles + {{ where }} * {{ ring }};
            Element *const to_b = to_a + {{ a_high * (a_wide + 8) }};
            const int k0 = {{ s }} * {{ step }};
            {% if a_along_m %}{{ fetch('to_a', 'a', a_high, a_wide, 'k0', 'row0', 'k', 'm') }}
            {% else %}{{ fetch('to_a', 'a', a_high, a_wide, 'row0', 'k0', 'm', 'k') }}{% endif %}
            {% if b_along_k %}{{ fetch('to_b', 'b', b_high, b_wide, 'col0', 'k0', 'n', 'k') }}
            {% else %}{{ fetch('to_b', 'b', b_high, b_wide, 'k0', 'col0', 'k', 'n') }}{% endif %}
{% endmacro %}
    const int warp = thread / 32, lane = thread % 32;
    const int part = warp % {{ parts }}, half = warp / {{ parts }};
    const int pm = part / {{ tile_n // 32 }} * 32, pn = part % {{ tile_n // 32 }} * 32;
{% for i in range(2) %}{% for j in range(2) %}
    SumTile s{{ i }}{{ j }};
    sum_clear(s{{ i }}{{ j }});
{% endfor %}{% endfor %}
    const int steps = (k + {{ step - 1 }}) / {{ step }};
    for (int s = 0; s < {{ deep - 1 }}; ++s) {
        if (s < steps) {
            {{ fetch_step('s', 's') }}
        }
        copies_commit();
    }
    for (int s = 0; s < steps; ++s) {
        copies_wait({{ deep - 2 }});
        __syncthreads();
        const int next = s + {{ deep - 1 }};
        if (next < steps) {
            const int where = next % {{ deep }};
            {{ fetch_step('next', 'where') }}
        }
        copies_commit();
        const Element *const sa = tiles + s % {{ deep }} * {{ ring }};
        const Element *const sb = sa + {{ a_high * (a_wide + 8) }};
{% for i in range(2) %}
        TileA a{{ i }};
        {% set m0 = 'pm + %d' % (16 * i) %}
        const Element *const from_a{{ i }} =
            {% if a_along_m %}sa + half * {{ 16 * a_ld }} + {{ m0 }};
            {% else %}sa + ({{ m0 }}) * {{ a_ld }} + half * 16;{% endif %}

        tile_a(a{{ i }}, from_a{{ i }}, {{ a_ld }});
{% endfor %}
{% for j in range(2) %}
        TileB b{{ j }};
        {% set n0 = 'pn + %d' % (16 * j) %}
        const Element *const from_b{{ j }} =
            {% if b_along_k %}sb + ({{ n0 }}) * {{ b_ld }} + half * 16;
            {% else %}sb + half * {{ 16 * b_ld }} + {{ n0 }};{% endif %}

        tile_b(b{{ j }}, from_b{{ j }}, {{ b_ld }});
        tile_multiply(s0{{ j }}, a0, b{{ j }});
        tile_multiply(s1{{ j }}, a1, b{{ j }});
{% endfor %}
    }
    copies_wait(0);
{% for i in range(2) %}{% for j in range(2) %}
    __syncthreads();
    sum_spread(sums + warp * 256, s{{ i }}{{ j }}, 16);
    __syncthreads();
    for (int e = 0; e < 4; ++e) {
        const int r = e * 4 + lane / 8, q = lane % 8 * 2;
        const int row = row0 + pm + {{ 16 * i }} + r, col = col0 + pn + {{ 16 * j }} + q;
        if (half == 0 && row < m && col < n) {
            const float *const mine = sums + part * 256 + r * 16 + q;
            const float *const other = mine + {{ parts * 256 }};
            {{ 'float' if c_size == 4 else 'Element' }} *const to = c + row * ldc + col;
            const bool two = col + 1 < n;
            float x = alpha * (mine[0] + other[0]), y = alpha * (mine[1] + other[1]);
            if (beta != 0) {
                x += beta * {{ 'to[0]' if c_size == 4 else 'value(to[0])' }};
                y += two ? beta * {{ 'to[1]' if c_size == 4 else 'value(to[1])' }} : 0.f;
            }
            {{ 'float_pair_put' if c_size == 4 else 'pair_put' }}(to, x, y, two, pairs);
        }
    }
{% endfor %}{% endfor %}
"""
WITHOUT_A_BARRIER = GOOD.replace("        __syncthreads();\n        const int next", "        const int next")
WITHOUT_A_WAIT = GOOD.replace("copies_wait({{ deep - 2 }});", "copies_wait({{ deep - 1 }});")
WITHOUT_BETA = GOOD.replace("if (beta != 0) {", "if (beta == 0) {")
OUT_OF_BOUNDS = GOOD.replace("half == 0 && row < m && col < n", "half == 0 && row < m")
MISALIGNED = GOOD.replace("+ half * 16", "+ half * 8")
HOST_CODE = {
    "a file": GOOD + '\n#include "/etc/passwd"\n',
    "assembly": GOOD + '\n    asm volatile("trap;");\n',
    "code of the host": GOOD + "\n}\n__attribute__((constructor)) void evil(void) {\n",
    "a call of the host": GOOD + "\n    system(a);\n",
}
NO_CUDA = GOOD + "\n    const int fixed = k;\n    fixed = m;\n"


def answer(what: str, body: str) -> str:
    return "A family:\n```\n" + HEAD.format(what=what) + body + "```\n"

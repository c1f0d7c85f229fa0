"""The operators of examples/hooks, and one with every hook."""

from __future__ import annotations

from pathlib import Path

from tensorop.model.operator import Operator
from tensorop.specs import operators
from tests.support.commands import ROOT
from tests.support.convolutions import PIPELINED

EXAMPLES = ROOT / "examples" / "hooks"
NAMES = ("syrk", "trmm", "dense")
BLOCKS = {**PIPELINED, "mr_vectors": 2, "nr": 4, "mc": 32, "kc": 64, "nc": 24}  # small ones, so that all loops turn
PACKED = {**BLOCKS, "pack_a": 1, "pack_b": 1}

DRIVER = """
{% set run, work, hooks = "product", "product_work", ["wanted", "needed", "packed_a", "packed_b", "finished"] %}
struct {{ prefix }}_hooks {
    int upper;
};

static inline void {{ prefix }}_wanted(const struct {{ prefix }}_hooks *hooks, size_t j, size_t *first, size_t *end)
{
    if (hooks->upper)
        *end = j + 1;
    else
        *first = j;
}

static inline void {{ prefix }}_needed(const struct {{ prefix }}_hooks *hooks, size_t i, size_t rows, size_t j,
    size_t columns, size_t *first, size_t *end)
{
    const size_t of_a = i + rows, of_b = j + columns;
    (void)hooks, (void)first;
    *end = of_a < of_b ? of_a : of_b;
}

static void {{ prefix }}_packed_a(const struct {{ prefix }}_hooks *hooks, size_t i, size_t rows, size_t p, size_t steps,
    {{ compute }} *panel, size_t height)
{
    (void)hooks;
    for (size_t u = 0; u < steps; ++u)
        for (size_t x = 0; x < rows; ++x)
            panel[u * height + x] = p + u > i + x ? 0 : panel[u * height + x];
}

static void {{ prefix }}_packed_b(const struct {{ prefix }}_hooks *hooks, size_t j, size_t columns, size_t p,
    size_t steps, {{ compute }} *panel, size_t width)
{
    {{ prefix }}_packed_a(hooks, j, columns, p, steps, panel, width);
}

static inline void {{ prefix }}_finished(const struct {{ prefix }}_hooks *hooks, size_t i, size_t rows, size_t j,
    size_t columns, {{ element }} *c, size_t ldc)
{
    (void)hooks, (void)i, (void)j;
    for (size_t q = 0; q < columns; ++q)
        for (size_t x = 0; x < rows; ++x)
            c[x + q * ldc] += 1;
}

{% include "products.c.j2" %}

static void {{ prefix }}_run(const struct {{ prefix }}_kernel *kernel, const struct tensorop_lauum *s,
    const struct {{ prefix }}_blocking *of, const {{ element }} *a, {{ element }} *c, {{ element }} *work)
{
    const struct {{ prefix }}_variant variant = {{ prefix }}_variant_of(kernel, of);
    const size_t n = (size_t)s->n;
    const struct {{ prefix }}_hooks hooks = { s->uplo == 0 };
    {{ prefix }}_product(&hooks, &variant, n, n, n, ({{ element }})s->alpha, a, n, 1, a, 1, n,
        ({{ element }})s->beta, c, n, work);
}
"""


def load(name: str) -> Operator:
    return operators.load(name, (EXAMPLES,))


def with_every_hook(root: Path) -> Operator:
    """lauum: one triangle of alpha * L * L' + beta * C + 1, with the lower triangle L of A; of syrk's files."""
    own, syrk = root / "templates" / "lauum", EXAMPLES / "templates" / "syrk"
    own.mkdir(parents=True)
    (own / "driver.c.j2").write_text(DRIVER)
    for name in ("operator.yaml", "reference.py"):
        text = (syrk / name).read_text()
        for old, new in (
            ("name: syrk", "name: lauum"), ("dims: [n, k]", "dims: [n]"), ('shape: "{n}x{k}"', 'shape: "{n}"'),
            ("shape: [n, k]}", "shape: [n, n]}"), ("n * n * k", "n * n * n"), ("min(k,", "min(n,"),
            ("{n: 2 * mr_vectors * lanes, k: 256}", "{n: 2 * mr_vectors * lanes}"),
            ("[[64, 64], [100, 300], [256, 64], [512, 512]]", "[[64]]"), ("baselines: {syrk: cblas}\n", ""),
            ("[syrk+openblas]", "[openblas]"), ("(40, 24)", "(40,)"),
            ("n, k = problem.sizes.values()", "(n,) = problem.sizes.values()\n        k = n"),
            (".values())\n", ".values())\n        a = np.tril(a)\n"),
            ("beta * c if beta else np.zeros_like(c)", "1 + (beta * c if beta else np.zeros_like(c))"),
            ("np.abs(added)).astype", "np.abs(added - 1) + 1).astype"),
            ('{"n": max(n, 1), "k": int(rng.integers(1, 40))}', '{"n": max(n, 1)}'), ('{"n": n, "k": k}', '{"n": n}'),
        ):  # fmt: skip
            text = text.replace(old, new)
        (own / name).write_text(text)
    return operators.load("lauum", (root,))

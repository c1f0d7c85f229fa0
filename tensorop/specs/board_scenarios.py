"""Scenarios of a board model: choices of its assumed constants."""

from __future__ import annotations

from collections.abc import Mapping

from tensorop.specs.board import BoardModel, Cycles


def scenario_values(model: BoardModel, mode: str) -> tuple[dict[str, float], ...]:
    """Scenarios to model: dotted key -> value (for a table: factor). The first one is the best fit.

    mode:
    best         the best fit only
    interval     also the corners of a two-level design in which each unknown is at either end equally often and all
                 pairs are balanced (Hadamard), and the corners with all low and all high
    sensitivity  also each unknown alone at either end, in the order of `unknowns`
    """
    items = model.assumed()
    best = {key: 1.0 if isinstance(item, Cycles) else item.value for key, item in items.items()}
    if mode == "best" or not items:
        return (best,)
    factors = [
        tuple({key: float(getattr(items[key], end)) for key in keys} for end in ("low", "high"))
        for keys in model.unknowns().values()
    ]
    if mode == "sensitivity":
        return (best, *({**best, **end} for pair in factors for end in pair))
    if mode != "interval":
        raise ValueError(f"unknown scenario mode {mode!r}")
    corners: list[dict[str, float]] = []
    ends = [(0,) * len(factors), (1,) * len(factors)]
    for row in [*_two_level(len(factors)), *ends]:
        corner: dict[str, float] = {}
        for pair, high in zip(factors, row, strict=True):
            corner |= pair[high]
        if corner not in corners and corner != best:
            corners.append(corner)
    return (best, *corners)


def alternative_values(model: BoardModel) -> dict[str, dict[str, float]]:
    """Alternative -> the best fit with its changes."""
    (best,) = scenario_values(model, "best")
    return {name: under(best, model, name) for name in model.alternatives}


def under(values: Mapping[str, float], model: BoardModel, name: str) -> dict[str, float]:
    """A choice of constants with the changes of an alternative."""
    return {**values, **{key: float(value) for key, value in model.alternatives[name].change.items()}}


def _two_level(factors: int) -> list[tuple[int, ...]]:
    """Rows of 0 and 1 for `factors` columns: full factorial up to 3, Plackett-Burman 12 up to 11, Sylvester above.

    Columns are balanced and orthogonal. Plackett and Burman, Biometrika 33 (1946), gives the row for N = 12.
    """
    if factors <= 3:
        return [tuple((i >> k) & 1 for k in range(factors)) for i in range(2**factors)]
    if factors <= 11:
        generator = (1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0)
        rows = [tuple(generator[(k - shift) % 11] for k in range(factors)) for shift in range(11)]
        return [*rows, (0,) * factors]
    order = 1 << factors.bit_length()
    return [tuple(1 - (i & (k + 1)).bit_count() % 2 for k in range(factors)) for i in range(order)]

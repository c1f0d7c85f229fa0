"""syrk: one triangle of a symmetric product; the other one stays as it was."""

from typing import ClassVar

import numpy as np

from tensorop.model.call import Placement
from tensorop.model.case import Case
from tensorop.model.contract import Contract

WIDER = {"f32": np.float64, "f64": np.longdouble}
FACTORS = ((1, 0), (1, 1), (-0.5, 2), (0, 0.5), (3, -1))


class Syrk(Contract):
    CONTROL_TILE: ClassVar = {"rows": 16, "columns": 4}
    CONTROL_SHAPE = (40, 24)

    def work(self, problem):
        """A multiplication and an addition for each step of each element of the triangle."""
        n, k = problem.sizes.values()
        return float(n * (n + 1) * k)

    def expected(self, problem, given):
        """Within gamma_(k + 3) of the terms' sizes (Higham, section 3.1)."""
        n, k = problem.sizes.values()
        number = self.operands["C"].number(problem.dtype)
        a, c = (one.astype(WIDER[problem.dtype]) for one in self.values(problem, given).values())
        alpha, beta = given.scalars
        added = beta * c if beta else np.zeros_like(c)
        sizes = (abs(alpha) * (np.abs(a) @ np.abs(a).T) + np.abs(added)).astype(np.float64)
        gamma = (k + 3) * number.unit / (1 - (k + 3) * number.unit)
        lower = np.tri(n, dtype=bool)
        inside = lower if self.known(problem)["uplo"] == 0 else lower.T
        bound = np.where(inside, gamma * sizes + (k + 2) * number.tiny, 0)
        return {"C": (np.where(inside, alpha * (a @ a.T) + added, c), bound)}

    def tile(self, point, lanes, reads):
        return {"rows": int(point["mr_vectors"]) * lanes, "columns": int(point["nr"])}

    def quick_grid(self, dtype, tile, rng):
        """Sizes around the tile, both triangles, every kind of factor, both ends against a guard page; then some of
        several blocks, with operands of all magnitudes."""
        rows, columns, cases = tile["rows"], tile["columns"], []
        for number in range(48):
            n = int(rng.choice([1, columns, columns + 1, rows - 1, rows, rows + 1, int(rng.integers(1, 3 * rows))]))
            alpha, beta = FACTORS[number % len(FACTORS)]
            options = {"uplo": ("lower", "upper")[number % 2], "alpha": alpha, "beta": beta}
            problem = self.problem(dtype, {"n": max(n, 1), "k": int(rng.integers(1, 40))}, options)
            cases.append(Case(problem, self.DISTRIBUTIONS[number // 2 % 2], list(Placement)[number // 4 % 2]))
        for number, (n, k) in enumerate(((300, 70), (70, 700), (9, 3000), (150, 333))):
            options = {"uplo": ("lower", "upper")[number % 2], "alpha": -0.3, "beta": 1}
            options |= self.magnitudes(dtype, ("A", "A"), "C", "C", number / 4, rng)
            cases.append(Case(self.problem(dtype, {"n": n, "k": k}, options), "normal", Placement.END))
        return cases

"""trmm: a product with a triangular matrix, whose other triangle is not read."""

from typing import ClassVar

import numpy as np

from tensorop.model.call import Placement
from tensorop.model.case import Case
from tensorop.model.contract import Contract

WIDER = {"f32": np.float64, "f64": np.longdouble}


class Trmm(Contract):
    CONTROL_TILE: ClassVar = {"rows": 16, "columns": 4}
    CONTROL_SHAPE = (40, 24)

    def work(self, problem):
        """A multiplication and an addition for each element of the triangle and column of B."""
        m, n = problem.sizes.values()
        return float(m * (m + 1) * n)

    def expected(self, problem, given):
        """Within gamma_(m + 2) of the terms' sizes (Higham, section 3.1)."""
        m = problem.sizes["m"]
        known, number = self.known(problem), self.operands["C"].number(problem.dtype)
        a, b, _ = (one.astype(WIDER[problem.dtype]) for one in self.values(problem, given).values())
        lower = np.tri(m, k=-known["unit"], dtype=bool)
        a = np.where(lower if known["uplo"] == 0 else lower.T, a, known["unit"] * np.eye(m))
        alpha = given.scalars[0]
        sizes = (abs(alpha) * (np.abs(a) @ np.abs(b))).astype(np.float64)
        gamma = (m + 2) * number.unit / (1 - (m + 2) * number.unit)
        return {"C": (alpha * (a @ b), gamma * sizes + (m + 2) * number.tiny)}

    def _values(self, one, problem, rng, distribution):
        """Elements of the triangle that is not read are NaN."""
        values, known = super()._values(one, problem, rng, distribution), self.known(problem)
        if one is self.operands["A"] and values.size:
            m = known["m"]
            other = ~np.tri(m, k=-known["unit"], dtype=bool)
            values[(other if known["uplo"] == 0 else other.T).ravel()] = np.nan
        return values

    def tile(self, point, lanes, reads):
        return {"rows": int(point["mr_vectors"]) * lanes, "columns": int(point["nr"])}

    def quick_grid(self, dtype, tile, rng):
        """Sizes around the tile, both triangles and kinds of diagonals, both ends against a guard page; then some of
        several blocks."""
        rows, columns, cases = tile["rows"], tile["columns"], []
        for number in range(48):
            m = int(rng.choice([1, columns, columns + 1, 2 * columns + 1, int(rng.integers(1, 80))]))
            n = int(rng.choice([1, rows - 1, rows, rows + 1, int(rng.integers(1, 3 * rows))]))
            options = {
                "uplo": ("lower", "upper")[number % 2],
                "unit": number // 2 % 2,
                "alpha": (1, -0.5, 3)[number % 3],
            }
            problem = self.problem(dtype, {"m": m, "n": max(n, 1)}, options)
            cases.append(Case(problem, self.DISTRIBUTIONS[number // 4 % 2], list(Placement)[number // 8 % 2]))
        for number, (m, n) in enumerate(((300, 70), (700, 70), (900, 9), (333, 150))):
            options = {"uplo": ("lower", "upper")[number % 2], "unit": number // 2, "alpha": -0.3}
            cases.append(Case(self.problem(dtype, {"m": m, "n": n}, options), "normal", Placement.END))
        return cases

"""dense: a product with a bias and ReLU behind it."""

from typing import ClassVar

import numpy as np

from tensorop.model.call import Placement
from tensorop.model.case import Case
from tensorop.model.contract import Contract

WIDER = {"f32": np.float64, "f64": np.longdouble}


class Dense(Contract):
    CONTROL_TILE: ClassVar = {"rows": 16, "columns": 4}
    CONTROL_SHAPE = (24, 40, 24)

    def work(self, problem):
        """A multiplication and an addition for each input of each output."""
        m, n, k = problem.sizes.values()
        return 2.0 * m * n * k

    def expected(self, problem, given):
        """Within gamma_(k + 2) of the terms' sizes (Higham, section 3.1)."""
        k, number = problem.sizes["k"], self.operands["y"].number(problem.dtype)
        x, w, bias, _ = (one.astype(WIDER[problem.dtype]) for one in self.values(problem, given).values())
        sizes = (np.abs(x) @ np.abs(w).T + np.abs(bias)).astype(np.float64)
        gamma = (k + 2) * number.unit / (1 - (k + 2) * number.unit)
        y = x @ w.T + bias
        return {"y": (np.maximum(y, 0) if self.known(problem)["relu"] else y, gamma * sizes + (k + 2) * number.tiny)}

    def tile(self, point, lanes, reads):
        return {"rows": int(point["mr_vectors"]) * lanes, "columns": int(point["nr"])}

    def quick_grid(self, dtype, tile, rng):
        """Sizes around the tile, both ends against a guard page; then some of several blocks, with operands of all
        magnitudes."""
        rows, columns, cases = tile["rows"], tile["columns"], []
        for number in range(48):
            n = int(rng.choice([1, rows - 1, rows, rows + 1, int(rng.integers(1, 3 * rows))]))
            m = int(rng.choice([1, columns, columns + 1, int(rng.integers(1, 3 * columns))]))
            sizes = {"m": m, "n": max(n, 1), "k": int(rng.integers(1, 60))}
            problem = self.problem(dtype, sizes, {"relu": number % 2})
            cases.append(Case(problem, self.DISTRIBUTIONS[number // 2 % 2], list(Placement)[number // 4 % 2]))
        for number, (m, n, k) in enumerate(((300, 70, 20), (70, 300, 700), (9, 9, 3000), (150, 150, 333))):
            options = {"relu": number % 2, **self.magnitudes(dtype, ("x", "w"), "y", "bias", number / 4, rng)}
            cases.append(Case(self.problem(dtype, {"m": m, "n": n, "k": k}, options), "normal", Placement.END))
        return cases

    def thread_grid(self, dtype, tile, rng):
        sizes = [{"m": m, "n": 300, "k": 256} for m in (7, 64, 301)]
        return [Case(self.problem(dtype, one, {"relu": 1}), "normal", Placement.END) for one in sizes]

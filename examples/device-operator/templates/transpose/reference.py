"""transpose: its work, and what it must leave."""

from typing import ClassVar

import numpy as np

from tensorop.model.case import Case
from tensorop.model.contract import Contract


class Transpose(Contract):
    CONTROL_TILE: ClassVar = {"rows": 32}
    CONTROL_SHAPE = (40, 50)

    def work(self, problem):
        return 1.0 * problem.sizes["m"] * problem.sizes["n"]  # multiplications

    def expected(self, problem, given):
        """alpha times an element, rounded to float and then to the type."""
        number = self.operands["Y"].number(problem.dtype)
        y = given.scalars[0] * self.values(problem, given)["X"].astype(np.float64).T
        return {"Y": (y, (1 + 2.0**-6) * number.unit * np.abs(y) + number.tiny)}

    def tile(self, point, lanes, reads):
        return {"rows": 32}

    def quick_grid(self, dtype, tile, rng):
        sizes = rng.integers(1, 3 * tile["rows"], (24, 2))
        return [Case(self.problem(dtype, {"m": m, "n": n}, {"alpha": -0.75})) for m, n in sizes]

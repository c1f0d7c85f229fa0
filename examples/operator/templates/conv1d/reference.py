"""conv1d: its work, what it must leave, and what it is judged on."""

from typing import ClassVar

import numpy as np

from tensorop.model import drawing
from tensorop.model.call import Placement
from tensorop.model.case import Case
from tensorop.model.contract import Contract

WIDER = {"f32": np.float64, "f64": np.longdouble}
ALPHAS = (1, -1, 0.5, -0.3, 3)


class Conv1d(Contract):
    CONTROL_TILE: ClassVar = {"outputs": 8}
    CONTROL_SHAPE = (2, 3, 40, 5, 2, 1)

    def work(self, problem):
        """A multiplication and an addition for each tap of each output."""
        b, c, h, t, u, p = problem.sizes.values()
        return 2.0 * b * c * t * ((h + 2 * p - t) // u + 1)

    def expected(self, problem, given):
        """alpha, rounded, times sums of t terms: within gamma_(t + 3) of the terms' sizes (Higham, section 3.1)."""
        t, u, p = (problem.sizes[name] for name in "tup")
        wider, number = WIDER[problem.dtype], self.operands["y"].number(problem.dtype)
        x, taps, _ = (one.astype(wider) for one in self.values(problem, given).values())
        padded = np.pad(x, ((0, 0), (0, 0), (p, p)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, t, axis=2)[:, :, ::u]
        sizes = np.einsum("bcit,ct->bci", np.abs(windows), np.abs(taps)).astype(np.float64)
        alpha, gamma = given.scalars[0], (t + 3) * number.unit / (1 - (t + 3) * number.unit)
        bound = abs(alpha) * (gamma * sizes + t * number.tiny) + number.tiny
        y = alpha * np.einsum("bcit,ct->bci", windows, taps)
        y = np.maximum(y, 0) if self.known(problem)["relu"] else y
        return {"y": (y, bound)}

    def tile(self, point, lanes, reads):
        return {"outputs": int(point["wide"]) * lanes}

    def quick_grid(self, dtype, tile, rng):
        """Lengths around the tile, every stride and padding, both ends against a guard page; then each dimension long,
        with operands of all magnitudes."""
        cases = []
        for number in range(48):
            t, u = int(rng.integers(1, 8)), int(rng.integers(1, 4))
            p = int(rng.integers(0, t))
            h = max(1, t - 2 * p) + int(rng.integers(0, 3 * tile["outputs"] * u))
            sizes = {"b": int(rng.integers(1, 3)), "c": int(rng.integers(1, 4)), "h": h, "t": t, "u": u, "p": p}
            problem = self.problem(dtype, sizes, {"relu": number % 2, "alpha": ALPHAS[number % len(ALPHAS)]})
            placement = list(Placement)[number % 2]
            cases.append(Case(problem, self.DISTRIBUTIONS[number // 2 % 2], placement))
        parts = drawing.strata(12, rng)
        for name, most in (("b", 9000), ("c", 9000), ("h", 60000), ("t", 4000)):
            for part in drawing.strata(3, rng):
                sizes = {other: drawing.between(1, 5, rng.random()) for other in ("b", "c", "t", "u")}
                sizes["h"] = drawing.between(1, 40, rng.random())
                sizes[name] = drawing.between(64, most, part)
                sizes["p"] = int(rng.integers(min(sizes["t"], 3)))
                sizes["h"] = max(sizes["h"], sizes["t"])
                options = {"relu": len(cases) % 2, **self.magnitudes(dtype, ("w", "x"), "y", "", parts.pop(), rng)}
                problem = self.problem(dtype, sizes, options)
                kind = "integer" if name == "t" and part > 0.3 else "normal"
                cases.append(Case(problem, kind, list(Placement)[len(cases) % 2]))
        return cases

    def thread_grid(self, dtype, tile, rng):
        sizes = [{"b": b, "c": 16, "h": int(rng.integers(9000, 9999)), "t": 9, "p": 2} for b in (2, 3, 7)]
        return [Case(self.problem(dtype, one, {"relu": 1, "alpha": -0.5}), "normal", Placement.END) for one in sizes]

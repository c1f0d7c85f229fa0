"""Fits the policies `prior` and `learned` to recorded pairs, and compares policies on a deterministic micro-coder.

    tensorop author pairs gemm --platform P --dtype D --trials 24 --out P-D.jsonl  # then gzip -9n
    tensorop author pairs gemm --platform P --from RUN --out answers/RUN.jsonl
    python benchmarks/steering.py fit        # writes tensorop/policies/prior.json and learned.json
    python benchmarks/steering.py compare    # prints the data of the record benchmarks/results/steering.json

A job of the micro-coder begins at a slow configuration of a template. A call names an action: it fails as often as
recorded answers did, or goes to a configuration that differs in one idea of this action. A policy that is fitted knows
no pair of the platform that it is tried on.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tensorop.author import offline, policies, state  # noqa: E402
from tensorop.model.steering import (  # noqa: E402
    ACTIONS,
    LADDER,
    Choice,
    Parent,
    PastQuestion,
    State,
    bottleneck,
    cost_reward,
    is_closed,
)
from tensorop.specs import operators  # noqa: E402

PAIRS = ROOT / "benchmarks/results/pairs"
POLICIES = ROOT / "tensorop/policies"
SEEDS, CALLS = 50, 12
FAILED = 0.2  # of answers: 11 of 53 in tests/data/transcripts on processors
Row = dict
Node = tuple[str, str, str]  # template, configuration, dtype


def rows() -> dict[str, list[Row]]:
    """The pairs by platform."""
    found: dict[str, list[Row]] = defaultdict(list)
    for path in sorted(PAIRS.glob("*.jsonl.gz")):
        for row in _read(path):
            found[row["platform"]].append(row)
    return found


def answers() -> list[Row]:
    """What typed actions gained in answers of language models."""
    every = [row for path in sorted(PAIRS.glob("answers/*.jsonl.gz")) for row in _read(path)]
    return [row for row in every if row["action"] in ACTIONS and row["features"]]


def _read(path: Path) -> list[Row]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def table(of: list[Row]) -> dict[str, dict[str, list[float]]]:
    """Bottleneck -> action -> [pairs, sum of rewards]."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))
    for row in of:
        entry = found[bottleneck(row["features"])][row["action"]]
        entry[0] += 1
        entry[1] += row["reward"]
    return {b: {a: [n, round(paid, 3)] for a, (n, paid) in sorted(by.items())} for b, by in sorted(found.items())}


def softmax(of: list[Row]) -> dict[str, dict[str, float]]:
    """Weights of a softmax regression: in each state an action is as likely as its mean reward is large."""
    names = sorted({name for row in of for name in row["features"]})
    actions = sorted({row["action"] for row in of})
    states: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    inputs: dict[tuple[str, ...], list[float]] = {}
    means = {name: fmean(row["features"].get(name, 0.0) for row in of) for name in names}
    scales = {name: float(np.std([row["features"].get(name, 0.0) for row in of])) or 1.0 for name in names}
    for row in of:
        key = row["platform"], row["dtype"], row["template"], row["before"]
        states[key][row["action"]].append(row["reward"])
        inputs[key] = [(row["features"].get(name, means[name]) - means[name]) / scales[name] for name in names]
    x = np.array([[1.0, *inputs[key]] for key in states])
    wanted = np.array([[fmean(states[key].get(a, [0.0])) + 0.01 for a in actions] for key in states])
    there = np.array([[a in states[key] for a in actions] for key in states])
    wanted = np.where(there, wanted, 0.0)
    wanted /= wanted.sum(axis=1, keepdims=True)
    weights = np.zeros((x.shape[1], len(actions)))
    for _ in range(800):  # plain descent: the same numbers on every machine
        scores = np.where(there, x @ weights, -np.inf)
        found = np.exp(scores - scores.max(axis=1, keepdims=True))
        found /= found.sum(axis=1, keepdims=True)
        weights -= 0.3 * (x.T @ (found - wanted) / len(x) + 1e-3 * weights)
    learned = {
        action: {"": round(float(weights[0, i]), 4)}
        | {name: round(float(weights[1 + j, i]), 4) for j, name in enumerate(names)}
        for i, action in enumerate(actions)
    }
    short = {
        key: {name: round(value, 6) for name, value in of.items()} for key, of in (("mean", means), ("scale", scales))
    }
    return {**short, **learned}


def fit() -> None:
    every = [*(row for of in rows().values() for row in of), *answers()]
    (POLICIES / "prior.json").write_text(json.dumps({"pairs": len(every), "table": table(every)}, indent=1) + "\n")
    (POLICIES / "learned.json").write_text(json.dumps(softmax(every), indent=1) + "\n")


class Coder:
    """One job on a platform's pairs."""

    def __init__(self, of: list[Row], bound: float, seed: int) -> None:
        self.draw = random.Random(seed)
        self.edges: dict[Node, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for row in of:
            self.edges[row["template"], row["before"], row["dtype"]][row["action"]].append(row)
        self.bound, self.seed = bound, seed
        slow = [
            node
            for node, by in sorted(self.edges.items())
            if max(r["gain"] for ways in by.values() for r in ways) > 1.2
        ]
        self.start = self.draw.choice(slow)
        self.over = {n: next(iter(by.values()))[0]["features"].get("over_bound", 1.0) for n, by in self.edges.items()}

    def cost(self, node: Node) -> float:
        return self.bound * math.exp(self.over[node])

    def parent(self, node: Node) -> Parent:
        features = next(iter(self.edges[node].values()))[0]["features"]
        name = " ".join(node)
        return Parent(name, name, self.cost(node), features, tuple(state.legal(SHIPPED[node[0]], features)))

    def closed(self, policy: policies.Policy) -> float:
        """The share of the logarithm of the distance to the bound that CALLS calls close."""
        known = {" ".join(self.start): self.start}
        history: list[PastQuestion] = []
        for number in range(CALLS):
            closed = {name for name in known if is_closed(name, history)}
            nodes = sorted(known.values(), key=lambda node: (" ".join(node) in closed, self.cost(node), node))
            shown = tuple(self.parent(node) for node in nodes[: policy.parents])
            choice = policy.choose(State(shown, self.bound, CALLS - number, 1000 * self.seed + number), history)
            if choice is None:
                break
            if not choice.typed:  # a model that is asked for anything does anything
                action, region = self.draw.choice([(a, r) for a, r in state.legal(SHIPPED[nodes[0][0]], {})])
                choice = Choice(shown[0].digest, action, region)
            node = known[choice.parent]
            ways = self.edges[node].get(choice.action, [])
            if self.draw.random() < FAILED or not ways:
                history.append(PastQuestion(choice, reward=LADDER["gates"] if ways else 0.0))
                continue
            child = node[0], self.draw.choice(ways)["after"], node[2]
            known[" ".join(child)] = child
            before, after = self.cost(node), self.cost(child)
            history.append(
                PastQuestion(choice, None, " ".join(child), before / after, cost_reward(before, after, self.bound))
            )
        best = min(self.cost(node) for node in known.values())
        return math.log(self.cost(self.start) / best) / max(math.log(self.cost(self.start) / self.bound), 1e-9)


def compare() -> None:
    found: dict[str, dict[str, list[float]]] = {}
    of = rows()
    for platform, own in of.items():
        others = [row for name, its in of.items() if name != platform for row in its]
        found[platform] = {}
        for name in ("greedy", "coverage", "prior", "learned"):
            policy = policies.load(name)
            module = sys.modules[policy.function.__module__]
            if name == "prior":
                module.table = lambda others=others: table(others)
                fixed = table(others)
                module.table = lambda fixed=fixed: fixed
            if name == "learned":
                weights = softmax(others)
                module.fitted = lambda weights=weights: weights
            found[platform][name] = [Coder(own, 100.0, seed).closed(policy) for seed in range(SEEDS)]
    record = {"seeds": SEEDS, "calls": CALLS, "failed": FAILED, "platforms": {}}
    names = list(next(iter(found.values())))
    found["all"] = {name: [share for by in found.values() for share in by[name]] for name in names}
    for platform, by in found.items():
        base = fmean(by["greedy"])
        record["platforms"][platform] = {
            name: {
                "closed": round(fmean(shares), 4),
                "interval": round(1.96 * stdev(shares) / math.sqrt(len(shares)), 4),
                "of_greedy": round(fmean(shares) / base, 3),
            }
            for name, shares in by.items()
        }
    print(json.dumps(record, indent=1))


SHIPPED = {one.name: one for one in offline.templates(operators.load("gemm").folder, "gemm")}
if __name__ == "__main__":
    {"fit": fit, "compare": compare}[sys.argv[1]]()

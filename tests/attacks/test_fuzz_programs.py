"""Random programs of the templates' language beside their proof: what is proved runs under the sanitizers of GCC.

    pytest tests/attacks/test_fuzz_programs.py                            a few hundred programs
    pytest tests/attacks/test_fuzz_programs.py --fuzz 600 --fuzz-seed 7   ten minutes of others

An accepted program that leaves its operands, overflows, or reaches what is held for never executed is a failure.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tensorop.model.trial import Outcome
from tests.support.classes import EXTENDED
from tests.support.commands import ROOT
from tests.support.programs import OUTSIDE, Writer, calls, compiled_unproved, near_miss, outside, proved, whole_file

HARNESS = (ROOT / "tests" / "support" / "programs.c").read_text()
FLAGS = ("-std=gnu11", "-O1", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-strict-overflow")
PROGRAMS, CALLS = 320, 48
CONTROLS = 24  # refused programs that are run too
LANGUAGE = ("grammar", "conditions", "data", "pointers", "names", "calls", "bounds: rule")  # guards of what is outside


def built(texts: list[str], rng: Random, folder: Path) -> Path:
    """A program that calls all texts. Skips without GCC's sanitizers."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    source, program = folder / "programs.c", folder / "programs"
    source.write_text(whole_file(texts, HARNESS, calls(rng, CALLS)))
    done = subprocess.run(["gcc", *FLAGS, "-o", program, source], capture_output=True, text=True)
    if "cannot find" in done.stderr:
        pytest.skip("gcc has no libraries of its sanitizers")
    assert done.returncode == 0, done.stderr[:4000]
    return program


def report(program: Path, *words: str) -> str:
    """What the sanitizers say; empty if they say nothing."""
    done = subprocess.run([program, *words], capture_output=True, text=True, env={"ASAN_OPTIONS": "detect_leaks=0"})
    return "" if done.returncode == 0 else done.stderr


def drawn(rng: Random, count: int) -> list[tuple[str, bool]]:
    """Programs, each with whether it is a near miss."""
    found = []
    for number in range(count):
        text = Writer(rng).program()
        changed = near_miss(text, rng) if number % 3 else text
        found.append((changed, changed != text))
    return found


def once(seed: int, count: int, folder: Path) -> Counter[str]:
    """Proves and runs programs of one seed; their number by what became of them."""
    rng, again = Random(seed), f"--fuzz-seed {seed}"
    found: Counter[str] = Counter()
    accepted: list[tuple[str, str]] = []
    refused: list[str] = []
    for text, missed in drawn(rng, count):
        outcome = proved(text)
        kind = "near miss" if missed else "honest"
        if isinstance(outcome, Outcome):
            found[f"{kind} refused: {outcome.message.partition(':')[0]}"] += 1
            if outcome.message.startswith("bounds: it "):
                refused.append(text)
        else:
            found[f"{kind} accepted"] += 1
            accepted.append((text, outcome))
    program = built([c for _, c in accepted], rng, folder)
    if said := report(program):
        number = int(re.findall(r"^program (\d+):", said, re.MULTILINE)[-1])
        pytest.fail(f"{again}: the proof accepts\n{accepted[number][0]}\n{accepted[number][1]}\n{said[:3000]}")
    refused = refused[:CONTROLS]
    program = built([compiled_unproved(text) for text in refused], rng, folder)
    found["control reported"] = sum(bool(report(program, str(number))) for number in range(len(refused)))
    found["control"] = len(refused)
    return found


def shares(found: Counter[str]) -> None:
    """Fails unless the programs show something: many are accepted, of both kinds, and many refused ones do leave."""
    accepted, missed = found["honest accepted"] + found["near miss accepted"], found["near miss accepted"]
    refused = sum(count for what, count in found.items() if what.startswith("near miss refused"))
    assert accepted >= (accepted + refused) / 5, found
    assert missed >= refused / 10, found
    assert refused >= accepted / 5, found
    assert found["control reported"] >= found["control"] / 4 > 0, found


@pytest.mark.parametrize("count", [PROGRAMS, pytest.param(10 * PROGRAMS, marks=EXTENDED)])
def test_what_is_proved_stays_in_its_operands(count: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    seed, wanted = int(request.config.getoption("--fuzz-seed")), float(request.config.getoption("--fuzz"))
    began, found = time.monotonic(), Counter[str]()
    while not found or time.monotonic() - began < wanted:
        for _ in range(count // PROGRAMS):
            found += once(seed, PROGRAMS, tmp_path)
            seed += 1
    print(found)
    shares(found)


def test_what_is_just_outside_is_refused(request: pytest.FixtureRequest) -> None:
    seed = int(request.config.getoption("--fuzz-seed"))
    rng = Random(seed)
    for what in OUTSIDE:
        text = None
        while text is None:
            honest = Writer(rng).program()
            if not isinstance(proved(honest), Outcome):
                text = outside(honest, what, rng)
        outcome = proved(text)
        assert isinstance(outcome, Outcome), f"--fuzz-seed {seed}: accepted with {what}:\n{text}"
        assert outcome.message.startswith(LANGUAGE), f"--fuzz-seed {seed}, {what}: {outcome.message}\n{text}"

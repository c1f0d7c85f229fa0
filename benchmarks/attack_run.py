"""Whole jobs with a model that means harm: what they end with, and what they leave on the machine.

    python benchmarks/attack_run.py [--platform native rvv neon] [--user 0 4242] [--every 1] [--but DIR ...]

An endpoint on this machine answers `tensorop gemm --author llm` with the attacks of tests/attacks, one after the other.
Each job must end with a library that passes `tensorop verify`, with every answer an outcome in its journal and none of
them in the library, and leave no process, no socket, and no file outside its folder and its cache.

As root it takes a process and a network namespace of its own, where it can, so that nothing else is counted; otherwise
it looks at this user's, and of processes at those of the job. --user: numbers of users to run as, of which only root
can become another; such a one has a home and a cache of its own, and must be able to read interpreter and checkout. Of
files root's jobs are held against all of the machine's, so that what others write meanwhile is named too: --but leaves
their folders out.

The exit status is 1 when anything was found.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tensorop import settings  # noqa: E402
from tensorop.author.gate import Guard  # noqa: E402
from tensorop.model.winner import by_operator  # noqa: E402
from tensorop.provision import prewarm  # noqa: E402
from tensorop.specs import platforms  # noqa: E402
from tests.support import hostile  # noqa: E402

INSIDE = "TENSOROP_ATTACK_RUN_INSIDE"
SMALL = ("--dtype", "f32", "--shapes", "24x17x33", "--trials", "4", "--jobs", "1", "--seed", "1")
MANY = 20  # attacks left out, from which on no kind is tried whole


def fetch(names: Sequence[str]) -> None:
    """What the jobs need, into this user's cache: they have no network, and only their own environment."""
    for platform in map(platforms.load, names):
        prewarm.bring(platform.arch, shared=platform.compiler.shared_target)


def enter_namespaces() -> None:
    """Starts this program again in namespaces of its own, where this user may make them."""
    argv = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.environ.get(INSIDE) or os.geteuid() != 0 or shutil.which("unshare") is None:
        return
    if subprocess.run([*argv, "true"], capture_output=True).returncode == 0:
        os.environ[INSIDE] = "1"
        os.execvp(argv[0], [*argv, sys.executable, *sys.argv])


def switch_loopback_on() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 1 | 64)  # IFF_UP, IFF_RUNNING
        fcntl.ioctl(any_socket, 0x8914, request)  # SIOCSIFFLAGS


def as_user(user: int) -> list[str]:
    words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return words if user != os.geteuid() else []


def command(place: Path, user: int, url: str, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """`tensorop WORDS` as a user whose home is `place`."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(place / "home"),
        "TMPDIR": str(place / "home"),
        "MPLCONFIGDIR": str(place / "home"),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TENSOROP_CACHE": str(place / "cache"),
        "TENSOROP_LLM_MODEL": "m",
        "OPENAI_API_KEY": "sk-of-nobody-0123456789",
        "OPENAI_BASE_URL": url,
    }
    argv = [*as_user(user), sys.executable, "-m", "tensorop", *words]
    return subprocess.run(argv, cwd=place, env=environment, capture_output=True, text=True, errors="replace")


def prepare(place: Path, user: int, cache: Path) -> None:
    """A home, a folder for the job, and a cache: a copy for another user, for oneself the cache that there is."""
    for name in ("home", "out"):
        (place / name).mkdir()
    place.chmod(0o755)
    if user == os.geteuid():
        (place / "cache").symlink_to(cache)
        return
    shutil.copytree(cache, place / "cache", symlinks=True, ignore=shutil.ignore_patterns("build", "baselines", "locks"))
    for path in (place, *place.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


def run(
    platform: str, user: int, answers: Mapping[str, str], cache: Path, but: Sequence[Path], small: Sequence[str] = SMALL
) -> dict[str, Any]:
    """One job: `found` is what should not be there."""
    apart = bool(os.environ.get(INSIDE)) or user != os.geteuid()  # else others run and connect as this user too
    owner = user if user != 0 else None
    with tempfile.TemporaryDirectory(prefix="tensorop-attacks-", dir="/var/tmp") as folder:
        place = Path(folder)
        prepare(place, user, cache)
        left_out = (*but, place, cache)

        def there() -> tuple[dict[str, str], set[str], dict[str, tuple[int, int, int]]]:
            running = hostile.processes(owner, None if apart else place)
            return running, hostile.sockets(owner) if apart else set(), hostile.files(owner, left_out)

        before = there()
        began = time.monotonic()
        with hostile.endpoint(list(answers.values())) as endpoint:
            calls = len(answers) + 1  # at least one answer each; the endpoint says when it is enough
            limits = ["--author-calls", str(calls), "--author-tokens", str(10**9), "--author-time", "10h"]
            words = ["--platform", platform, *small, "--author", "llm", *limits, "--out", str(place / "out" / "run")]
            ended = command(place, user, endpoint.url, ["gemm", *words])
        seconds = time.monotonic() - began
        after = there()
        verified = command(place, user, "", ["verify", str(place / "out" / "run")])
        found = {
            "processes": [after[0][name] for name in hostile.new(before[0], after[0])],
            "sockets": sorted(after[1] - before[1]),
            "files": hostile.new(before[2], after[2]),
            **judged(place / "out" / "run", ended, verified, len(answers), endpoint),
        }
        told = notes(place / "out" / "run")
    return {
        "platform": platform,
        "user": user,
        "seconds": round(seconds),
        "answers": len(told),
        "outcomes": dict(Counter(outcome(note) for note in told).most_common()),
        "found": {name: what for name, what in found.items() if what},
    }


def judged(
    run: Path,
    ended: subprocess.CompletedProcess[str],
    verified: subprocess.CompletedProcess[str],
    answers: int,
    endpoint: hostile.Endpoint,
) -> dict[str, list[str]]:
    """What is wrong with the job itself."""
    found: dict[str, list[str]] = {}
    if ended.returncode != 0:
        return {"the job": [f"status {ended.returncode}", *ended.stderr.splitlines()[-8:]]}
    if verified.returncode != 0:
        found["the library"] = [f"status {verified.returncode}", *verified.stderr.splitlines()[-8:]]
    told = notes(run)
    if len(endpoint.asked) < answers or len(told) < answers:
        found["not recorded"] = [f"{len(told)} outcomes of {len(endpoint.asked)} answers; {answers} attacks"]
    found["accepted"] = [str(note["name"]) for note in told if note["kind"] == "ok"]
    manifest = json.loads((run / "share/tensorop/manifest.json").read_text())
    variants = [v for winners in by_operator(manifest)["gemm"]["dtypes"].values() for v in winners["variants"]]
    found["published"] = [f"{v['template']} by {v['author']}" for v in variants if v["author"] != "offline"]
    found["asked for"] = sorted({path for path in endpoint.asked if path != "/v1/chat/completions"})
    return found


def notes(run: Path) -> list[dict[str, Any]]:
    """What the journal says of each answer."""
    with contextlib.suppress(OSError):
        lines = [json.loads(line) for line in (run / "share/tensorop/journal.jsonl").read_text().splitlines()]
        return [line["data"] for line in lines if line["event"] == "note" and line["name"] == "author"]
    return []


def outcome(note: Mapping[str, Any]) -> str:
    """The kind, and of a refusal the guard that names itself."""
    guard = re.search(rf"(?:^|: )({'|'.join(Guard)}): ", str(note["message"]))
    return f"{note['kind']}: {guard[1]}" if guard else str(note["kind"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", nargs="+", default=["native", "rvv", "neon"])
    parser.add_argument("--user", nargs="+", type=int, default=[os.geteuid()])
    parser.add_argument(
        "--every", type=int, default=1, help="only each Nth attack; those beside a right product all, below 20"
    )
    parser.add_argument("--but", nargs="*", type=Path, default=[], help="folders others write in meanwhile")
    given = parser.parse_args()
    if not os.environ.get(INSIDE):
        fetch(given.platform)
    enter_namespaces()
    if os.environ.get(INSIDE):
        switch_loopback_on()
    every = list(hostile.ANSWERS.items())
    first = len(hostile.BESIDE) if given.every < MANY else 0
    answers = dict(every[:first] + every[first :: given.every])
    found = False
    for user in given.user:
        for platform in given.platform:
            result = run(platform, user, answers, settings.read().cache, given.but)
            print(json.dumps(result, indent=1), flush=True)
            found = found or bool(result["found"])
    return int(found)


if __name__ == "__main__":
    sys.exit(main())

"""A CUDA job on a machine with its GPU: it is killed, resumed, measured by its kit, published once, and resumed again.

python benchmarks/cuda/job.py OUT [PLATFORM]  # nvcc and the GPU; takes some minutes, ends with `right`
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tensorop import pipeline  # noqa: E402
from tensorop.model.job import Job  # noqa: E402
from tensorop.package import publish  # noqa: E402

SHAPES = ((512, 512, 512), (4096, 4096, 4096), (127, 129, 131))


def finished(out: Path) -> Counter[str]:
    """How often each kernel ended, by its key."""
    path = out / "share/tensorop/journal.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.is_file() else []
    records = [json.loads(line) for line in lines if line.endswith("\n")]
    return Counter(record["key"] for record in records if record["event"] == "finished")


def main(out: Path, platform: str = "cuda-sm90") -> None:
    published, put = [], publish.publish
    publish.publish = lambda *given, **more: published.append(put(*given, **more))
    shapes = ",".join("x".join(map(str, shape)) for shape in SHAPES)
    words = ["gemm", "--platform", platform, "--dtype", "bf16", "--shapes", shapes, "--trials", "12", "--jobs", "8"]
    there = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "tensorop"]
    child = subprocess.Popen([*command, *words, "--out", str(out)], env=there, start_new_session=True)
    while not finished(out) and child.poll() is None:
        time.sleep(0.02)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    before = finished(out)
    assert before
    assert not (out / "lib").exists()
    left = []
    job = Job("gemm", platform, ("bf16",), SHAPES, "", trials=12, jobs=8, out=out)
    for run in (1, 2):
        for event in pipeline.run(job):
            print(event, flush=True)
        assert len(published) == run, published
        assert "measured on" in event.notes[0], event
        kernels, (rows,) = finished(out), (out / "work").glob("kit-*.jsonl")
        assert before <= kernels
        assert {*kernels.values()} == {1}
        left.append((kernels, rows.read_bytes()))
    assert left[0] == left[1]  # nothing was built or measured again
    results = json.loads((out / "share/tensorop/manifest.json").read_text())["results"]
    assert {"choice", "verification"} <= results.keys()
    assert (out / "share/tensorop/kits.json").is_file()
    subprocess.run([*command, "verify", str(out)], env=there, check=True)
    print("right")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])

"""Writes a product's tuning kit: a folder, and an archive of it."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop import __version__
from tensorop.errors import JobError, UsageError
from tensorop.kits.product import KitProduct
from tensorop.target import KitRequest

PROBES = 24
_MANIFEST, _RUN, _SUMS = "manifest.json", "run-kit", "SHA256SUMS"
_OWN = {"kit", "plan.bin", "plan.txt", _MANIFEST, _RUN, "README", _SUMS}


@dataclass(frozen=True)
class ExportedKit:
    """A written kit."""

    folder: Path
    packed: Path
    kit: str  # its id
    steps: Mapping[str, int]  # counts by kind
    size: int  # bytes of the folder

    def to_json(self) -> dict[str, Any]:
        record = {"folder": str(self.folder), "packed": str(self.packed), "kit": self.kit}
        return {**record, "steps": dict(self.steps), "bytes": self.size}


def export(product: KitProduct, out: Path, request: KitRequest) -> ExportedKit:
    """Writes the folder `out` and `out`.tar.gz.

    Raises UsageError if `out` is not a kit or has further files, JobError if the kit cannot be built.
    """
    _free(out)
    product.opened.require_fit()  # the library becomes part of a program for another machine
    plan = product.plan(request)
    manifest = {
        "schema": 1,
        "kit": plan.kit,
        "product": product.digest,
        "operator": product.operator.name,
        "tool": {"name": "tensorop", "version": __version__},
        "steps": plan.steps,
        **plan.facts,
    }
    files = {**plan.files, _MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode()}
    sums = "".join(f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in sorted(files.items()))
    files[_SUMS] = sums.encode()
    packed = out.with_name(f"{out.name}.tar.gz")
    _write(out, packed, files)
    return ExportedKit(out, packed, plan.kit, plan.steps, sum(map(len, files.values())))


def _free(out: Path) -> None:
    """Raises UsageError unless `out` is absent or a kit without results."""
    if out.exists() and not (out / _MANIFEST).is_file():
        raise UsageError(f"--out {out} exists and is not a kit", hint="choose another --out")
    if out.exists() and (others := sorted({path.name for path in out.iterdir()} - _OWN)):
        raise UsageError(
            f"--out {out} contains {others[0]}, which does not belong to a kit",
            hint="import that file or move it away, or choose another --out",
        )


def _write(out: Path, packed: Path, files: Mapping[str, bytes]) -> None:
    """Writes the files aside and renames the folder; an existing kit is replaced."""
    aside = out.with_name(f".{out.name}.part")
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        for name, data in files.items():
            (aside / name).write_bytes(data)
            (aside / name).chmod(0o755 if name in ("kit", _RUN) else 0o644)
        with tarfile.open(packed, "w:gz", compresslevel=1) as archive:
            for name, data in files.items():
                entry = tarfile.TarInfo(f"{out.name}/{name}")
                entry.size, entry.mode = len(data), 0o755 if name in ("kit", _RUN) else 0o644
                archive.addfile(entry, io.BytesIO(data))
        if out.exists():
            shutil.rmtree(out)
        aside.rename(out)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise JobError(
            f"cannot write the kit to {out}: {error.strerror or error}", hint="free disk space, or choose another --out"
        ) from error

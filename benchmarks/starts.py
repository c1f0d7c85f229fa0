"""Prints the variants of finished products as a platform's `starts`, for its file (docs/platforms.md).

    python benchmarks/starts.py DIR [DIR ...]

Of several products of one platform each variant once, those of the first folder first.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tensorop.model.winner import by_operator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    found: dict[str, dict[str, dict[str, None]]] = {}
    for folder in parser.parse_args().folders:
        manifest = json.loads((folder / "share" / "tensorop" / "manifest.json").read_text(encoding="utf-8"))
        for operator, held in by_operator(manifest).items():
            by_dtype = found.setdefault(operator, {})
            for dtype, winners in held["dtypes"].items():
                lines = by_dtype.setdefault(dtype, {})
                for variant in winners["variants"]:
                    chosen = {"draft": variant["draft"], **variant["point"]}
                    lines["{" + ", ".join(f"{name}: {value}" for name, value in chosen.items()) + "}"] = None
    print("starts:")
    for operator, by_dtype in found.items():
        print(f"  {operator}:")
        for dtype, lines in by_dtype.items():
            print(f"    {dtype}:")
            for line in lines:
                print(f"      - {line}")


if __name__ == "__main__":
    main()

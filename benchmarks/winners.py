"""Prints the best variants of finished runs, and their choice, as a file for `platforms/winners/` or `--warm-start`.

    python benchmarks/winners.py DIR [DIR ...] > platforms/winners/NAME.jsonl
    python benchmarks/winners.py --keep platforms/winners/NAME.jsonl DIR [DIR ...] > NAME.jsonl

DIR holds a journal, and a product if the run ended. The file has the variants that serve in the product, without one
those that did best together in trials. Of several runs on one platform it has each variant once, those of the first
folder first, and for each dtype the choice of the first product. `--keep` keeps the variants of a file, and takes only
choices from the products. Configurations of `blas` are those of gemm, which it extends.
"""

from __future__ import annotations

import argparse
import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import cast

from tensorop import __version__
from tensorop.errors import UsageError
from tensorop.model.winner import DtypeRecord, StartPoint
from tensorop.specs import platforms
from tensorop.store import journal
from tensorop.warm import reading


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--plugins", nargs="*", type=Path, default=[])
    parser.add_argument("--keep", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.keep is None:
        print("\n".join(lines(given.folders, tuple(given.plugins), datetime.date.today())))
    else:
        print("\n".join(with_choices(given.keep, given.folders)))


def with_choices(file: Path, folders: list[Path]) -> list[str]:
    """The lines of a file with the choices of products on its platform. Raises UsageError for another platform."""
    kept = reading.read_winners(file)
    choices = dict(kept.choices)
    for folder in folders:
        product = reading.of_base(reading.read_product(folder / reading.MANIFEST))
        if product.platform != kept.platform:
            raise UsageError(f"{folder} is of {product.platform}, and {file} of {kept.platform}")
        for of, choice in product.choices.items():  # a product of gemm alone has no tunables of routines
            before = choices.get(of, {}).get("of_routines")
            choices[of] = cast(DtypeRecord, {**({"of_routines": before} if before else {}), **choice})
    head = json.loads(file.read_text().partition("\n")[0])
    return list(reading.winner_lines({name: head[name] for name in reading.HEAD}, kept.known, choices))


def lines(folders: list[Path], plugins: tuple[Path, ...], date: datetime.date) -> list[str]:
    """The lines of the file. Raises UsageError for runs on several platforms."""
    found: dict[tuple[str, str], dict[StartPoint, None]] = {}
    choices: dict[tuple[str, str], DtypeRecord] = {}
    names, trials = set(), 0
    for folder in folders:
        history = journal.read(folder)
        lineage = platforms.load(str(history.facts["platform"]), plugins).lineage
        # a file that asks the machine is another platform elsewhere: its parent's has the name
        names.add(next(name for name in lineage if not platforms.is_probed(name, plugins)))
        trials += len(history.replay())
        source = reading.WarmSource(folder, "", lineage[0], reading.of_history(history))
        if (folder / reading.MANIFEST).is_file():
            product = reading.read_product(folder / reading.MANIFEST)
            source = replace(product, known={**source.known, **product.known})
        source = reading.of_base(source, plugins)
        choices = {**source.choices, **choices}
        for of, known in source.known.items():
            found.setdefault(of, {}).update(dict.fromkeys(known))
    if len(names) > 1:
        raise UsageError(f"runs on {', '.join(sorted(names))}; a file of winners is of one platform")
    made = f"benchmarks/winners.py, of {len(folders)} runs with {trials} trials"
    head = {"platform": names.pop(), "tensorop": __version__, "date": date.isoformat(), "made": made}
    return list(reading.winner_lines(head, {of: list(known) for of, known in found.items()}, choices))


if __name__ == "__main__":
    main()

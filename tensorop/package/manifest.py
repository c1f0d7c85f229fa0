"""A product's provenance as JSON, without times and paths, so that the same journal gives the same bits.

If a product was made with plug-ins, its manifest has their folders as the user gave them (see plugin_record.py).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorop import __version__
from tensorop.model.platform import Platform
from tensorop.model.winner import DtypeRecord, Leaf, NodeRecord, Split, TreeRecord, VariantRecord, Winners
from tensorop.package.card import CARD_SCHEMA, Card
from tensorop.package.sources import OperatorPart
from tensorop.specs import files as reading
from tensorop.specs import jsontext, products
from tensorop.toolchain import tool

SCHEMA = 2
_OF_OPERATOR = ("operator", "dtypes", "facts", "routines")  # keys of a card that depend on the operator
Written = tuple[str, int, int]  # dtype, number of a variant, VLEN it is written for (0: any)
_FLOOR = re.compile(r"-gnu\.(\d+\.\d+)$")


def read(path: Path) -> Any:
    """A product's manifest. Raises OSError, ValueError if it is damaged, JobError if it is of another version."""
    found = jsontext.loads(reading.read(path, reading.JSON))
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    jsontext.require_schema(str(path), found, SCHEMA)
    return found


def provenance(part: OperatorPart, platform: Platform, texts: Mapping[Written, str]) -> Card:
    """The card of an operator's library.

    texts: ids of the kernels' texts as they were judged (see sources.text_ids).
    """
    floor = _FLOOR.search(platform.compiler.shared_target)
    routines = {name: one.tuned for name, one in products.load(part.operator).routines.items()}
    card: Card = {
        "schema": CARD_SCHEMA,
        "tool": {"name": "tensorop", "version": __version__},
        "license": "MIT",
        "operator": part.operator.name,
        "platform": {
            "name": platform.name,
            "lineage": list(platform.lineage),
            "arch": platform.arch,
            "requires": list(platform.requires),
            "vlens": list(platform.vlens),
            "fixed_vlen": platform.fixed_vlen,
        },
        "compiler": {
            "name": tool.compiler_version(),
            "target": platform.compiler.shared_target,
            "arch_flags": list(platform.compiler.arch_flags),
            "flags": list(platform.compiler.flags),
        },
        "glibc": floor[1] if floor else None,
        "dtypes": {w.dtype: _winners(w, texts) for w in part.winners},
        "facts": dict(part.facts),
    }
    if len(routines) > 1:
        card["routines"] = routines
    return card


def manifest(cards: Sequence[tuple[OperatorPart, Card]], more: Mapping[str, object], files: Mapping[str, bytes]) -> str:
    """The manifest of a product: keys that all cards share, the other keys by operator, and the digest of each file.

    It also has the ids of variants and kernels, which are not in a library. more: further keys.
    """
    operators = {
        part.operator.name: {
            "facts": card["facts"],
            **({"routines": card["routines"]} if "routines" in card else {}),
            "dtypes": {w.dtype: {**card["dtypes"][w.dtype], "variants": _with_ids(card, w)} for w in part.winners},
        }
        for part, card in cards
    }
    return document(cards[0][1], operators, more, files)


def document(
    card: Card, operators: Mapping[str, object], more: Mapping[str, object], files: Mapping[str, bytes]
) -> str:
    """A manifest from the shared keys of a card, an entry per operator, further keys, and the product's files."""
    common = {name: value for name, value in card.items() if name not in _OF_OPERATOR}
    digests = {name: f"sha256:{hashlib.sha256(data).hexdigest()}" for name, data in files.items()}
    whole = {
        **common,
        "schema": SCHEMA,  # version of this format
        "operators": operators,  # by name: facts and dtypes of each operator
        **more,
        "files": digests,  # SHA-256 of each file of the product, by its path
    }
    return json.dumps(whole, sort_keys=True, indent=1, allow_nan=False) + "\n"


def _with_ids(card: Card, winners: Winners) -> list[VariantRecord]:
    records = card["dtypes"][winners.dtype]["variants"]
    return [{**record, "id": v.id, "kernel": v.kernel.id} for v, record in zip(winners.all, records, strict=True)]


def _winners(winners: Winners, texts: Mapping[Written, str]) -> DtypeRecord:
    record: DtypeRecord = {"variants": [_variant(winners, number, texts) for number in range(len(winners.all))]}
    if winners.direct and winners.unasked:
        record["direct"] = {"variant": len(winners.variants), "most_flops": winners.unasked}
    if winners.of_routines:
        record["of_routines"] = dict(winners.of_routines)
    trees: dict[int, TreeRecord] = {t.vlen: {"tree": _node(t.root), "regret": t.regret} for t in winners.trees}
    if 0 in trees:
        record["tree"], record["regret"] = trees[0]["tree"], trees[0]["regret"]
    else:
        record["by_vlen"] = {str(vlen): of_vlen for vlen, of_vlen in trees.items()}
    return record


def _variant(winners: Winners, number: int, texts: Mapping[Written, str]) -> VariantRecord:
    variant = winners.all[number]
    template = variant.template
    record: VariantRecord = {
        "template": template.name,
        "digest": template.digest,
        "author": template.author,
        "strategy": template.strategy,
        "reads": dict(template.reads),
        "point": dict(variant.point),
        "text": texts[winners.dtype, number, 0],
    }
    if template.parent:
        record["parent"] = template.parent
    if variant.specialisations:
        ids = {v: text for (dtype, n, v), text in texts.items() if (dtype, n) == (winners.dtype, number)}
        record["specialisations"] = list(variant.specialisations)
        record["specialisation_texts"] = {str(vlen): ids[vlen] for vlen in sorted(ids) if vlen}
    return record


def _node(node: Leaf | Split) -> NodeRecord:
    if isinstance(node, Leaf):
        return {"variant": node.variant}
    return {"feature": node.feature, "threshold": node.threshold, "low": _node(node.low), "high": _node(node.high)}

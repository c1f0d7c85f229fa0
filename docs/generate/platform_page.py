"""The reference page of platform files: the keys of their schema, with the comment beside each field."""

from __future__ import annotations

from pathlib import Path

from json_pages import typed
from markup import code, fenced, page, table, wrapped

from tensorop import paths
from tensorop.specs import board, board_alternative

ROOT = Path(__file__).resolve().parents[2]
# Fields of the schema that no file has, or that another table explains.
_NOT_WRITTEN = {("MemoryModel", "l1"), ("MemoryModel", "l2"), *(("ProbeSpec", one) for one in (
    "name", "description", "tunables", "baselines", "model"
))}  # fmt: skip


def platform_page() -> str:
    spec, record, model = (
        ROOT / "tensorop" / name for name in ("specs/platforms.py", "model/platform.py", "specs/board.py")
    )
    example = (paths.builtin_dir("platforms") / "rvv-1024.yaml").read_text(encoding="utf-8")
    probe = [one for one in _yaml_keys(spec, "ProbeSpec") if one[0] == "`probe`"]
    top = [("`schema`", "Version of this format: 1."), *_yaml_keys(spec, "PlatformSpec"), *probe]
    complete = (
        "`complete`",
        "`true`: nothing of the parent's model holds, and all keys without a default must be here.",
    )
    head = ("Key", "Meaning")

    def keys_of(kind: str, file: Path = model) -> str:
        return table(head, _yaml_keys(file, kind))

    parts = [
        fenced(example, "yaml"),
        "A missing key comes from the `parent`. `compiler`, `baselines`, `tunables`, `device` and `model` are merged",
        "key by key; any other key replaces the parent's whole value. An error names file, key and the expected value.",
        "`tensorop platforms show NAME` prints the merged platform. [Describe a",
        "platform](../how-to/describe-a-platform.md) goes step by step.\n",
        "## Top level\n",
        table(head, top),
        "## compiler\n",
        keys_of("Compiler", record),
        "`tensorop/specs/admitted.py` lists the flags that are accepted. None of them names a file.\n",
        "## caches\n",
        "A list of levels. Tunables see one core's share of each as `l1`, `l2` and `l3`. The board model has the first",
        "two.\n",
        keys_of("Cache", record),
        "## baselines\n",
        "A choice has these keys. Of those that hold, the one with the largest `vlen_min` is taken; of several such,",
        "the last.",
        "`tensorop/specs/admitted.py` lists the variables that are accepted.\n",
        keys_of("BaselineChoice", record),
        "## model\n",
        table(head, [complete, *_yaml_keys(model, "BoardModel")]),
        "### Constants and tables\n",
        "A constant has `value`, a table of cycles has `m1` to `m8`. Both have the other keys. Times are in cycles.\n",
        table(head, [*_yaml_keys(model, "Constant"), *_yaml_keys(model, "Cycles"), *_yaml_keys(model, "_Known")]),
        "### vector\n",
        keys_of("Vector"),
        "### costs\n",
        wrapped(f"Scalar classes: {', '.join(map(code, board.SCALAR_CLASSES))}.") + "\n",
        wrapped(f"Vector classes: {', '.join(map(code, board.VECTOR_CLASSES))}.") + "\n",
        "Every class needs a cost, its own or by `like`:\n",
        keys_of("Cost"),
        "### core\n",
        keys_of("CoreModel"),
        "### memory\n",
        "The caches of data are those under `caches`.\n",
        table(head, [one for one in _yaml_keys(model, "MemoryModel") if one[0] not in ("`l1`", "`l2`")]),
        "### tlb, tlb2\n",
        keys_of("Tlb"),
        "### l1_prefetch, l2_prefetch\n",
        keys_of("Prefetcher"),
        "### alternatives\n",
        keys_of("Alternative", ROOT / "tensorop/specs/board_alternative.py"),
        wrapped(f"`change` takes {', '.join(map(code, board_alternative.SWITCHES))}.") + "\n",
    ]
    return page("platform.yaml", "Look up the keys of a platform file, `platforms/NAME.yaml`, here.", *parts)


def _yaml_keys(path: Path, kind: str) -> list[tuple[str, str]]:
    """Keys of a schema with the comment beside each; one without a comment is refused."""
    found = [(name.rstrip("_"), text) for name, _, text in typed(path, kind)]
    lacking = [name for name, text in found if not text and (kind, name) not in _NOT_WRITTEN]
    assert not lacking, f"{path}, {kind}: write what {', '.join(lacking)} mean in a comment beside the field"
    return [(code(name), text) for name, text in found]

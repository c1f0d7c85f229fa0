"""The pages of docs/reference/ on JSON that tensorop writes: keys with the comments beside them in the code."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from markup import code, fenced, page, sentence, table

from tensorop.model import trial
from tensorop.store import records

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "data" / "run" / "share" / "tensorop"  # a finished run, whose files are the examples

# JSON types of keys that the recorded run does not have.
KINDS = {
    "template": "text", "digest": "text", "author": "text", "strategy": "text", "point": "object",
    "registers": "integer", "image": "integer",
    "compiler flags": "array", "board": "text", "warm start": "text", "unseen": "array", "prior": "object",
    "seed_configurations": "array", "parent": "text", "race": "array", "only": "array", "variant": "text", "id": "text",
    "packed": "text", "text": "text", "message": "text", "log": "text", "by_vlen": "object", "choices": "array",
    "under": "object", "alternatives": "object", "geomean_by_vlen": "object", "lowest_by_vlen": "object",
    "lowest_at": "object", "remarks": "array", "cores": "object", "shape": "text", "dims": "object",
    "noisy": "boolean", "peak_share": "number", "empty_ns": "object", "verdict": "object", "empty_cycles": "object",
    "called": "object", "limited": "array", "path_instructions": "integer",
}  # fmt: skip


def comment_of(lines: list[str], number: int) -> str:
    """The comment at the end of a line, else the lines of comment above it. number: from 1."""
    line = lines[number - 1]
    if found := re.search(r"  # (.*)$", line):
        return found[1]
    above = []
    while number > 1 and lines[number - 2].strip().startswith("# "):
        number -= 1
        above.insert(0, lines[number - 1].strip().removeprefix("# "))
    return " ".join(above)


def typed(path: Path, kind: str) -> Iterator[tuple[str, str, str]]:
    """Name, type and comment of the fields of a record's class."""
    text = path.read_text(encoding="utf-8")
    tree = next(one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.ClassDef) and one.name == kind)
    for one in tree.body:
        if isinstance(one, ast.AnnAssign):
            hint = re.sub(r"NotRequired\[(.*)\]", r"\1, may be absent", ast.unparse(one.annotation))
            yield ast.unparse(one.target), hint, sentence(comment_of(text.splitlines(), one.lineno))


def keys(path: str, function: str, examples: Iterable[Any] = (), more: Iterable[tuple[str, str, str]] = ()) -> str:
    """The table of the JSON keys that a function writes, with the comment beside each; types as examples have them.
    A key without a comment is refused. more: further rows."""
    text = (ROOT / path).read_text(encoding="utf-8")
    nodes: Iterable[ast.AST] = [ast.parse(text)]
    for name in function.split("."):
        nodes = [one for node in nodes for one in ast.walk(node) if getattr(one, "name", None) == name]
    rows, known = [], [*examples]
    for name, line in _keys(next(iter(nodes)), ""):
        said = sentence(comment_of(text.splitlines(), line))
        assert said, f"{path}:{line}: write what the key '{name}' is in a comment beside it"
        found = (_at(one, name) for one in known)
        rows.append((code(name), next((_kind(one) for one in found if one is not None), KINDS.get(name, "")), said))
    return table(["Key", "Type", "Meaning"], [*rows, *more])


def _keys(node: ast.AST, under: str) -> Iterator[tuple[str, int]]:
    """The keys of the JSON objects that code makes, with their lines. under: the path to them."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                yield from _keys(value, under)
            elif isinstance(key, ast.Constant):
                yield f"{under}{key.value}", key.lineno
                if isinstance(value, ast.Dict):
                    yield from _keys(value, f"{under}{key.value}.")
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.slice, ast.Constant):
        yield str(node.slice.value), node.lineno
    elif not isinstance(node, (ast.DictComp, ast.ListComp)):
        for one in ast.iter_child_nodes(node):
            yield from _keys(one, under)


def _at(record: Any, name: str) -> Any:
    for part in name.split("."):
        record = record.get(part) if isinstance(record, dict) else None
    return record


def _kind(value: object) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "text", list: "array", dict: "object"}
    return names.get(type(value), "null or another")


def _short(value: Any, most: int = 2) -> Any:
    """An example without what repeats."""
    if isinstance(value, dict):
        return {name: _short(one, most) for name, one in [*value.items()][: 40 if most > 1 else 6]}
    if isinstance(value, list):
        return [_short(one, most) for one in value[:most]]
    return value if not isinstance(value, str) or len(value) < 90 else f"{value[:60]}..."


def journal_page() -> str:
    lines = [json.loads(line) for line in (RECORDED / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    of: Callable[[str], list[Any]] = lambda event: [line for line in lines if line["event"] == event]  # noqa: E731
    of_templates = [line["template"] for line in of("template")]
    samples = [one for line in of("finished") for one in line["score"]["per_problem"].values()]
    path = "tensorop/store/records.py"
    started, ended = of("started")[0], next(line for line in of("finished") if line["outcome"]["kind"] == "ok")
    events_ = {
        "run": ("first line: what the run is", "`facts`"),
        "resumed": ("a later process continued the run", ""),
        "template": ("a kernel template in full", "`digest`, `template`; `joined`: search that it came to late"),
        "started": ("a trial began", "see [started](#started)"),
        "text": ("the C of a kernel", "see [text](#text)"),
        "finished": ("a trial ended", "see [finished](#finished)"),
        "abandoned": ("a trial was stopped from outside and may run again", "`key`, `round`, `outcome`"),
        "note": ("any other fact of the run", "`name`, `data`"),
    }
    parts = [
        "The journal is `share/tensorop/journal.jsonl` of a product: one JSON object a line, only ever appended to.\n",
        fenced("\n".join(json.dumps(_short(one), indent=1) for one in (started, ended)), "json"),
        "Every line has these keys.\n",
        table(["Key", "Type", "Meaning"], [
            ("`schema`", "integer", f"Version of this format: {records.SCHEMA}."),
            ("`event`", "text", "Kind of line, see below."),
            ("`t`", "number", "Seconds that the run has taken so far, all its processes together."),
        ]),
        table(["Event", "Written when", "Further keys"], [(code(n), sentence(a), b) for n, (a, b) in events_.items()]),
        "## run: facts\n", keys("tensorop/pipeline.py", "_facts", [one["facts"] for one in of("run")]),
        "## template\n", keys(path, "template_record", of_templates),
        "## started\n", keys(path, "trial_record", of("started")),
        "## text\n", keys(path, "text_record", of("text")),
        "## finished\n", keys(path, "finished_record", of("finished")),
        "`outcome` has these keys:\n", keys(path, "outcome_record", [one["outcome"] for one in of("finished")]),
        "An entry of `score.per_problem` has these keys:\n", keys(path, "_samples_record", samples),
        "Kinds of outcome:\n",
        table(["Kind", "Meaning"], [(code(one.value), text) for one, text in _kinds()]),
    ]  # fmt: skip
    return page("Journal", "Read the journal of a run with your own programs with this page.", *parts)


def _kinds() -> Iterator[tuple[trial.Kind, str]]:
    text = Path(inspect.getfile(trial)).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and node.name == "Kind":
            for one in node.body:
                if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant):
                    kind = trial.Kind(one.value.value)
                    yield kind, sentence(comment_of(text.splitlines(), one.lineno) or kind.value.replace("-", " "))


def manifest_page() -> str:
    whole = json.loads((RECORDED / "manifest.json").read_text(encoding="utf-8"))
    example = {**whole, "operators": _short(whole["operators"], 1), "files": _short(whole["files"], 1)}
    winner, card = ROOT / "tensorop/model/winner.py", ROOT / "tensorop/package/card.py"
    parts = [
        "The manifest is `share/tensorop/manifest.json` of a product. `tensorop inspect LIB` prints the card inside a",
        "library, which has the same records for one operator.\n",
        fenced(
            json.dumps(_short({name: example[name] for name in ("schema", "tool", "platform", "results")}), indent=1),
            "json",
        ),
        "## Keys of a manifest\n",
        "The keys of a [card](#card) but `operator`, `dtypes`, `facts` and `routines`, and these:\n",
        keys(
            "tensorop/package/manifest.py",
            "document",
            [whole],
            [
                ("`results`", "object", "`verification`: how the library passed."),
                ("`plugins`", "object", "Platform and primitive files of your plug-in folders, each as one text."),
                ("`plugin_folders`", "object", "Folder of each plug-in that the product was made with."),
            ],
        ),
        "`results.verification` has one entry a dtype, VLEN and number of threads:\n",
        keys("tensorop/job/deliver.py", "_verdict", whole["results"]["verification"]),
    ]
    shown = (("Card", card), ("CardPlatform", card), ("OperatorRecord", winner), ("DtypeRecord", winner))
    shown += (("VariantRecord", winner), ("TreeRecord", winner), ("NodeRecord", winner), ("DirectRecord", winner))
    for name, path in shown:
        rows = [(code(key), code(hint), text) for key, hint, text in typed(path, name)]
        parts += [f"## {name}\n", table(["Key", "Type", "Meaning"], rows)]
    of_gpus = [
        ("`number`", "integer", "Its number in the library."),
        ("`a_along_m`, `b_along_k`", "integer", "1: A is contiguous along m; 1: B is contiguous along k."),
        ("`threads`", "integer", "Threads of a block."),
        ("`shared`", "integer", "Bytes of shared memory of a block."),
    ]
    parts += ["## Variants of a GPU library\n", "They have these keys in place of those of a VariantRecord:\n"]
    parts += [keys("tensorop/cuda/job_kernels.py", "variant_record", (), of_gpus)]
    return page("Manifest and card", "Read where a library comes from with your own programs with this page.", *parts)


def bench_page() -> str:
    whole = json.loads((RECORDED / "bench.json").read_text(encoding="utf-8"))
    rows = whole["results"]
    example = {**whole, "results": [{**rows[0], "by_vlen": "..."}]}
    file = "tensorop/model/bench.py"
    of_vlen = [one for row in rows for one in row["by_vlen"].values()]
    parts = [
        fenced("tensorop bench build/gemm-rvv --format json", "sh"),
        fenced(json.dumps(_short(example), indent=1), "json"),
        "With several `--threads` the output is an array of such objects, one a number of threads.\n",
        "## The comparison\n", keys(file, "Bench.to_json", [whole]),
        "## Summary keys\n", keys(file, "Bench._summary", [whole]),
        "## `baselines`\n", keys(file, "BaselineInfo.to_json", whole["baselines"].values()),
        "## `results`\n", keys(file, "Row.to_json", rows),
        "A row and each entry of its `by_vlen` have these keys too:\n", keys(file, "_figures", [*rows, *of_vlen]),
    ]  # fmt: skip
    return page("Results of `bench` as JSON", "Read what `tensorop bench --format json` prints with this page.", *parts)

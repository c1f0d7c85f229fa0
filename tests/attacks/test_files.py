"""Files of others: journals, manifests, cards and libraries that are damaged or lie; usage that makes no sense.

Each ends with file, place and what was expected, never in a traceback or a signal.
"""

from __future__ import annotations

import _ctypes
import contextlib
import gzip
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tensorop import api
from tensorop.backends import native, null, qemu
from tensorop.cli.main import cli
from tensorop.cli.screen import screen
from tensorop.commands import opened, report
from tensorop.errors import JobError, SpecError, TensoropError, UsageError
from tensorop.model.kernel import KernelText
from tensorop.package import card, loadable, plugin_record, publish
from tensorop.package.product import MANIFEST, Product
from tensorop.render.render import environment
from tensorop.report import gather
from tensorop.space import problems, recorded
from tensorop.specs import benches, operators, yamlfile
from tensorop.specs.printable import printable
from tensorop.store import journal
from tensorop.store.records import text_record
from tensorop.warm import reading
from tests.support.commands import ROOT, tensorop

RUN = ROOT / "tests" / "data" / "run"
KEPT = Path("share/tensorop")


def called(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    shutil.copytree(RUN, tmp_path / "run")
    return tmp_path / "run"


def finished(text: str) -> str:
    return next(line for line in text.splitlines() if '"event":"finished"' in line and '"cost":null' not in line)


DAMAGE = {
    "NaN": lambda line: line.replace('"cost":', '"cost":NaN,"x":'),
    "infinite": lambda line: line.replace('"cost":', '"cost":Infinity,"x":'),
    "too large": lambda line: line.replace('"cost":', '"cost":1e999,"x":'),
    "zero": lambda line: line.replace('"cost":', '"cost":0,"x":'),
    "below zero": lambda line: line.replace('"cost":', '"cost":-1,"x":'),
    "a word": lambda line: line.replace('"cost":', '"cost":"1","x":'),
    "true": lambda line: line.replace('"cost":', '"cost":true,"x":'),
    "a value of zero": lambda line: line.replace('"value":', '"value":0,"x":'),
    "many digits": lambda line: line.replace('"cost":', '"cost":' + "9" * 5000 + ',"x":'),
    "a list": lambda line: f"[{line}]",
    "depth": lambda line: '{"schema": ' + "[" * 100_000,
    "no time": lambda line: line.replace('"t":', '"t":"nan","x":'),
    "seconds of words": lambda line: line.replace('"seconds":{', '"seconds":{"a":"b",'),
    "an unknown kind": lambda line: line.replace('"kind":"ok"', '"kind":"fine"'),
    "half of a character": lambda line: line.replace('"kind":"ok"', '"kind":"\ud800"'),
    "bytes": lambda line: "\udcff\udcfe",
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_journal_is_named_with_its_line(name: str, run: Path) -> None:
    path = run / KEPT / "journal.jsonl"
    text = path.read_text()
    line = finished(text)
    broken = DAMAGE[name](line)
    assert broken != line
    path.write_bytes(
        text.replace(line, broken).encode(errors="surrogateescape" if name == "bytes" else "surrogatepass")
    )
    number = text.splitlines().index(line) + 1
    with pytest.raises(JobError, match=f"journal.jsonl is damaged in line {number}"):
        journal.read(run)


def noted(name: object, data: object) -> str:
    return json.dumps({"schema": journal.SCHEMA, "event": "note", "t": 1.0, "name": name, "data": data}) + "\n"


def told(name: str) -> str:
    text = KernelText(name, f"{name}{' ' * 1000}")
    return json.dumps({"schema": journal.SCHEMA, "event": "text", "t": 1.0, **text_record(text)}) + "\n"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (noted([], 1), "'name' is"),
        (noted({}, 1), "'name' is"),
        (noted("a", [[]] * 100) * 5, "notes of more than 300 values"),
        (noted("a", 1) * 100, "notes of more than 300 values"),
        ("".join(told(f"t{number}") for number in range(4)), "texts of more than 3000 characters"),
    ],
)
def test_many_notes_and_texts_are_too_many(
    more: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MAX_NOTES", 300)
    monkeypatch.setattr(journal, "MAX_TEXTS", 3000)
    path = journal.journal_path(tmp_path)
    with journal.Journal.open(tmp_path, {}):
        pass
    path.write_text(path.read_text() + noted("a", [1, 2, 3]) + told("t") + more)
    with pytest.raises(JobError, match=rf"journal.jsonl is damaged in line [0-9]+: \w+: .*{says}"):
        journal.read(tmp_path)


@pytest.mark.parametrize("dtypes", ["f32", 3, {"f32": 1}, [["f32"]], ["f32", "f32"]])
def test_what_a_run_is_has_different_dtypes(dtypes: object, run: Path) -> None:
    path = run / KEPT / "journal.jsonl"
    first, _, rest = path.read_text().partition("\n")
    record = json.loads(first)
    record["facts"]["dtypes"] = dtypes
    path.write_text(f"{json.dumps(record)}\n{rest}")
    with pytest.raises(JobError, match=r"journal.jsonl is damaged in line 1: .*'dtypes' is"):
        journal.read(run)


def test_a_report_of_odd_notes_names_its_files(run: Path) -> None:
    with (run / KEPT / "journal.jsonl").open("a") as file:
        file.write(noted("verification", "x"))
    with pytest.raises(JobError, match="share/tensorop cannot be shown"):
        report.write(run)


def test_another_schema_is_told_in_short(run: Path) -> None:
    path = run / KEPT / "journal.jsonl"
    path.write_text(json.dumps({"schema": "x" * 100_000, "event": "run", "t": 0, "facts": {}}) + "\n")
    with pytest.raises(JobError, match="has schema 'xxx") as caught:
        journal.read(run)
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("manifest.json", '{"schema": 2, "dtypes": {"f32": 3}, "files": [], "results": 1}'),
        ("manifest.json", '{"schema": 2, "results": {"verification": 3}, "dtypes": {"f32": {"variants": [3]}}}'),
        ("bench.json", "NaN"),
        ("bench.json", '{"results": 3}'),
        ("bench.json", "[" * 100_000),
    ],
)
def test_a_report_of_damaged_files(file: str, text: str, run: Path) -> None:
    (run / KEPT / file).write_text(text)
    with contextlib.suppress(TensoropError):
        gather.gather(run)


CARD = {"schema": 1, "operator": "gemm", "platform": {"name": "generic", "arch": "x86_64"}, "dtypes": {}}


def library(tmp_path: Path, said: bytes) -> Path:
    path = tmp_path / "libtensorop_gemm.so"
    path.write_bytes(b"\x7fELF" + b"\0" * 60 + card.MARKER.encode("latin-1") + said)
    return path


@pytest.mark.parametrize(
    "said",
    [b"", b"\0", b"{", b"{}", b'{"schema": 1}\0', b"[]\0", b"3\0", b"NaN\0", b"[" * 100_000 + b"\0", b"\xff\0",
     b'{"a": 1e999}\0',
     b'{"schema": 1, "dtypes": {"f32": 3}}\0', b'{"schema": 1, "dtypes": {"f32": {"variants": [1]}}}\0',
     b'{"schema": 1, "platform": 3, "operator": 3}\0',
     b'{"schema": 1, "dtypes": {"f32": {"variants": [], "tree": {"feature": 1}}}}\0',
     b'{"schema": 1, "operator": "../../x", "platform": "x"}\0'],
)  # fmt: skip
def test_a_damaged_card(said: bytes, tmp_path: Path) -> None:
    path = library(tmp_path, said)
    ended = called("inspect", str(path))
    assert isinstance(ended.exception, TensoropError) or ended.exit_code == 0
    with pytest.raises(TensoropError):
        opened.open_product(path)
    with pytest.raises(TensoropError):
        api.load(path)


VERSIONS = (0, -1, 7, True, 1.0, 2.0, "1", "2", None, [1])  # no file of ours has them


@pytest.mark.parametrize("schema", VERSIONS)
def test_another_version_of_a_card_a_manifest_or_yaml_is_refused_by_name(schema: object, tmp_path: Path) -> None:
    path, got = library(tmp_path, json.dumps({**CARD, "schema": schema}).encode() + b"\0"), re.escape(repr(schema))
    for read in (opened.open_product, api.load, opened.cards):
        with pytest.raises(JobError, match=f"{path} has schema {got}; this version of tensorop reads schema 1"):
            read(path)
    path = tmp_path / MANIFEST
    path.parent.mkdir(parents=True)
    told = json.loads((RUN / MANIFEST).read_text())
    path.write_text(json.dumps({**told, "schema": schema}))
    for look in (lambda: api.load(tmp_path), lambda: plugin_record.reopened(path, ()), lambda: report.report(tmp_path)):
        with pytest.raises(JobError, match=f"{path} has schema {got}; this version of tensorop reads schema 2"):
            look()
    with pytest.raises(SpecError, match=f"key 'schema': expected 1, got {got}"):
        yamlfile.validate(yamlfile.File, {"schema": schema}, "x.yaml")


@pytest.mark.parametrize("schema", VERSIONS)
def test_another_version_of_a_file_of_lines_is_refused_by_name(schema: object, run: Path, tmp_path: Path) -> None:
    path = run / KEPT / "journal.jsonl"
    first, *others = path.read_text().splitlines(keepends=True)
    path.write_text("".join([json.dumps({**json.loads(first), "schema": schema}) + "\n", *others]))
    with pytest.raises(JobError, match=f"has schema {re.escape(repr(schema))} in line 1"):
        journal.load(path)
    path = tmp_path / "winners.jsonl"
    path.write_text(json.dumps({"event": "winners", "schema": schema}) + "\n")
    with pytest.raises(UsageError, match=f"schema {re.escape(repr(schema))}; this version reads 1"):
        reading.read_winners(path)


@pytest.mark.parametrize("name", ["[" * 4000, "x" * 201, "\ud800", "a\0b", "\u202e", "..", "a/b", ""])
def test_a_name_that_no_file_can_have_is_unknown(name: str) -> None:
    with pytest.raises(UsageError, match="unknown operator"):
        operators.load(name)


def test_a_whole_library() -> None:
    shared = Path(_ctypes.__file__)
    loadable.require_whole(shared)
    assert loadable.machine(shared) == loadable.machine(Path(sys.executable).resolve())


@pytest.mark.parametrize("kept", [0, 3, 63, 64, 200, 4096, -4096, -1])
def test_a_cut_library(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(Path(_ctypes.__file__).read_bytes()[:kept])
    with pytest.raises(JobError, match="is damaged"):
        loadable.require_whole(path)


@pytest.mark.parametrize("kept", [400, 4096, -4096])
def test_a_cut_product_is_called_damaged_by_those_that_open_it(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "libtensorop_gemm.so"
    said = card.MARKER.encode("latin-1") + json.dumps(CARD).encode() + b"\0"
    for where in (b"", said):  # the card was cut off, or was before the cut
        path.write_bytes(Path(_ctypes.__file__).read_bytes()[: kept - len(where)] + where)
        with pytest.raises(JobError, match=r"libtensorop_gemm\.so is damaged"):
            opened.open_product(path)


# --- recorded spaces ----------------------------------------------------------------------------------------------

HEAD = {"schema": 1, "dimensions": {"a": [1, 2], "b": ["x"]}, "constraints": [], "facts": {}, "points": 2}
ROWS = [[0, 0, 1.0, 0.0], [1, 0, None, 0.0]]


@pytest.mark.parametrize(
    ("head", "rows", "says"),
    [
        ({}, [[0, 0, "x", 0.0], ROWS[1]], r"line 2: got .*; expected \[value numbers, cost, spread\]"),
        ({}, [[0, 0, [1], 0.0], ROWS[1]], "line 2: got"),
        ({}, [[0, 0, 0, 0.0], ROWS[1]], "line 2: got"),
        ({}, [[0, 0, 5e-324, 0.0], ROWS[1]], "line 2: got"),
        ({}, [ROWS[0], [1, 0, True, 0.0]], "line 3: got"),
        ({}, [ROWS[0], [1, 0, 1.0, "x"]], "line 3: got"),
        ({}, [ROWS[0], {"a": 1}], "line 3: got"),
        ({}, [ROWS[0], "\u2028"], "line 3: got"),
        ({}, [[0, 0, None, 0.0], ROWS[1]], "no point has a cost"),
        ({}, [], "0 lines of points; expected 2"),
        ({"dimensions": {"a": "ab"}}, ROWS, "line 1: key 'dimensions.a': expected a list"),
        ({"dimensions": {"a": [1.5]}}, ROWS, "line 1: key 'dimensions.a.0'"),
        ({"dimensions": {f"a{n}": [1] for n in range(2000)}}, ROWS, "line 1: expected at most 256 tunables, got 2000"),
        ({"constraints": ["a > 9"]}, ROWS, "line 1: no configuration satisfies"),
        ({"facts": {"x": [1]}}, ROWS, "line 1: key 'facts.x'"),
        ({"schema": "x" * 100_000}, ROWS, "line 1: 'schema' is 'xxx"),
        ({"schema": True}, ROWS, "line 1: 'schema' is True; expected 1"),
        ({"digest": "x" * 100_000}, ROWS, "line 1: 'digest' is 'xxx"),
    ],
)
def test_a_recorded_space_that_is_none(head: dict[str, object], rows: list[object], says: str, tmp_path: Path) -> None:
    told, body = {**HEAD, **head}, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(
        gzip.compress((json.dumps({"digest": recorded._digest(told, body), **told}) + f"\n{body}").encode())
    )
    with pytest.raises(UsageError, match=says) as caught:
        recorded.read(path)
    assert str(path) in caught.value.message
    assert len(caught.value.message) < 400


# --- comparisons --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"by_vlen": {"x": {"ours": 1.0}}}, "by_vlen.x"),
        ({"by_vlen": {"9" * 5000: {"ours": 1.0}}}, "key 'results.0.by_vlen.999"),
        ({"ratio": {"a": 0.0}, "interval": {"a": [1.0, 1.0]}}, "key 'results.0.ratio.a': expected more than 0"),
        ({}, "key 'results': expected at most 10000 of them"),
    ],
)
def test_a_comparison_that_is_none(change: dict[str, object], says: str) -> None:
    bench = json.loads((RUN / KEPT / "bench.json").read_text())
    bench["results"] = [{**bench["results"][0], **change}] if change else [{}] * 100_000
    with pytest.raises(UsageError, match=says) as caught:
        benches.parse(bench, "old.json")
    assert len(caught.value.message) < 700


NASTY = "a\x1b[2Jb\x1b]0;title\x07c\u202ed\u2066e\u200bf\x9b31mg\rh\x08i\ud800j\x00k"


def test_nothing_of_a_text_moves_a_cursor() -> None:
    shown = printable(NASTY)
    assert shown == "a\\x1b[2Jb\\x1b]0;title\\x07c\\u202ed\\u2066e\\u200bf\\x9b31mg\\x0dh\\x08i\\ud800j\\x00k"
    assert printable(shown) == shown
    assert printable("plain: ä € 漢 ×\n\t") == "plain: ä € 漢 ×\n\t"


def test_what_is_wrong_with_a_command_is_printable() -> None:
    done = tensorop("verify", f"--{NASTY.replace(chr(0), '').encode('ascii', 'ignore').decode()}", cwd=ROOT)
    assert done.status == 2
    assert "\\x1b[2J" in done.stderr
    assert not [c for c in done.stderr if not c.isprintable() and c != "\n"]


def test_what_is_printed_is_printable(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=NASTY)
    table.add_column(NASTY)
    table.add_row(NASTY)
    out = screen(width=400)
    for thing in (Text(NASTY), NASTY, table):
        out.print(thing, markup=False)
    path = library(tmp_path, json.dumps({**CARD, "facts": {"x": NASTY}}).encode() + b"\0")
    shown = capsys.readouterr().out + called("inspect", str(path)).output
    assert "\\x1b" in shown
    assert not [c for c in shown if not c.isprintable() and c != "\n"]
    page = environment(tmp_path, {"x": "{{ a }}{{ b | safe }}"}, html=True).get_template("x").render(a=NASTY, b=NASTY)
    assert page.isprintable()


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("gemm", "--shapes=--1x1x1"), "not a shape"),
        (("gemm", "--shapes", "1x-1x1"), "sides to tune for are between 1"),
        (("gemm", "--shapes", "-"), "unknown suite"),
        (("gemm", "--shapes", "x"), "unknown suite"),
        (("gemm", "--shapes", "9" * 5000 + "x1x1"), "not a shape"),
        (("gemm", "--shapes", "\u0661x1x1"), "not a shape"),
        (("gemm", "--out", "x" * 300), "--out is too long"),
        (("gemm", "--out", "/".join(["x" * 100] * 40)), "whole paths 3000"),
        (("gemm", "--budget", "1e9s"), "expected a time"),
        (("gemm", "--shapes", "2000000x2000000x64"), "more than half of the"),
        (("gemm", "--platform", "rvv", "--shapes", "9000x9000x9000"), "under the emulator would take about"),
        (("gemm", "--author-timeout", "0s"), "--author-timeout"),
        (("gemm", "--author-timeout", "99999h"), "--author-timeout"),
        (("bench", "x", "--fail-below", "nan"), "expected a ratio"),
        (("bench", "x", "--fail-below", "inf"), "expected a ratio"),
        (("bench", "x", "--fail-below", "-1"), "expected a ratio"),
        (("bench", "x", "--fail-below", "x"), "expected a ratio"),
        (("bench", "x", "--threshold", "nan%"), "expected a percentage"),
        (("inspect", "x" * 5000), ""),
    ],
)
def test_usage_errors(words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = called(*words)
    told = str(ended.exception) if isinstance(ended.exception, TensoropError) else ended.output
    assert says in told
    assert isinstance(ended.exception, UsageError | SystemExit), ended.exception
    assert getattr(ended.exception, "exit_status", ended.exit_code) == 2
    assert list(tmp_path.iterdir()) == []


def test_an_out_that_is_a_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "disk" / "real", tmp_path / "link"
    real.mkdir(parents=True)
    (real / "work").mkdir()
    link.symlink_to(real)
    publish.check_place(link)
    for text in (b"one", b"two"):
        product = Product({MANIFEST: b"{}", "lib/x.so": text}, {}, "lib/x.so")
        publish.publish(publish.stage(product, link), link)
        assert link.is_symlink()
        assert (real / "lib" / "x.so").read_bytes() == text
    assert (real / "work").is_dir()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["disk", "link"]
    assert sorted(p.name for p in (tmp_path / "disk").iterdir()) == ["real"]


def test_an_out_that_is_a_link_to_nothing_or_itself(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    with pytest.raises(UsageError, match="is a broken link"):
        publish.check_place(tmp_path / "a")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(UsageError, match="link"):
        publish.check_place(tmp_path / "a")


def test_what_can_be_run_is_run() -> None:
    gemm = operators.load("gemm")
    for shape in ((100_000, 64, 64), (64, 100_000, 64), (64, 64, 100_000), (1, 1, 1)):
        for backend in (native, null, qemu):
            problems.require_affordable(gemm, ("f32", "f64"), [shape], backend.Backend.budgets.flops_per_s, 4)

"""What the command line refuses, and how: one sentence, the next step, a status, nothing written."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import tensorop as package
from tensorop import backends
from tensorop.cli.main import cli, main
from tensorop.cli.operator_command import operator_command
from tensorop.commands import check_operator, libraries
from tensorop.commands.check_operator import Finding
from tensorop.errors import UsageError
from tensorop.model.job import Job
from tensorop.specs import catalog
from tests.support.commands import refused, tensorop


def refused_here(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says that must end with status 2; in this process, which is quicker."""
    monkeypatch.setattr(sys, "argv", ["tensorop", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    shown = capsys.readouterr()
    assert (stop.value.code, shown.out) == (2, ""), shown.err
    return shown.err


PLATFORM = "schema: 1\nname: mine\nparent: generic\ndescription: a test's own\n"


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gmem"], ["unknown command or operator 'gmem'", "did you mean gemm?", "doctor"]),
        (["gemm", "--platform", "rvx"], ["unknown platform 'rvx'", "did you mean rvv", "spacemit-k1"]),
        (["gemm", "--platform", "RVV"], ["unknown platform 'RVV'", "did you mean rvv", "spacemit-k1"]),
        (
            ["gemm", "--platform", "cuda-sm90", "--runner", "native"],
            ["--runner native: platform 'cuda-sm90' works with the backend 'cuda' only"],
        ),
        (
            ["gemm", "--platform", "cuda-sm90", "--author", "llm"],
            ["platform 'cuda-sm90' has no author yet: nothing executes the primitives of cuda-wgmma"],
        ),
        (["gemm", "--platform", "cuda-sm90", "--tuner", "byes"], ["unknown tuner 'byes'", "did you mean bayes"]),
        (
            ["attention", "--platform", "cuda-wmma", "--dtype", "f16"],
            ["'cuda-wmma' has no kernels for operator 'attention': its family decode needs tile_b_turned, sum_as_a"],
        ),
        (["conv2d", "--platform", "cuda-sm90"], ["operator 'conv2d' has no GPU kernels", "use another operator"]),
        (["gemm", "--dtype", "f23"], ["unknown dtype of gemm 'f23'", "did you mean f32?", "f64"]),
        (["gemm", "--tuner", "bayse"], ["unknown tuner 'bayse'", "did you mean bayes?", "grid, mcts, random"]),
        (["gemm", "--author", "offlin"], ["--author", "'offlin'", "'offline'", "'llm'"]),
        (["gemm", "--runner", "qmu"], ["unknown runner 'qmu'", "qemu"]),
        (["gemm", "--runner", "ssh://"], ["--runner ssh:// is not an address", "ssh://[user@]host"]),
        (["gemm", "--frobnicate"], ["error: no such option", "--frobnicate", "`tensorop gemm --help` lists"]),
        (["gemm", "--platfrm", "rvv"], ["error: no such option", "--platfrm", "did you mean --platform"]),
        (["gemm", "rvv"], ["error: got unexpected extra argument (rvv)"]),
        (["gemm", "--budget"], ["error: option '--budget' requires an argument"]),
        (["--frobnicate"], ["error: no such option", "--frobnicate", "`tensorop --help` lists"]),
        (["gemm", "--platform", "k1"], ["unknown platform 'k1'", "did you mean spacemit-k1?"]),
        (["gemm", "--platform", "a53"], ["unknown platform 'a53'", "did you mean cortex-a53?"]),
        (["gemm", "--dtype", ","], ["--dtype names no element type", "choose from f32, f64"]),
        (["gemm", "--shapes", "0x4x4"], ["not a shape of gemm: '0x4x4': m is 0", "mxnxk, e.g. 64x64x64"]),
        (["gemm", "--shapes", "4x-1x4"], ["'4x-1x4': n is -1"]),
        (["gemm", "--shapes", "4x4"], ["not a shape of gemm", "mxnxk, got '4x4'"]),
        (["gemm", "--shapes", "4x4x"], ["not a shape of gemm", "mxnxk, got '4x4x'"]),
        (["gemm", "--shapes", "4x4x99999999999"], ["k is 99999999999", "between 1 and"]),
        (
            ["gemm", "--shapes", "qick"],
            ["unknown suite of gemm 'qick'", "did you mean quick?", "full-clock, quick, tiny"],
        ),
        (["gemm", "--shapes", ""], ["--shapes must name at least one shape or suite; got ''", "write shapes as mxnxk"]),
        (
            ["gemm", "--budget", "5s", "--trials", "3"],
            ["--budget and --trials exclude each other", "remove one of them"],
        ),
        (["gemm", "--budget", "2"], ["the time '2' has no unit", "write 2s or 2m"]),
        (["gemm", "--budget", "0s"], ["--budget must be a positive time; got 0.0 seconds", "e.g. --budget 2m"]),
        (["gemm", "--budget", "soon"], ["expected a time such as 90s, 3m", "got 'soon'"]),
        (["gemm", "--budget", "5min"], ["got '5min'", "m (minutes)", "s (seconds)"]),
        (["gemm", "--trials", "0"], ["--trials", "0 is not in the range"]),
        (["gemm", "--trials", "many"], ["--trials", "'many'"]),
        (["gemm", "--jobs", "0"], ["--jobs"]),
        (
            ["gemm", "--platform", "avx2", "--c-dtype", "f32"],
            ["for f64 inputs, platform 'avx2' supports results of f64", "--c-dtype f64"],
        ),
        (
            ["gemm", "--platform", "avx2", "--dtype", "i8", "--c-dtype", "i8"],
            ["for i8 inputs, platform 'avx2' supports results of i32"],
        ),
        (
            ["gemm", "--platform", "cuda-sm90", "--dtype", "bf16,f16", "--c-dtype", "f16"],
            ["--c-dtype f16", "for bf16 inputs, platform 'cuda-sm90' supports results of bf16 or f32"],
        ),
        (
            ["gemm", "--platform", "avx2", "--dtype", "f32,i8", "--epilogue"],
            [
                "--epilogue supports f32, f64, bf16, f16 on platform 'avx2'; got --dtype i8",
                "use --dtype f32,f64,bf16,f16",
            ],
        ),
        (["conv2d", "--platform", "avx2", "--epilogue"], ["--epilogue has no effect for conv2d on platform 'avx2'"]),
        (["gemm", "--threads", "0"], ["--threads"]),
        (["gemm", "--plugins", "nowhere"], ["--plugins", "'nowhere'"]),
        (
            ["gemm", "--platform", "avx512", "--runner", "qemu"],
            ["cannot run in the emulator: its file has no `qemu_cpu`", "--runner native"],
        ),
        (["platforms", "lst"], ["'lst'", "list"]),
        (["platforms", "show", "rvx"], ["unknown platform 'rvx'", "did you mean rvv"]),
        (["primitives", "show", "scaler"], ["unknown primitive set 'scaler'", "did you mean scalar"]),
        (["operators", "show", "gem"], ["unknown operator 'gem'", "did you mean gemm"]),
        (["tuners", "show", "bays"], ["unknown tuner 'bays'", "did you mean bayes"]),
        (["gemm", "--author", "llm"], ["--author llm needs a model", "TENSOROP_LLM_MODEL", "--author offline"]),
        (["bench", "nowhere"], ["nowhere does not exist", "tensorop <operator> --out"]),
        (["verify", "nowhere"], ["nowhere does not exist", "tensorop <operator> --out"]),
        (["bench", "nowhere", "--threshold", "5%"], ["no effect without --compare", "add --compare OLD.json"]),
        (["bench"], ["error: missing argument 'DIR|LIB'", "`tensorop bench --help` lists"]),
        (["inspect", "nowhere"], ["nowhere does not exist", "tensorop <operator> --out"]),
        (["report", "nowhere"], ["nowhere does not exist", "tensorop <operator> --out"]),
    ],
    ids=lambda value: " ".join(value) if value and isinstance(value[0], str) and len(value) < 7 else "",
)
def test_wrong_usage_is_refused_in_a_sentence(
    words: list[str],
    said: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TENSOROP_LLM_MODEL", raising=False)
    message = refused_here(words, monkeypatch, capsys)
    for part in said:
        assert part in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("variable", "value"),
    [("ALL_PROXY", "socks://h:1"), ("SSL_CERT_FILE", "/nowhere"), ("OPENAI_BASE_URL", "h:1"), ("OPENAI_ORG_ID", "\n")],
)
def test_what_an_author_s_client_cannot_work_with_is_refused_before_any_work(
    variable: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TENSOROP_LLM_MODEL", "m")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    monkeypatch.delenv("all_proxy", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv(variable, value)
    assert variable in refused_here(["gemm", "--author", "llm"], monkeypatch, capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "words",
    [
        *(f"--platform cuda-sm90 {given}" for given in (
            "--budget 5m", "--tuner random", "--tuner bayes", "--batch 4", "--seed 3", "--threads 4",
            "--unsafe", "--warm-start none", "--author-timeout 5m", "--no-search", "--only outer", "--layout 1",
        )),
        *(f"--no-search {given}" for given in (
            "--trials 4", "--budget 1m", "--tuner random", "--tuner bayes", "--author llm", "--only outer", "--batch 4",
        )),
        "--runner null --author replay --only outer",
        "--platform rvv --threads 4", "--platform neon --threads 2",
        "--runner null --threads 4", "--runner null --unsafe", "--author replay --runner null --unsafe",
        "--unsafe", "--author-timeout 5m", "--author replay --author-timeout 5m",
        "--platform generic --dtype f32 --c-dtype f32", "--platform rvv --dtype bf16,f16 --c-dtype f32",
    ],
)  # fmt: skip
def test_an_option_that_would_change_nothing_is_refused(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    message = refused_here(["gemm", *words.split()], monkeypatch, capsys)
    option = re.findall(r"--[a-z-]+", words)[-1]
    assert re.search(rf"{option}( f32)? has no effect.*\n +remove {option}", message), message
    assert list(tmp_path.iterdir()) == []


def test_what_a_backend_ignores_are_options() -> None:
    known = {option.name for option in operator_command("gemm").params}
    for name in catalog.names("backends"):
        assert backends.load(name).ignores.keys() <= known


def test_the_type_of_the_result_is_shown_where_there_is_a_choice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for operator, shown in (("gemm", True), ("conv2d", False)):
        monkeypatch.setattr(sys, "argv", ["tensorop", operator, "--help"])
        main()
        assert ("--c-dtype" in capsys.readouterr().out) == shown


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


@pytest.mark.parametrize("words", list(commands(cli)), ids=" ".join)
def test_every_command_has_json_examples_and_says_what_each_option_takes(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tensorop", *words, "--help"])
    main()
    shown = capsys.readouterr().out
    assert re.search(r"--format \[\w+\|json\]", shown)
    assert re.search(rf"Examples:\n +tensorop {' '.join(words)}", shown)
    assert " TEXT " not in shown


@pytest.mark.covers(
    "command platforms list",
    "command platforms show",
    "command primitives list",
    "command primitives show",
    "command operators list",
    "command operators show",
    "command tuners list",
    "command tuners show",
)
def test_lists_and_records_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for group, name in (("platforms", "rvv"), ("primitives", "rvv"), ("operators", "gemm"), ("tuners", "bayes")):
        for words in (["list"], ["show", name]):
            monkeypatch.setattr(sys, "argv", ["tensorop", group, *words, "--format", "json"])
            main()
            said = json.loads(capsys.readouterr().out)
            names = [entry["name"] for entry in said] if words == ["list"] else [said["name"]]
            assert name in names


def test_python_and_command_line_have_the_same_defaults() -> None:
    command = operator_command("gemm")
    given = {parameter.name: parameter.default for parameter in command.params}
    wish = {name: parameter.default for name, parameter in inspect.signature(package.tune).parameters.items()}
    assert (given["dtype"], wish["dtypes"]) == (None, None)  # the platform says
    assert (given["shapes"], wish["shapes"]) == (None, None)  # the operator's first suite
    assert list(wish)[1:-1] == [{"dtype": "dtypes"}.get(str(name), name) for name in given][:-1]
    for name in ("platform", "tuner", "author", "jobs", "seed", "threads"):
        assert given[name] == wish[name], name


def test_help_of_tune_has_every_option() -> None:
    text = str(package.tune.__doc__)
    for name in Job.options():
        assert f"\n{name}: " in text, name
    with pytest.raises(TypeError, match=r"tune.*unexpected keyword argument 'budgte'"):
        package.tune("gemm", budgte="3m")


def test_a_library_that_no_architecture_has_is_said_before_any_work() -> None:
    with pytest.raises(UsageError, match=r"--against mkl: no such baseline for riscv64") as caught:
        libraries.check_names(["mkl"], "riscv64")
    assert "openblas" in str(caught.value.hint)
    with pytest.raises(UsageError, match=r"unknown version of OpenBLAS for riscv64 '9.9'"):
        libraries.check_names(["openblas@9.9"], "riscv64")
    with pytest.raises(UsageError, match=r"--against mkl: no such baseline for riscv64"):
        libraries.check_names(["openblas", "mkl"], "riscv64")
    libraries.check_names(["openblas", "mkl"], "x86_64")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PLATFORM + "vlenz: [128]\n", ["unknown key 'vlenz'", "did you mean 'vlens'?", "caches"]),
        (PLATFORM.replace("parent: generic\n", ""), ["missing", "'arch'"]),
        (PLATFORM + "caches: 3\n", ["'caches'", "list of levels", "got 3"]),
        (PLATFORM.replace("generic", "mine"), ["'parent'", "no cycle", "mine -> mine"]),
        (PLATFORM.replace("generic", "nobody"), ["'parent'", "unknown platform 'nobody'", "known:", "generic"]),
        (PLATFORM.replace("generic", "[generic"), ["not readable as YAML", "line "]),
        ("", ["expected"]),
    ],
    ids=["unknown key", "missing field", "wrong type", "cycle", "unknown parent", "not YAML", "empty"],
)
def test_a_broken_platform_is_named_by_file_and_key(
    text: str,
    said: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plugins = tmp_path / "mine"
    (plugins / "platforms").mkdir(parents=True)
    (plugins / "platforms" / "mine.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    words = ["gemm", "--platform", "mine", "--plugins", str(plugins), "--out", "out", "--runner", "null"]
    message = refused_here([*words, "--trials", "2"], monkeypatch, capsys)
    assert f"{plugins}/platforms/mine.yaml" in message
    for part in said:
        assert part in message
    assert not (tmp_path / "out").exists()


def test_one_broken_platform_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "aaa.yaml").write_text("vlenz: 3\n")
    listed = tensorop("platforms", "list", "--plugins", tmp_path, cwd=tmp_path)
    assert listed.status == 2
    assert re.search(r"^generic ", listed.stdout, re.MULTILINE)
    assert "aaa.yaml" in listed.stderr


def test_plugins_come_by_the_environment_too(tmp_path: Path) -> None:
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "mine.yaml").write_text(PLATFORM)
    listed = tensorop("platforms", "list", cwd=tmp_path, env={"TENSOROP_PLUGINS": str(tmp_path)})
    assert re.search(r"^mine +a test's own$", listed.stdout, re.MULTILINE)


@pytest.mark.parametrize("group", ["platforms", "primitives", "operators", "tuners"])
def test_everything_listed_can_be_shown(
    group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tensorop(group, "list", cwd=tmp_path)
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    assert listed.status == 0
    assert names
    for name in names:
        monkeypatch.setattr(sys, "argv", ["tensorop", group, "show", name])
        main()
        assert name in capsys.readouterr().out


def test_help_and_version(tmp_path: Path) -> None:
    assert "tensorop" in tensorop("--version", cwd=tmp_path).stdout
    shown = tensorop("gemm", "--help", cwd=tmp_path, fresh=True)
    assert shown.status == 0
    for option in (
        "--platform",
        "--dtype",
        "--shapes",
        "--budget",
        "--trials",
        "--tuner",
        "--author",
        "--jobs",
        "--seed",
    ):
        assert option in shown.stdout


@pytest.mark.parametrize("words", [(), ("bench",), ("platforms", "check")])
def test_help_is_a_command_too(words: tuple[str, ...], tmp_path: Path) -> None:
    shown = tensorop("help", *words, cwd=tmp_path)
    assert shown.status == 0
    assert shown.stdout == tensorop(*words, "--help", cwd=tmp_path).stdout


def test_a_check_shows_similar_results_as_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def results(*_: object) -> Iterator[Finding]:
        yield Finding(True, "a: as expected", "parts as expected")
        yield Finding(False, "b: wrong", "parts as expected")
        yield from (Finding(True, f"{name}: as expected", "parts as expected") for name in "cd")
        yield Finding(True, "e: the only one", "others")

    monkeypatch.setattr(check_operator, "check", results)
    for form, expected in (
        ("table", ["FAIL b: wrong", "3 parts as expected", "e: the only one", "--format json lists every check"]),
        ("json", ["a: as expected", "FAIL b: wrong", "c: as expected", "d: as expected", "e: the only one"]),
    ):
        monkeypatch.setattr(sys, "argv", ["tensorop", "operators", "check", "gemm", "--format", form])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 1
        out = capsys.readouterr().out
        assert (out.splitlines() if form == "table" else [one["text"] for one in json.loads(out)]) == expected


def test_a_command_of_its_own_process_ends_as_in_here(tmp_path: Path) -> None:
    assert "did you mean gemm?" in refused("gmem", cwd=tmp_path)

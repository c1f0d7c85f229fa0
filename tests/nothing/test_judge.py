"""`judge` before anything is built: files that are no kernels, and how plain C is read as a template."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tensorop import tuning
from tensorop.author import c_file
from tensorop.author.parse import parse
from tensorop.cli.judge_command import judge as command
from tensorop.commands import judge
from tensorop.commands.advice import FAILED, PASSED
from tensorop.errors import SpecError, UsageError
from tensorop.model.kernel import KernelTemplate
from tensorop.model.trial import Kind
from tensorop.model.verdict import Seed
from tensorop.space import Space
from tensorop.specs import operators, platforms
from tensorop.trial import judging
from tests.support.commands import refused

HEAD = "---\nstrategy: s\nreads: {a: rows, b: columns}\ntunables: {mr_vectors: [2], nr: [4]}\n---\n"
C_HEAD = "/*---\nstrategy: s\nreads: {a: rows, b: columns}\ntunables: {mr_vectors: [2], nr: [4]}\n---*/\n"
BODY = "    c[0] = 0;\n"


CALL = C_HEAD.replace("---*/", "call: tile(m, n, nr, k, a, names)\n---*/")
TILE = "static void tile(void) {}\n"


def submission(file: Path, trusted: bool = False) -> judge.Submission:
    return judge.Submission(file, operators.load("gemm"), platforms.load("generic"), "f32", trusted=trusted)


def body_of(text: str) -> str:
    return c_file.template_text(C_HEAD + text, ("n",), "f.c").split("---\n", 2)[2]


def test_names_of_templates_are_written_plainly() -> None:
    assert (
        body_of("element x = mr_vectors * n; compute y[4];\n")
        == "{{ element }} x = {{ mr_vectors }} * {{ n }}; {{ compute }} y[4];\n"
    )
    assert body_of("names = nm + b.n + 0x1n;\n") == "names = nm + b.n + 0x1n;\n"
    assert body_of("/* n */ x = n; // mr_vectors\n") == "/* n */ x = {{ n }}; // mr_vectors\n"


@pytest.mark.parametrize("text", ["float x[1][1] = {{0}};\n", "{%- for -%}\n", "{# hidden #}\n", "{{{n}}}\n", "{n}\n"])
def test_nothing_in_a_c_file_is_a_templates_own_language(text: str) -> None:
    written = body_of(text)
    assert written.replace(" ", "").replace("{{n}}", "n", 1) == text.replace(" ", "")
    assert "{%" not in written
    assert "{#" not in written
    assert "{{" not in written.replace("{{ n }}", "")
    assert "{{{" not in written


def test_a_c_file_keeps_its_lines_and_is_a_template() -> None:
    text = c_file.template_text(C_HEAD + "one;\n\nn;\n", ("n",), "f.c")
    assert text.split("\n")[5:] == ["one;", "", "{{ n }};", ""]
    assert parse(text, operator="gemm", name="f", author="plug-in").tunables == {"mr_vectors": (2,), "nr": (4,)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("int x;\n", "expected a head that begins with '/*---', got 'int x;'"),
        ("", "expected a head that begins with '/*---'"),
        ("\n/*---\nstrategy: s\n", "line 2: expected the line '---*/' at the end of the head"),
        ("/*---\nstrategi: s\ntunables: {}\n---*/\n", "unknown key 'strategi'; did you mean 'strategy'?"),
    ],
)
def test_a_c_file_without_its_head_is_named_with_what_was_expected(text: str, told: str) -> None:
    with pytest.raises(SpecError) as caught:
        c_file.template_text(text, ("n",), "f.c")
    assert "f.c: " in caught.value.message
    assert told in caught.value.message


def test_own_starts_come_first_then_points_over_the_space() -> None:
    space = Space.of({"mr_vectors": tuple(range(1, 11)), "nr": (2, 4)}, (), {})
    template = KernelTemplate("gemm", "d", "plug-in", "s", "x", seed_configurations=(space.at(7), space.at(3)))
    assert judging.chosen(template, space, 1) == (space.at(7),)
    assert judging.chosen(template, space, 4) == (space.at(7), space.at(3), space.at(0), space.at(5))


def test_every_end_has_a_next_step() -> None:
    assert FAILED.keys() == set(Kind) - {Kind.OK}
    for text in (PASSED, *FAILED.values()):
        assert text.format(operator="gemm", platform="rvv", name="d", dtype="f32", plugins="--plugins DIR")


FILES: dict[str, tuple[str | bytes, str]] = {
    "no_head.c.j2": (BODY, "expected a head between two lines of '---'"),
    "open.c.j2": ("---\nstrategy: s\n", "expected a line '---' at the end of the head"),
    "unknown.c.j2": (HEAD.replace("reads", "raeds") + BODY, "unknown key 'raeds'; did you mean 'reads'?"),
    "tag.c.j2": (HEAD.replace("s\n", "!!python/name:os.system x\n", 1) + BODY, "tag.c.j2"),
    "tile.c.j2": (
        HEAD.replace("mr_vectors: [2], ", "") + BODY,
        "key 'tunables': expected mr_vectors among them, got nr",
    ),
    "empty.c.j2": (HEAD, "expected C text after the head"),
    "latin.c.j2": (HEAD.encode() + b"\xff", "not UTF-8 text"),
    "text.txt": (HEAD + BODY, "expected a kernel template (*.c.j2) or a C file (*.c)"),
    "bare.c": ("void f(void) {}\n", "expected a head that begins with '/*---'"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_kernel_is_a_usage_error_with_its_place(name: str, tmp_path: Path) -> None:
    text, told = FILES[name]
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError) as caught:
        judge.read(submission(tmp_path / name))
    assert str(tmp_path / name) in caught.value.message
    assert told in caught.value.message


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("none.c", "generic"), "none.c: the file does not exist"),
        (("folder.c", "generic"), "folder.c: it is not a file"),
        (("k.c.j2", "rvw"), "unknown platform 'rvw'"),
        (("k.c.j2", "generic", "--dtype", "f32,f64"), "takes one element type here"),
        (("k.c.j2", "generic", "--runner", "null"), "is a dry run and cannot check a kernel"),
        (("k.c.j2", "generic", "--seed", "1:"), "got '1:'"),
        (("k.c.j2", "generic", "--timeout", "2h"), "--timeout must be above 0 and at most an hour; got 2h"),
        (("k.c.j2", "generic", "--shapes", "3x3"), "not a shape of gemm: expected a shape as mxnxk, got '3x3'"),
        (("k.c.j2", "generic", "--template", "none/k.c.j2"), "none/k.c.j2 cannot be written"),
        (("k.c.j2", "generic", "--seed", "3:-5"), "--seed: expected an integer or N:SECRET, got '3:-5'"),
        (("k.c.j2", "generic", "--seed", ""), "--seed: expected an integer or N:SECRET, got ''"),
        (("k.c.j2", "generic", "--trusted"), "--trusted takes a C file (*.c); got k.c.j2"),
        (("k.c", "generic", "--trusted", "--template", "k.c.j2"), "--template and --trusted exclude each other"),
    ],
)
def test_what_cannot_be_is_a_usage_error(
    words: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k.c.j2").write_text(HEAD + BODY)
    (tmp_path / "folder.c").mkdir()
    monkeypatch.chdir(tmp_path)
    file, platform, *more = words
    ended = CliRunner().invoke(command, [file, "--operator", "gemm", "--platform", platform, *more])
    assert isinstance(ended.exception, UsageError)
    assert ended.exception.exit_status == 2
    assert told in ended.exception.message


def test_the_command_line_says_so_with_its_status(tmp_path: Path) -> None:
    message = refused("judge", "none.c", "--operator", "gemm", "--platform", "generic", cwd=tmp_path)
    assert "error: none.c: the file does not exist" in message


def test_a_seed_is_taken_as_it_is_printed_and_as_an_integer() -> None:
    whole = Seed.draw(-7)
    assert Seed(*tuning.seed(str(whole))) == whole
    assert tuning.seed("-7") == (-7, None)  # the secret half is new each time


def test_a_trusted_file_is_a_call_with_its_c_and_its_headers(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "include").mkdir()
    texts = {
        "src/k.c": f'{CALL}#include "../include/a.h"\n  # include "b.h"\n#include <math.h>\n#include "none.h"\n{TILE}',
        "src/b.h": '#include "k.c"\n',  # which a guard would leave out
        "include/a.h": "int a;\n",
        "include/c.h": "int c;\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = judge.read(submission(tmp_path / "src/k.c", trusted=True))
    assert found.text == "tile(m, {{ n }}, {{ nr }}, k, a, names);\n"
    assert found.files[0] == ("own/src/k.c", texts["src/k.c"])
    assert dict(found.files) == {f"own/{name}": text for name, text in texts.items() if name != "include/c.h"}
    assert found.flags == ()
    (tmp_path / "include/a.h").write_text("int other;\n")
    assert judge.read(submission(tmp_path / "src/k.c", trusted=True)).digest != found.digest


@pytest.mark.parametrize(
    ("text", "trusted", "message", "hint"),
    [
        (TILE, True, "k.c: expected a head that begins with '/*---'", "`call:`, the call of your function"),
        (C_HEAD + TILE, True, "k.c: missing key 'call'", "`call:`, the call of your function"),
        (CALL.replace("tile(m", "(m").replace("call: ", "call: []\n#"), True, "key 'call': expected", "`call:`"),
        (f'{CALL}#include "/usr/include/a.h"\n', True, "relative to this file, got '/usr/include/a.h'", ""),
        (f"#include <immintrin.h>\n{TILE}", False, "k.c: expected a head", "add --trusted"),
        (CALL + TILE, False, "unknown key 'call'", "add --trusted"),
    ],
)
def test_a_file_that_is_not_trusted_c_is_named_with_what_to_do(
    text: str, trusted: bool, message: str, hint: str, tmp_path: Path
) -> None:
    (tmp_path / "k.c").write_text(text)
    with pytest.raises(SpecError) as caught:
        judge.read(submission(tmp_path / "k.c", trusted))
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")

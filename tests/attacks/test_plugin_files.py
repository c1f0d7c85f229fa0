"""Plug-in files that reach for more than a platform or a primitive set is: refused when they are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensorop.errors import SpecError
from tensorop.model import meaning
from tensorop.package import plugin_record
from tensorop.specs import catalog, platforms, primitives

PLATFORM = "schema: 1\nname: mine\nparent: generic\ndescription: somebody's\n"
FLAGS = [
    "-fplugin=/tmp/evil.so",
    "-fpass-plugin=evil.so",
    "-o",
    "-o/etc/passwd",
    "@file",
    "-include",
    "-include/etc/passwd",
    "-I/",
    "-I",
    "-isystem",
    "-L.",
    "-B/tmp",
    "-Xclang",
    "-Xlinker",
    "-Wl,-init,x",
    "-Wa,-I/",
    "-Wp,-MD,/tmp/x",
    "-MF",
    "-MD",
    "-save-temps=obj",
    "-fprofile-use=/etc/passwd",
    "-fdebug-prefix-map=a=b",
    "-fmodule-file=x",
    "-fuse-ld=/tmp/evil",
    "-x",
    "-xc++",
    "-E",
    "-S",
    "-shared",
    "-target",
    "--config=/tmp/x",
    "--sysroot=/",
    "-DNDEBUG=/*",
    "-mcpu=../x",
    "-mcpu=native -o x",
    "-mcpu=native\n-o",
    "-O3\n",
    "/etc/passwd",
    "evil.c",
    "",
    "-",
    "-mlink-builtin-bitcode",
    "-O3\u202e",
]
LLVM = ["-load=/tmp/evil.so", "-load-pass-plugin=x", "-info-output-file=/tmp/x", "-stats", "-debug", "-O3", "-mllvm"]


def refused(tmp_path: Path, text: str) -> str:
    (tmp_path / "platforms").mkdir(exist_ok=True)
    (tmp_path / "platforms" / "mine.yaml").write_text(text)
    with pytest.raises(SpecError) as caught:
        platforms.load("mine", (tmp_path,))
    assert "mine.yaml" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("key", ["arch_flags", "flags"])
@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_that_reads_writes_or_loads(tmp_path: Path, key: str, flag: str) -> None:
    assert "is not admitted" in refused(tmp_path, PLATFORM + f"compiler: {{{key}: [-O3, {json.dumps(flag)}]}}\n")


@pytest.mark.parametrize("flag", LLVM)
def test_an_option_of_llvm(tmp_path: Path, flag: str) -> None:
    assert "is not admitted" in refused(tmp_path, PLATFORM + f"compiler: {{flags: [-mllvm, {flag}]}}\n")
    assert "nothing follows -mllvm" in refused(tmp_path, PLATFORM + "compiler: {flags: [-mllvm]}\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("compiler: {static_target: x86_64-windows-gnu}", "compiler.static_target"),
        ("compiler: {shared_target: x86_64-linux-gnu.2.31 -o x}", "compiler.shared_target"),
        ("compiler: {shared_target: riscv64-linux-musl}", "compiler.shared_target: expected x86_64"),
        ("compiler: {static_target: -o}", "compiler.static_target"),
        ("compiler: {static_cpu: ../x}", "compiler.static_cpu"),
        ("qemu_cpu: max,file=/etc/passwd", "qemu_cpu"),
        ("qemu_cpu: -plugin", "qemu_cpu"),
        ("baselines: {openblas: {LD_PRELOAD: /tmp/evil.so}}", "the variable 'LD_PRELOAD' is not admitted"),
        ("baselines: {openblas: {OMP_TOOL_LIBRARIES: /tmp/evil.so}}", "'OMP_TOOL_LIBRARIES' is not admitted"),
        ("baselines: {openblas: {PATH: x}}", "'PATH' is not admitted"),
        ("baselines: {openblas: {OPENBLAS_CORETYPE: ../../x}}", "OPENBLAS_CORETYPE: expected a plain word"),
        ("calibration: /etc/passwd", "key 'calibration': expected the name of a .yaml file beside"),
        ("calibration: ../../../etc/passwd.yaml", "key 'calibration'"),
        ("primitives: [../../../etc/passwd]", "unknown primitive set"),
        ("vlens: [1000000000]", "vlens"),
        ("registers: 9223372036854775807", "registers"),
        ("vlens: [" + "128, " * 1000 + "128]", "vlens"),
        ("caches: [{size: 4611686018427387904, ways: 1}]", "caches"),
        ("parent: mine", "expected no cycle"),
        ("parent: ../mine", "unknown platform"),
    ],
)
def test_a_platform_that_reaches_out(tmp_path: Path, text: str, says: str) -> None:
    head = PLATFORM.replace("parent: generic\n", "") if text.startswith("parent") else PLATFORM
    text = f"{head}{text}\n"
    model = "model: {memory: {}}\n" if "calibration" in text else ""
    parent = text.replace("generic", "rvv") if model else text
    assert says in refused(tmp_path, parent)


PRIMITIVES = """\
schema: 1
name: mine
description: a test
types:
  f32: {element: float, vector: float, predicate: int, lanes: "1"}
primitives:
  splat: {args: [s, vl], returns: vec, c: "($s)", meaning: MEANING}
"""
MEANINGS = [
    "np.f2py.subprocess.run(['id'])",
    "np.lib.npyio.os.system('id')",
    "np.fromfile('/etc/passwd')",
    "np.load('/etc/passwd')",
    "np.zeros(vl).tofile('/tmp/x')",
    "np.full(vl, s).__class__.__mro__",
    "s.__init__.__globals__",
    "().__class__.__base__.__subclasses__()",
    "(lambda: s)()",
    "[s for s in v]",
    "__import__('os').system('id')",
    "open('/etc/passwd').read()",
    "print(s)",
    "f'{s.__class__}'",
    "np",
    "np.T",
    "np.nan",
    "np.exp",
    "np.inf.real",
    "np['zeros'](vl)",
    "(np).zeros(vl)[np]",
    "np.full(vl, s, dtype=s)",
    "np.abs(*v)",
    "np.sum(**v)",
    "s ** s ** s",
    "1 << 99999999",
    "'x' * 99999999",
    "10 ** 9",
    "999999999999999999999999",
    "(x := s)",
    "s if s else s",
    "s and s",
    "s < s",
    "~s",
    "v[None]",
    "{s}",
    "await s",
    "yield s",
    "True",
    "1.5",
    "1j",
    "b'x'",
    "...",
    "s @ s",
    "s; s",
    "",
    "\x00",
    "unknown",
    "np.zeros(vl" + ")" * 99,
    "s + " * 200 + "s",
]


@pytest.mark.parametrize("said", MEANINGS)
def test_a_meaning_that_is_a_program(tmp_path: Path, said: str) -> None:
    (tmp_path / "primitives").mkdir()
    (tmp_path / "primitives" / "mine.yaml").write_text(PRIMITIVES.replace("MEANING", json.dumps(said)))
    with pytest.raises(SpecError) as caught:
        primitives.load("mine", (tmp_path,))
    assert "primitives.splat.meaning" in str(caught.value)


@pytest.mark.parametrize(
    "said",
    [
        "np.zeros(1099511627775)",
        "np.zeros(0 - 1)",
        "np.zeros(vl * vl * vl * vl * vl)",
        "np.concatenate([np.zeros(200000), np.zeros(200000)])",
        "s[:vl]",
        "np.ones(vl)[s]",
        "np.ones(vl)[vl * 99]",
        "vl // 0",
        "vl / 0",
        "np.ldexp(vl, 1)",
        "np.exp(None)",
        "np.nanmax(None)",
        "vl % (vl - vl)",
        "np.full(vl, s, vl)",
        "None + 1",
        "-None",
        "np.roll(np.ones(vl), 1, 7)",
        "vl" + " * vl" * 50,
    ],
)
def test_a_meaning_that_has_no_value(said: str) -> None:
    with pytest.raises(SpecError, match="cannot be evaluated"):
        meaning.parse(said).value({"vl": 1000, "s": object()})


def test_a_set_with_endless_lanes(tmp_path: Path) -> None:
    (tmp_path / "primitives").mkdir()
    text = PRIMITIVES.replace("MEANING", '"np.full(vl, s)"').replace('lanes: "1"', 'lanes: "9 * 9 * 9 * 9 * 9"')
    (tmp_path / "primitives" / "mine.yaml").write_text(text)
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "mine.yaml").write_text(PLATFORM + "primitives: [mine]\n")
    with pytest.raises(SpecError, match="gives 59049 lanes"):
        platforms.load("mine", (tmp_path,)).lanes("f32", {}, 128)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"compiler": {"flags": ["-fplugin=x.so"]}}, "is not admitted"),
        ({"baselines": {"openblas": {"LD_PRELOAD": "x"}}}, "is not admitted"),
        ({"qemu_cpu": "max,file=/x"}, "qemu_cpu"),
        ({"calibration": "/etc/passwd"}, "unknown key 'calibration'"),
        ({"parent": "rvv"}, "unknown key 'parent'"),
        ({"probe": True}, "unknown key 'probe'"),
    ],
)
def test_a_platform_that_travels_is_held_against_the_same(
    tmp_path: Path, change: dict[str, object], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "own"
    (folder / "platforms").mkdir(parents=True)
    (folder / "platforms" / "mine.yaml").write_text(PLATFORM)
    from tensorop.specs import yamlfile, yamltext

    whole = yamltext.parse(platforms.load("mine", (folder,)).whole, "whole")
    for key, value in change.items():
        whole[key] = {**whole[key], **value} if isinstance(value, dict) and isinstance(whole.get(key), dict) else value
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"schema": 2, "plugins": {"platforms/mine.yaml": yamlfile.dump(whole)}}))
    with pytest.raises(SpecError, match=says):
        plugin_record.reopened(manifest, ())
    assert not (tmp_path / "cache" / "carried").exists()


@pytest.mark.parametrize("name", ["tuners/x.py", "platforms/x.py", "templates/gemm/reference.py", "platforms/a/b.yaml"])
def test_no_python_travels(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path / "cache"))
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"schema": 2, "plugins": {name: "print('here')"}}))
    with pytest.raises(SpecError, match="expected platforms/NAME"):
        plugin_record.reopened(manifest, ())


def test_many_keys_are_few_lines(tmp_path: Path) -> None:
    said = refused(tmp_path, PLATFORM + "".join(f"k{number}: 1\n" for number in range(1000)))
    assert "unknown key 'k19'" in said
    assert said.endswith("980 faults more")


def test_a_folder_of_plugins_is_small_and_its_names_are_printed(tmp_path: Path) -> None:
    folder = tmp_path / "platforms"
    folder.mkdir()
    for name in ("a\nb.yaml", "\x1b[2J.yaml", "mine.yaml"):
        (folder / name).write_text("x")
    found = catalog.names("platforms", (tmp_path,))
    assert "mine" in found
    assert all(name.isprintable() for name in found)
    for number in range(4096):
        (folder / f"p{number}.yaml").touch()
    for look in (lambda: catalog.names("platforms", (tmp_path,)), lambda: platforms.load("zz", (tmp_path,))):
        with pytest.raises(SpecError, match="expected a folder of plug-ins with at most 4096 files"):
            look()


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"primitives/x.yaml": "a: '\ud800'"}, "primitives/x.yaml, line 1: .*invalid Unicode"),
        ({"primitives/x.yaml": "[" * 4000}, "primitives/x.yaml, line 1: nested more than 32 deep"),
        ({f"primitives/{'x' * 200}.yaml": "a: 1"}, "expected platforms/NAME"),
        ({f"primitives/x{number}.yaml": "a: 1" for number in range(65)}, "expected at most 64 files, got 65"),
    ],
)
def test_what_travels_is_read_before_it_is_written(
    told: dict[str, str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path / "cache"))
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"schema": 2, "plugins": told}))
    with pytest.raises(SpecError, match=says):
        plugin_record.reopened(manifest, ())
    assert not (tmp_path / "cache").exists()

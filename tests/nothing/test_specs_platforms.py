"""Platform files: what ships, inheritance, the probe, and every way a file can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorop.errors import SpecError, UsageError
from tensorop.model.architecture import ARCHITECTURES, host_arch
from tensorop.specs import catalog, native, platforms

SHIPPED = ("avx2", "avx512", "cortex-a53", "generic", "native", "neon", "rvv", "spacemit-k1")


def write(folder: Path, name: str, text: str) -> tuple[Path, ...]:
    """A platform file in a user's plug-in folder."""
    (folder / "platforms").mkdir(exist_ok=True)
    (folder / "platforms" / f"{name}.yaml").write_text(text)
    return (folder,)


def child(name: str = "mine", *lines: str, parent: str = "rvv") -> str:
    return "\n".join(["schema: 1", f"name: {name}", f"parent: {parent}", "description: a test", *lines]) + "\n"


def test_the_shipped_ones_load() -> None:
    assert set(SHIPPED) <= set(catalog.names("platforms"))
    for name in SHIPPED:
        platform = platforms.load(name)
        assert platform.name == platform.lineage[0] == name
        assert platform.lineage[-1] == "generic"
        assert platform.caches["l1"].size < platform.caches["l2"].size
        assert min(platform.verify_vlens) >= (platform.fixed_vlen or 0)


@pytest.mark.parametrize("name", SHIPPED)
def test_one_cpu_string_an_architecture(name: str) -> None:
    """zig builds libc anew for each, and the harness is linked with the table's."""
    compiler = platforms.load(name).compiler
    target = ARCHITECTURES[platforms.load(name).arch]
    assert (compiler.static_target, compiler.static_cpu) == (target.static_triple, target.static_cpu)


def test_a_child_keeps_what_it_does_not_say() -> None:
    k1, rvv = platforms.load("spacemit-k1"), platforms.load("rvv")
    assert k1.lineage == ("spacemit-k1", "rvv", "generic")
    assert (k1.runner, k1.qemu_cpu, k1.primitives) == (rvv.runner, rvv.qemu_cpu, rvv.primitives)
    assert k1.compiler.flags == rvv.compiler.flags
    assert k1.compiler.arch_flags != rvv.compiler.arch_flags
    assert k1.caches["l2"] != rvv.caches["l2"]
    assert "l3" not in k1.caches


def test_the_baseline_fits_the_vlen() -> None:
    rvv = platforms.load("rvv")
    chosen = {vlen: rvv.baseline_choice("openblas", vlen, "f32") for vlen in (128, 256, 512)}
    cores = [choice.environment["OPENBLAS_CORETYPE"] for choice in chosen.values()]
    assert cores == ["RISCV64_ZVL128B", "RISCV64_ZVL256B", "RISCV64_ZVL128B"]  # ZVL256B is wrong at 512
    assert "no right kernel" in chosen[512].remark
    assert "no right kernel" in rvv.baseline_choice("openblas", 1024, "f64").remark
    assert rvv.baseline_choice("openblas@0.3.29", 256, "f32") == chosen[256]
    assert rvv.baseline_choice("blis", 256, "f32").environment == {}


@pytest.mark.parametrize(
    ("name", "f64"), [("x280", "RISCV64_ZVL128B"), ("c908", "RISCV64_GENERIC"), ("sg2044", "RISCV64_ZVL128B")]
)
def test_a_core_of_its_own_has_its_own_baseline_by_dtype(name: str, f64: str) -> None:
    """rvv's in-order cores have the scalar one in f64; of these C908 alone has, by its own measurement."""
    mine = platforms.load(name)
    chosen = {dtype: mine.baseline_choice("openblas", mine.vlens[0], dtype).environment for dtype in ("f32", "f64")}
    assert chosen == {"f32": {"OPENBLAS_CORETYPE": "RISCV64_ZVL128B"}, "f64": {"OPENBLAS_CORETYPE": f64}}


def test_the_baseline_fits_the_dtype(tmp_path: Path) -> None:
    first, second = "{environment: {BLIS_ARCH_TYPE: a}}", "{dtypes: [f64], environment: {BLIS_ARCH_TYPE: b}}"
    lines = ("baselines:", "  blis:", f"    - {first}", f"    - {second}")
    mine = platforms.load("mine", write(tmp_path, "mine", child("mine", *lines)))
    found = [mine.baseline_choice("blis", 128, dtype).environment["BLIS_ARCH_TYPE"] for dtype in ("f32", "f64")]
    assert found == ["a", "b"]


def test_baselines_are_ascending_in_vlen_whatever_the_file(tmp_path: Path) -> None:
    first, second = "{vlen_min: 256, environment: {OPENBLAS_CORETYPE: b}}", "{environment: {OPENBLAS_CORETYPE: a}}"
    lines = ("baselines:", "  openblas:", f"    - {first}", f"    - {second}")
    mine = platforms.load("mine", write(tmp_path, "mine", child("mine", *lines)))
    found = [mine.baseline_choice("openblas", vlen, "f32").environment["OPENBLAS_CORETYPE"] for vlen in (64, 255, 256)]
    assert found == ["a", "a", "b"]


def test_a_users_file_stands_before_ours(tmp_path: Path) -> None:
    plugins = write(tmp_path, "rvv", child("rvv", parent="generic").replace("a test", "the user's"))
    assert platforms.load("rvv", plugins).description == "the user's"
    assert platforms.load("rvv").description != "the user's"


def test_native_is_the_most_demanding_one_that_fits() -> None:
    known = [platforms.load(n) for n in SHIPPED if n != "native"]
    avx512 = next(p for p in known if p.name == "avx512")
    assert native.best(known, "x86_64", set(avx512.requires)).name == "avx512"
    assert native.best(known, "x86_64", set(avx512.requires) - {"avx512vl"}).name == "avx2"
    assert native.best(known, "x86_64", set()).name == "generic"
    assert native.best(known, "aarch64", {"fp", "asimd"}).name == "neon"
    assert native.best(known, "riscv64", set("imafdcv") | {"zba", "zbb"}).name == "rvv"  # no flag tells the VLEN
    with pytest.raises(UsageError, match="no platform file matches this machine"):
        native.best(known, "sparc64", set())


def test_native_is_this_machine() -> None:
    here = platforms.load("native")
    assert here.arch == host_arch()
    assert here.runner == "native"
    assert native.missing_flags(here) == ()
    assert here.lineage[:1] == ("native",)
    assert here.lineage[1] in SHIPPED


def test_missing_flags_are_named() -> None:
    avx512 = platforms.load("avx512")
    if host_arch() == "x86_64":
        assert native.missing_flags(avx512, {"avx2"})[0] == "avx512f"
    other = platforms.load("neon" if host_arch() == "x86_64" else "avx2")
    assert native.missing_flags(other) == (other.arch,)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx2 fma\n", {"fpu", "avx2", "fma"}),
        ("Features\t: fp asimd crc32\n", {"fp", "asimd", "crc32"}),
        ("isa\t\t: rv64imafdcv_zba_zbb_zvl256b\n", {*"imafdcv", "zba", "zbb", "zvl256b"}),
        ("nothing here\n", set()),
    ],
)
def test_cpu_flags(tmp_path: Path, text: str, flags: set[str]) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert native.cpu_flags(tmp_path / "cpuinfo") == flags
    assert native.cpu_flags(tmp_path / "absent") == frozenset()


def test_caches_from_sysfs(tmp_path: Path) -> None:
    def index(number: int, **fields: str) -> None:
        (tmp_path / f"index{number}").mkdir()
        for key, value in fields.items():
            (tmp_path / f"index{number}" / key).write_text(value + "\n")

    line = {"coherency_line_size": "64"}
    index(0, level="1", type="Data", size="48K", ways_of_associativity="12", shared_cpu_list="0", **line)
    index(1, level="1", type="Instruction", size="32K", ways_of_associativity="8", shared_cpu_list="0", **line)
    index(2, level="2", type="Unified", size="1M", ways_of_associativity="16", shared_cpu_list="0,4", **line)
    index(3, level="3", type="Unified", size="32768K", ways_of_associativity="0", shared_cpu_list="0-3,8-11", **line)
    index(4, level="2", type="Unified", size="broken")
    index(5, level="4", type="Unified", size="1000K", ways_of_associativity="16", shared_cpu_list="0-63", **line)
    assert native.caches(tmp_path) == {
        "l1": {"size": 48 << 10, "ways": 12, "line": 64, "shared_by": 1},
        "l2": {"size": 1 << 20, "ways": 16, "line": 64, "shared_by": 2},
        "l3": {"size": 32 << 20, "ways": 524288, "line": 64, "shared_by": 8},
        "l4": {"size": 1000 * 1024, "ways": 16, "line": 64, "shared_by": 64},
    }
    assert native.caches(tmp_path / "absent") == {}


def test_a_probing_file_may_say_little_else(tmp_path: Path) -> None:
    text = "schema: 1\nname: here\ndescription: mine\nprobe: true\ntunables: {mr_vectors: [1]}\n"
    assert platforms.load("here", write(tmp_path, "here", text)).tunables["mr_vectors"] == (1,)
    with pytest.raises(SpecError, match=r"here.yaml: unknown key 'arch'.*tunables"):
        platforms.load("here", write(tmp_path, "here", text + "arch: riscv64\n"))
    with pytest.raises(SpecError, match=r"here.yaml: key 'probe'.*True.*got False"):
        platforms.load("here", write(tmp_path, "here", text.replace("true", "false")))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("regsters: 32", r"unknown key 'regsters'; did you mean 'registers'\? expected one of: .*verify_vlens"),
        ("compiler: {cpu: x}", r"unknown key 'compiler.cpu'; expected one of: arch_flags, flags, shared_target"),
        ("caches: [{size: 1024, ways: 4, sizes: 3}]", r"unknown key 'caches.0.sizes'; did you mean 'size'\?"),
        ("caches: [{size: 1024}]", r"mine.yaml: missing key 'caches.0.ways'"),
        ("caches: {l1: {size: 1024, ways: 4}}", r"key 'caches': expected a list of levels, the innermost first"),
        ("caches: []", r"key 'caches'.*at least 1"),
        ("caches: [{size: 0, ways: 4}]", r"key 'caches.0.size': expected more than 0, got 0"),
        ("caches: [{size: 32K, ways: 4}]", r"key 'caches.0.size': expected an integer, got '32K'"),
        (
            "caches: [{size: 65536, ways: 7}]",
            r"key 'caches.0': expected ways x sets x line = size.*7 ways.*65536 bytes",
        ),
        ("registers: many", r"key 'registers': expected an integer.*got 'many'"),
        ("registers: true", r"key 'registers': expected an integer.*got True"),
        ("vlens: 256", r"key 'vlens'.*got 256"),
        ("vlens: []", r"key 'vlens'.*at least 1"),
        ("vlens: [-128]", r"key 'vlens.0': expected more than 0, got -128"),
        ("fixed_vlen: 256", r"mine.yaml: vlens and verify_vlens are at least fixed_vlen \(256\)"),
        ("arch: mips", r"compiler.static_target: expected mips-linux-musl or .* got 'riscv64-linux-musl'"),
        ("arch: ../mips", r"key 'arch': expected text of the form.* got '../mips'"),
        ("runner: qmeu", r"key 'runner': unknown backend 'qmeu'\ndid you mean qemu\?.*known: cuda, native, null, qemu"),
        ("schema: 2", "line 5: key 'schema' appears twice"),
        ("baselines: {openblas: OPENBLAS_CORETYPE}", r"key 'baselines.openblas'.*got 'OPENBLAS_CORETYPE'"),
        ("baselines: {openblas: {OPENBLAS_CORETYPE: 3}}", r"key 'baselines.openblas.OPENBLAS_CORETYPE'.*got 3"),
        ("baselines: {openblas: []}", r"key 'baselines.openblas'.*at least 1"),
        ("tunables: {mr_vectors: 3}", r"key 'tunables.mr_vectors'.*got 3"),
        ("primitives: [rvw]", r"key 'primitives': unknown primitive set 'rvw'\ndid you mean rvv\?.*known: avx2"),
        ("vlens: [256, 128, 256]", r"each of vlens stands once, got \[256, 128, 256\]"),
        ("vlens: [2048]", r"tuned: \[2048\] are not in verify_vlens \[128, 256, 512, 1024\]"),
        ("vlens: [512]\nverify_vlens: [128]", r"tuned: \[512\] are not in verify_vlens \[128\]"),
        ("primitives: []", r"key 'primitives'.*at least 1"),
        ("vlens: [128", r"mine.yaml, line \d+: not readable as YAML"),
        ("name: other", "appears twice"),
    ],
)
def test_a_broken_file_says_file_key_and_what_was_expected(tmp_path: Path, line: str, says: str) -> None:
    plugins = write(tmp_path, "mine", child("mine", line))
    with pytest.raises(SpecError, match=f"(?s){says}") as caught:
        platforms.load("mine", plugins)
    assert "mine.yaml" in str(caught.value)
    assert caught.value.exit_status == 2


def test_what_follows_from_another_fault_is_not_said(tmp_path: Path) -> None:
    plugins = write(tmp_path, "mine", child("mine", "caches: [{size: 24 KiB, ways: 6, line: 64}]"))
    with pytest.raises(SpecError, match=r"'caches\.0\.size': expected an integer, got '24 KiB'") as caught:
        platforms.load("mine", plugins)
    assert str(caught.value).count("mine.yaml") == 1


@pytest.mark.parametrize("key", ["schema", "description", "arch", "primitives", "compiler", "caches", "vlens"])
def test_a_root_must_say_everything(tmp_path: Path, key: str) -> None:
    lines = {
        "schema": "1",
        "name": "mine",
        "description": "a test",
        "arch": "x86_64",
        "primitives": "[scalar]",
        "registers": "16",
        "vlens": "[64]",
        "runner": "native",
        "compiler": "{static_target: x86_64-linux-musl, static_cpu: x86_64_v2, shared_target: x86_64-linux-gnu.2.31}",
        "caches": "[{size: 1024, ways: 2}]",
    }
    whole = "".join(f"{k}: {v}\n" for k, v in lines.items())
    assert platforms.load("mine", write(tmp_path, "mine", whole)).lineage == ("mine",)
    torn = "".join(f"{k}: {v}\n" for k, v in lines.items() if k != key)
    with pytest.raises(SpecError, match=rf"mine\.yaml: missing key '{key}'"):
        platforms.load("mine", write(tmp_path, "mine", torn))


def test_names_that_do_not_hold(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown platform 'rvw'\ndid you mean rvv.*known: avx2"):
        platforms.load("rvw")
    for name in ("", "..", "../platforms/rvv", "a/b"):
        with pytest.raises(UsageError, match="unknown platform"):
            platforms.load(name)
    with pytest.raises(SpecError, match=r"mine.yaml: key 'parent': unknown platform 'rvw'\ndid you mean rvv"):
        platforms.load("mine", write(tmp_path, "mine", child(parent="rvw")))
    with pytest.raises(SpecError, match=r"mine.yaml: key 'parent': expected the name of a platform, got 3"):
        platforms.load("mine", write(tmp_path, "mine", child(parent="3")))
    with pytest.raises(SpecError, match=r"mine.yaml: key 'name': expected 'mine' as the file is called, got 'yours'"):
        platforms.load("mine", write(tmp_path, "mine", child("yours")))


def test_a_platform_of_the_machine_it_runs_on_is_no_parent(tmp_path: Path) -> None:
    plugins = write(tmp_path, "mine", child(parent="native"))
    for name in ("mine", "native"):
        with pytest.raises(SpecError, match=r"mine\.yaml: key 'parent': 'native' stands for the machine") as refused:
            platforms.load(name, plugins)
        assert "tensorop platforms show native" in (refused.value.hint or "")


def test_a_plugin_folder_that_is_named_one_level_too_deep(tmp_path: Path) -> None:
    write(tmp_path, "mine", child())
    with pytest.raises(UsageError, match="unknown platform 'mine'") as refused:
        platforms.load("mine", (tmp_path / "platforms",))
    assert f"{tmp_path / 'platforms'}: no folder platforms/ in it" in (refused.value.hint or "")


def test_parents_in_a_circle(tmp_path: Path) -> None:
    write(tmp_path, "one", child("one", parent="two"))
    plugins = write(tmp_path, "two", child("two", parent="one"))
    with pytest.raises(SpecError, match=r"one.yaml: key 'parent': expected no cycle, got one -> two -> one"):
        platforms.load("one", plugins)
    with pytest.raises(SpecError, match="own -> own"):
        platforms.load("own", write(tmp_path, "own", child("own", parent="own")))


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words\n", "3\n"])
def test_a_file_that_is_no_mapping(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError, match=r"mine.yaml: expected a mapping of keys, got (NoneType|list|str|int)"):
        platforms.load("mine", write(tmp_path, "mine", text))


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    plugins = write(tmp_path, "mine", "")
    (tmp_path / "platforms/mine.yaml").write_bytes(b"name: \xff\xfe\n")
    with pytest.raises(SpecError, match=r"mine.yaml: .*UTF-8"):
        platforms.load("mine", plugins)


@pytest.mark.parametrize("text", ["{1: 2, [1]: 3}: x\n", "a: !!python/object/apply:os.system [true]\n", "a: &a [*a]\n"])
def test_yaml_that_is_more_than_data(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError, match=r"mine\.yaml"):
        platforms.load("mine", write(tmp_path, "mine", text))

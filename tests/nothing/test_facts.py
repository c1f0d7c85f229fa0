"""What machines say of themselves, read; and the platform written from it."""

import pytest

from tensorop.commands import probe_platform
from tensorop.errors import BoardError, JobError, UsageError
from tensorop.measure import boards
from tensorop.runners import facts
from tensorop.specs import catalog, platforms

K1 = """@uname
riscv64
6.6.63
@libc
glibc 2.39
@online
8
@page
4096
@governor
performance
@load
0.10 0.20 0.30 1/100 42
@sysfs
index0 level 1
index0 type Data
index0 size 32K
index0 ways_of_associativity 4
index0 coherency_line_size 64
index0 shared_cpu_list 0
index1 level 1
index1 type Instruction
index1 size 32K
index2 level 2
index2 type Unified
index2 size 512K
index2 ways_of_associativity 16
index2 coherency_line_size 64
index2 shared_cpu_list 0-3
@getconf
@tree
@cpuinfo
processor\t: 0
model name\t: Spacemit(R) X60
isa\t\t: rv64imafdcv_zicbop_zba_zbb
uarch\t\t: spacemit,x60
mvendorid\t: 0x710

processor\t: 1
model name\t: Spacemit(R) X60
isa\t\t: rv64imafdcv_zicbop_zba_zbb
uarch\t\t: spacemit,x60
mvendorid\t: 0x710
@end
"""
RK3399 = """@uname
aarch64
5.10.0
@getconf
LEVEL1_DCACHE_SIZE 32768
LEVEL1_DCACHE_ASSOC 4
LEVEL1_DCACHE_LINESIZE 64
LEVEL2_CACHE_SIZE 0
@tree
l1 size 00008000
@cpuinfo
processor\t: 0
Features\t: fp asimd evtstrm crc32
CPU implementer\t: 0x41
CPU part\t: 0xd03

processor\t: 4
Features\t: fp asimd evtstrm crc32
CPU implementer\t: 0x41
CPU part\t: 0xd08

Hardware\t: Rockchip RK3399
@end
"""


def known():
    names = [n for n in catalog.names("platforms") if not platforms.is_probed(n)]
    return [platforms.load(n) for n in names]


def test_a_board_with_sysfs():
    core = facts.parse(K1, {"vlen": "256", "page": "4096", "cores": "8", "clock": "1599"})
    assert (core.arch, core.vlen, core.cores, core.clock_mhz) == ("riscv64", 256, 8, 1599)
    assert core.caches == {
        "l1": {"size": 32768, "ways": 4, "line": 64, "shared_by": 1},
        "l2": {"size": 524288, "ways": 16, "line": 64, "shared_by": 4},
    }
    assert {"v", "zba", "zbb"} <= core.flags
    assert core.matching({"uarch": "spacemit,x60", "absent": "x"}) == (0, 1)


def test_a_board_with_two_kinds_of_core():
    core = facts.parse(RK3399, {})
    assert core.matching({"CPU part": "0xd08"}) == (4,)
    assert core.processors[0]["Hardware"] == "Rockchip RK3399"
    assert core.caches == {"l1": {"size": 32768, "ways": 4, "line": 64}}
    assert core.vlen is None


def test_the_letter_v_alone_is_no_vector_extension():
    """As a core of the draft 0.7.1 answers: the kernel prints the letter, and vlenb cannot be read."""
    told = {"page": "4096", "cores": "8"}
    core = facts.parse(K1, told)
    assert core.vlen is None
    assert "v" not in core.flags
    assert "zba" in core.flags
    assert "v" in facts.parse(K1, {}).flags  # nothing was executed
    with pytest.raises(UsageError, match="no platform file matches this riscv64 machine"):
        probe_platform.parent_of(core, known())
    for name in ("rvv", "spacemit-k1"):
        with pytest.raises(JobError, match=f"platform '{name}' needs the RISC-V V extension 1.0"):
            boards.on_core(platforms.load(name), told)
    assert boards.on_core(platforms.load("rvv"), {"vlen": "256"}).vlens == (256,)
    assert boards.on_core(platforms.load("spacemit-k1"), {"vlen": "256"}) == platforms.load("spacemit-k1")


def test_a_device_tree():
    said = "@uname\nriscv64\n6.1\n@tree\nl1 size 00008000\nl1 sets 00000080\nl1 block-size 00000040\n@cpuinfo\n@end\n"
    assert facts.parse(said, {}).caches == {"l1": {"size": 32768, "ways": 4, "line": 64}}


def test_no_shell_is_said():
    with pytest.raises(BoardError, match="no usable shell"):
        facts.parse("what?", {})


@pytest.mark.parametrize(
    ("said", "told", "parent"),
    [(K1, {"vlen": "256"}, "spacemit-k1"), (K1, {"vlen": "128"}, "rvv"), (RK3399, {"vlen": "128"}, "cortex-a53")],
)
def test_the_platform_written_loads(tmp_path, said, told, parent):
    core = facts.parse(said, told)
    found = probe_platform.parent_of(core, known())
    assert found.name == parent
    text = "\n".join(probe_platform._lines(core, found, "mine", native=False)) + "\n"
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "mine.yaml").write_text(text)
    loaded = platforms.load("mine", (tmp_path,))
    assert loaded.lineage[:2] == ("mine", parent)
    assert loaded.vlens == (int(told["vlen"]),)
    assert loaded.caches["l1"].size == 32768
    if said is RK3399:
        assert "# l2: not read" in text


def test_a_machine_nobody_knows():
    with pytest.raises(UsageError, match="no platform file matches"):
        probe_platform.parent_of(facts.parse("@uname\ns390x\n6\n@end\n", {}), known())

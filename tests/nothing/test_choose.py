"""Runners by the user's word."""

from dataclasses import replace

import pytest

from tensorop import errors
from tensorop.backends import reach, ssh, start
from tensorop.model.architecture import ARCHITECTURES, host_arch
from tensorop.runners.ssh import Ssh
from tensorop.specs import platforms

FIGURES = {"ssh://a": (100.0, 9000.0), "ssh://b": (104.0, 9000.0), "ssh://c": (104.0, 9500.0)}
RVV = platforms.load("rvv")


def test_each_word_has_its_runner():
    assert start(RVV).name == "qemu"
    assert start(RVV, "null").name == "null"
    assert start(RVV, "ssh://me@board:2222") == Ssh("me@board", ("-p", "2222"))
    assert start(replace(RVV, arch=host_arch()), "native").name == "native"


@pytest.mark.parametrize("word", ["qem", "ssh://", "ssh://-oProxyCommand=x", "ssh://h:x", "native", "ssh", "null://x"])
def test_other_words_are_usage_errors(word):
    other = next(arch for arch in ARCHITECTURES if arch != host_arch())
    with pytest.raises(
        errors.UsageError,
        match=r"unknown runner|is not an address|cannot run natively|needs an address|takes no address",
    ):
        start(replace(RVV, arch=other), word)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("ssh://a,ssh://a/", "lists ssh://a twice"),
        ("ssh://a,", "--runner ssh:// is not an address"),
        ("ssh://a,qemu:x", "is not an address"),
    ],
)
def test_several_boards_are_named_before_any_is_asked(word, said):
    with pytest.raises(errors.UsageError, match=said):
        reach(RVV, word)


def test_figures_of_boards_that_differ_are_not_mixed():
    def agree(names, cores=("X60", 256)):
        ssh.agree(names, [list(cores)] * (len(names) - 1) + [["X60", 256]], [FIGURES[name] for name in names])

    agree(["ssh://a", "ssh://b"])
    with pytest.raises(
        errors.BoardError, match=r"ssh://a and ssh://c differ by 6% .* \(9000 and 9500 ns for 1048576 elements\)"
    ):
        agree(["ssh://a", "ssh://b", "ssh://c"])
    with pytest.raises(errors.BoardError, match=r"ssh://a is .*128.* and ssh://b is .*256"):
        agree(["ssh://a", "ssh://b"], ("X60", 128))


def test_a_board_that_is_lost_is_left_out_while_there_are_others():
    pool = ssh.BoardPool(["a", "b"])
    for _ in range(2):  # the last one stays, and may be back
        with pytest.raises(errors.BoardError), pool.one():
            raise errors.BoardError("gone")
        assert pool.size == 1
    with pool.one() as board:
        assert board == "b"

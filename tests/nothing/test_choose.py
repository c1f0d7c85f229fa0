"""Runners by the user's word."""

from dataclasses import replace

import pytest

from tensorop import errors
from tensorop.backends import start
from tensorop.provision import targets
from tensorop.runners.ssh import Ssh
from tensorop.specs import platforms

RVV = platforms.load("rvv")


def test_each_word_has_its_runner():
    assert start(RVV).name == "qemu"
    assert start(RVV, "null").name == "null"
    assert start(RVV, "ssh://me@board:2222") == Ssh("me@board", ("-p", "2222"))
    assert start(replace(RVV, arch=targets.host_arch()), "native").name == "native"


@pytest.mark.parametrize("word", ["qem", "ssh://", "ssh://-oProxyCommand=x", "ssh://h:x", "native", "ssh", "null://x"])
def test_other_words_are_usage_errors(word):
    other = next(arch for arch in targets.TARGETS if arch != targets.host_arch())
    with pytest.raises(errors.UsageError, match=r"unknown runner|names no board|cannot run natively|names no target"):
        start(replace(RVV, arch=other), word)

"""Runners by the user's word."""

from dataclasses import replace

import pytest

from tensorop import errors
from tensorop.provision import targets
from tensorop.runners.choose import runner_for
from tensorop.runners.ssh import Ssh
from tensorop.specs import platforms

RVV = platforms.load("rvv")


def test_each_word_has_its_runner():
    assert runner_for(RVV).name == "qemu"
    assert runner_for(RVV, "null").name == "null"
    assert runner_for(RVV, "ssh://me@board:2222") == Ssh("me@board", ("-p", "2222"))
    assert runner_for(replace(RVV, arch=targets.host_arch()), "native").name == "native"


@pytest.mark.parametrize("word", ["qem", "ssh://", "ssh://-oProxyCommand=x", "ssh://h:x", "native"])
def test_other_words_are_usage_errors(word):
    other = next(arch for arch in targets.TARGETS if arch != targets.host_arch())
    with pytest.raises(errors.UsageError, match=r"unknown runner|names no board|cannot run natively"):
        runner_for(replace(RVV, arch=other), word)

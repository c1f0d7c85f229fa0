"""A runner by the word a user gives for it."""

from __future__ import annotations

from tensorop import errors
from tensorop.model.platform import Platform
from tensorop.provision import targets
from tensorop.runners.base import Runner
from tensorop.runners.native import Native
from tensorop.runners.null import Null
from tensorop.runners.qemu import Qemu
from tensorop.runners.ssh import Ssh

WORDS = ("native", "qemu", "ssh://host", "null")


def runner_for(platform: Platform, word: str | None = None) -> Runner:
    """The platform's own runner, or the one called native, qemu, ssh://[user@]host[:port] or null.

    Raises UsageError for another word, and for `native` where the platform is of another architecture.
    """
    word = word or platform.runner
    if word.startswith("ssh://"):
        return board(word)
    if word == "null":
        return Null()
    if word == "qemu":
        vlen = platform.vlens[0] if "{vlen}" in platform.qemu_cpu else None
        return Qemu(platform.arch, platform.qemu_cpu, vlen)
    if word != "native":
        raise errors.unknown_name("runner", word, WORDS)
    if platform.arch != targets.host_arch():
        raise errors.UsageError(
            f"platform {platform.name} is {platform.arch} and cannot run natively on {targets.host_arch()}",
            hint="use --runner qemu, or --runner ssh://HOST with such a machine",
        )
    return Native()


def board(word: str) -> Ssh:
    """The board behind ssh://[user@]host[:port]. Raises UsageError for other words."""
    if not word.startswith("ssh://"):
        raise errors.UsageError(f"'{word}' names no board", hint="expected ssh://[user@]host[:port]")
    host, _, port = word.removeprefix("ssh://").rstrip("/").partition(":")
    # A host that begins with a dash would be read by ssh as an option.
    if not host or host.startswith("-") or (port and not port.isdigit()):
        raise errors.UsageError(f"'{word}' names no board", hint="expected ssh://[user@]host[:port]")
    return Ssh(host, ("-p", port) if port else ())

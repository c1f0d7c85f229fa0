"""Debian packages of any release and architecture, unpacked without root.

apt-get runs with a state folder, a sources list and a status file of its own, so it neither needs root nor touches
the system; it checks the release's signature against Debian's keyring and every package against the signed lists.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tensorop import errors, paths
from tensorop.model.architecture import architecture, host_arch
from tensorop.process import locks
from tensorop.provision import cache, pinned, process

PUBLIC_MIRROR = "http://deb.debian.org/debian"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def mirror() -> str:
    """The archive this machine's own apt uses, or Debian's public one.

    `apt-get indextargets` lists the configured archives whether or not their lists were fetched.
    """
    try:
        out = process.run(
            ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
            doing="reading apt's sources",
            hint="apt-get is needed to fetch Debian packages",
        )
    except errors.MissingTool:
        return PUBLIC_MIRROR
    for uri in out.split():
        if urlsplit(uri).path.rstrip("/").endswith("/debian"):
            return uri.rstrip("/")
    return PUBLIC_MIRROR


def _configure(state: Path, archive: str, suite: str, architecture: str) -> Path:
    """Writes apt's private configuration; the system's own apt.conf.d (a proxy, say) stays in force."""
    for sub in ("lists/partial", "cache/archives/partial", "preferences.d"):
        (state / sub).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    source = f"deb [arch={architecture} signed-by={KEYRING}] {archive} {suite} main\n"
    list_file = state / "sources.list"
    if not list_file.exists() or list_file.read_text() != source:
        list_file.write_text(source)
        shutil.rmtree(state / "lists")
        (state / "lists/partial").mkdir(parents=True)
    conf = state / "apt.conf"
    lines = [
        f'Dir::State "{state}";',
        f'Dir::State::lists "{state}/lists";',
        f'Dir::State::status "{state}/status";',
        f'Dir::Cache "{state}/cache";',
        f'Dir::Etc::sourcelist "{list_file}";',
        'Dir::Etc::sourceparts "-";',
        f'Dir::Etc::preferences "{state}/preferences";',
        f'Dir::Etc::preferencesparts "{state}/preferences.d";',
        f'APT::Architecture "{architecture}";',
        "#clear APT::Architectures;",
        f'APT::Architectures {{ "{architecture}"; }};',
        f'APT::Sandbox::User "{"root" if os.geteuid() == 0 else ""}";',
        'Acquire::Languages "none";',
        'APT::Update::Error-Mode "any";',
        'Acquire::Retries "2";',
        'Acquire::http::Timeout "20";',
        'Acquire::https::Timeout "20";',
        'Acquire::GzipIndexes "true";',
        'Dir::Cache::pkgcache "";',
        'Dir::Cache::srcpkgcache "";',
        "#clear APT::Update::Post-Invoke;",
        "#clear APT::Update::Post-Invoke-Success;",
    ]
    conf.write_text("\n".join(lines) + "\n")
    return conf


def download(names: Iterable[str], *, suite: str, architecture: str, into: Path, doing: str, hint: str) -> list[Path]:
    """Fetches packages (not their dependencies) into a folder, by their digests or else by signed lists; the files,
    sorted by name.

    Raises MissingTool where apt-get, Debian's keyring, the archive or a package cannot be had.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise errors.MissingTool(f"{doing}: apt-get and dpkg-deb are needed and this machine has none", hint=hint)
    if not KEYRING.is_file():
        raise errors.MissingTool(
            f"{doing}: Debian's keyring {KEYRING} is missing, so its archive cannot be trusted",
            hint="apt-get install debian-archive-keyring",
        )
    # A mirror need not carry every architecture or release; the public archive does.
    archives = list(dict.fromkeys((mirror(), PUBLIC_MIRROR)))
    names = list(names)
    if found := pinned.bring(names, archives, suite=suite, architecture=architecture, into=into):
        return found
    state = paths.cache_dir("apt", f"{suite}-{architecture}")
    with locks.held(state / "lock", "it fetches packages"):
        for archive in archives:
            conf = str(_configure(state, archive, suite, architecture))
            try:
                _fetch(state, conf, names, into, doing=doing, hint=hint)
                break
            except errors.MissingTool:
                if archive == archives[-1]:
                    raise
    return sorted(into.glob("*.deb"))


def _fetch(state: Path, conf: str, names: list[str], into: Path, *, doing: str, hint: str) -> None:
    """Downloads by the lists at hand, and by fresh ones when those name packages that a point release replaced."""
    hint = f"check the network and apt's sources, then: {hint}"
    apt = ["apt-get", "-q", "-c", conf]
    if any(state.glob("lists/*_Packages*")):
        try:
            process.run([*apt, "download", *names], doing=doing, hint=hint, cwd=into)
            return
        except errors.MissingTool:
            pass
    process.run([*apt, "update"], doing=f"{doing}: reading Debian's package list", hint=hint)
    process.run([*apt, "download", *names], doing=doing, hint=hint, cwd=into)


def unpacker(names: Iterable[str], *, suite: str, architecture: str, doing: str, hint: str) -> Callable[[Path], None]:
    """A filler for a cache entry: the named packages unpacked over one another below the entry's folder."""

    def fill(folder: Path) -> None:
        archives = folder / ".debs"
        archives.mkdir()
        files = download(names, suite=suite, architecture=architecture, into=archives, doing=doing, hint=hint)
        versions = []
        for file in files:
            process.run(["dpkg-deb", "-x", str(file), str(folder)], doing=f"unpacking {file.name}", hint=hint)
            fields = process.run(["dpkg-deb", "-W", str(file)], doing=f"reading {file.name}", hint=hint).split()
            versions.append(" ".join(fields[:2]))
        (folder / "packages.txt").write_text("\n".join(versions) + "\n")
        shutil.rmtree(archives)
        for merged in ("lib", "lib64", "bin"):
            if (folder / "usr" / merged).is_dir() and not (folder / merged).exists():
                (folder / merged).symlink_to(f"usr/{merged}")

    return fill


def entry(
    folder: Path,
    names: Iterable[str],
    *,
    suite: str,
    arch: str,
    what: str,
    piece: str,
    purpose: str,
    offline: bool | None,
) -> Path:
    """Packages unpacked into a cache entry of their own, fetched when absent. Raises as `cache.entry`, MissingTool.

    piece: what `python -m tensorop.provision` calls it.
    """
    doing, command = f"fetching {what}", cache.by_hand(piece, arch)
    fill = unpacker(names, suite=suite, architecture=architecture(arch).debian, doing=doing, hint=command)
    return cache.entry(folder, fill, what=what, command=command, offline=offline, purpose=purpose)


@dataclass(frozen=True)
class Tools:
    """Programs of this machine with the libraries they load, out of Debian's packages.

    packages: with all that the base system may lack; bin: the folder they are in; names: those that are kept.
    """

    kind: str
    what: str
    suite: str
    packages: tuple[str, ...]
    bin: str
    names: tuple[str, ...]
    purpose: str
    command: str
    megabytes: int = 0

    def path(self, name: str) -> Path:
        """The script that starts a program, whether or not it is there."""
        of_host = architecture(host_arch()).debian
        return cache.entry_path(self.kind, f"{self.suite}-{of_host}-{recipe(self.packages)}") / name

    def bring(self, name: str, *, offline: bool | None, hint: str) -> Path:
        """The script, its program fetched when absent. Raises MissingTool."""
        final, host, doing = self.path(name).parent, architecture(host_arch()), f"fetching {self.what}"
        unpack = unpacker(self.packages, suite=self.suite, architecture=host.debian, doing=doing, hint=hint)

        def fill(folder: Path) -> None:
            root = folder / "root"
            root.mkdir()
            unpack(root)
            for other in (root / self.bin).iterdir():
                if other.name not in self.names:
                    other.unlink()
            shutil.rmtree(root / "usr/share", ignore_errors=True)
            for kept in self.names:
                script = folder / kept
                script.write_text(_starter(f"{final}/root", self.bin, kept))
                script.chmod(0o755)

        cache.entry(
            final, fill, what=self.what, command=self.command, offline=offline, purpose=self.purpose,
            megabytes=self.megabytes,
        )  # fmt: skip
        return self.path(name)


def _starter(root: str, folder: str, name: str) -> str:
    """A script that starts an unpacked program with the unpacked libraries.

    Their path goes through the loader's argument and not through LD_LIBRARY_PATH, which an emulator's guest would
    inherit; what a shell adds to an empty environment is taken out again, so that the guest's stays as it was given.
    """
    host = architecture(host_arch())
    libraries = ":".join(f"{root}/{part}/{host.multiarch}" for part in ("usr/lib", "lib"))
    clean = "/usr/bin/env -u PWD -u OLDPWD -u SHLVL -u _"
    return f"#!/bin/sh\nexec {clean} {host.loader} --library-path '{libraries}' '{root}/{folder}/{name}' \"$@\"\n"


def recipe(names: Iterable[str]) -> str:
    """Eight characters that change with the list of packages, for the name of the entry they are unpacked into."""
    return hashlib.sha256(" ".join(names).encode()).hexdigest()[:8]


def version(folder: Path, package: str) -> str:
    """The version of a package unpacked by `unpacker`, as Debian writes it; empty when it is not there."""
    try:
        rows = [line.split() for line in (folder / "packages.txt").read_text().splitlines()]
    except OSError:
        return ""
    return next((row[1] for row in rows if row[0] == package), "")

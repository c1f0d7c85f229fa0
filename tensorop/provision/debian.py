"""Debian packages of any release and architecture, unpacked without root.

apt-get runs with its own state folder, sources list and status file, so it needs no root and does not change the
system. It checks the release's signature against Debian's keyring, and every package against the signed lists.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from tensorop import errors, paths
from tensorop.model.architecture import architecture, host_arch
from tensorop.process import locks
from tensorop.provision import cache, process

PUBLIC_MIRROR = "http://deb.debian.org/debian"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
APT_HELPER = "/usr/lib/apt/apt-helper"
_OF_TOOLS = "bookworm"  # release of programs for this machine

# Release, architecture, package, path below pool/main, SHA-256; of Debian 13.7. The digests are those of the release's
# signed lists. If a point release removes a package from the archive, it is fetched by the current lists instead.
_TABLE = """
trixie riscv64 libc6 g/glibc/libc6_2.41-12+deb13u4_riscv64.deb 77f0da760da3eab6318917857669ec23556b4e1ee489218cb966884a11b0d967
trixie riscv64 libgcc-s1 g/gcc-14/libgcc-s1_14.2.0-19_riscv64.deb 16d3f9f534028615413d23f649e5d246baef48fe7db739ad564ef8b9a6e5587c
trixie riscv64 zlib1g z/zlib/zlib1g_1.3.dfsg+really1.3.1-1+b1_riscv64.deb 38c52eef58e5fc9b13d93f8a7d0a0549c32b4f00402a778d39a135254f554314
trixie riscv64 musl-dev m/musl/musl-dev_1.2.5-3.1~deb13u1_riscv64.deb 1666931c146dd7fec5902c7ecfbf0c8566528362c922a1cfa4ed91c6d3bc97ce
trixie riscv64 libopenblas0-pthread o/openblas/libopenblas0-pthread_0.3.29+ds-3_riscv64.deb acd8d2be64839841ba5a4ecd272dfe64303fb5192e0848ebd2096ab4b99aac30
trixie riscv64 libgfortran5 g/gcc-14/libgfortran5_14.2.0-19_riscv64.deb 0af32025c3562b0f1de612a657f37331b01ef5dd7c539b479db05d44b69abb0f
trixie arm64 libc6 g/glibc/libc6_2.41-12+deb13u4_arm64.deb 8784eda966b189c777a384dac5ce009e8fc9b52d006926c5a013e7fa8aa688cc
trixie arm64 libgcc-s1 g/gcc-14/libgcc-s1_14.2.0-19_arm64.deb 1108bc87879833d6d9a145f22a4a15cddb34e065b4b5f4b97bee586adbac2851
trixie arm64 zlib1g z/zlib/zlib1g_1.3.dfsg+really1.3.1-1+b1_arm64.deb 209aa5cf671e97b9eb0410844fa6df4cae2e75b0c72e7802ab6c8ece13e6ddef
trixie arm64 musl-dev m/musl/musl-dev_1.2.5-3.1~deb13u1_arm64.deb 384ea029e3694baac696d3993d93246f9a4b3741c493697e1ceb7256d8820748
trixie amd64 musl-dev m/musl/musl-dev_1.2.5-3.1~deb13u1_amd64.deb a3f7d47e452129bb65aae201d6c115abf4d5d3efb136b38b7c6b4fa03ec065e9
"""  # noqa: E501
_POOL = {
    (suite, architecture, name): (f"pool/main/{place}", digest)
    for suite, architecture, name, place, digest in map(str.split, _TABLE.split("\n")[1:-1])
}


@dataclass(frozen=True)
class Packages:
    """Packages of a release for one architecture, without their dependencies."""

    names: tuple[str, ...]
    suite: str
    arch: str
    what: str  # in messages
    hint: str  # advice if they are unavailable

    @property
    def debian(self) -> str:
        """Debian's name of the architecture."""
        return architecture(self.arch).debian

    @property
    def recipe(self) -> str:
        """Eight characters that depend on the packages' names, for the name of their cache entry."""
        return hashlib.sha256(" ".join(self.names).encode()).hexdigest()[:8]

    def unpack(self, folder: Path) -> None:
        """Unpacks all packages into one folder; fills a cache entry. Raises MissingTool."""
        archives = folder / ".debs"
        archives.mkdir()
        versions = []
        for file in download(self, archives):
            process.run(["dpkg-deb", "-x", str(file), str(folder)], doing=f"unpacking {file.name}", hint=self.hint)
            fields = process.run(["dpkg-deb", "-W", str(file)], doing=f"reading {file.name}", hint=self.hint)
            versions.append(" ".join(fields.split()[:2]))
        (folder / "packages.txt").write_text("\n".join(versions) + "\n")
        shutil.rmtree(archives)
        for merged in ("lib", "lib64", "bin"):
            if (folder / "usr" / merged).is_dir() and not (folder / merged).exists():
                (folder / merged).symlink_to(f"usr/{merged}")

    def entry(self, folder: Path, purpose: str) -> cache.CacheEntry:
        """A cache entry with these packages."""
        return cache.CacheEntry(folder, self.unpack, what=self.what, command=self.hint, purpose=purpose)


def mirror() -> str:
    """The archive of this machine's own apt, or Debian's public one.

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


def _configure(state: Path, archive: str, packages: Packages) -> Path:
    """Writes apt's private configuration; the system's own apt.conf.d (e.g. a proxy) still applies."""
    for sub in ("lists/partial", "cache/archives/partial", "preferences.d"):
        (state / sub).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    of = packages.debian
    source = f"deb [arch={of} signed-by={KEYRING}] {archive} {packages.suite} main\n"
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
        f'APT::Architecture "{of}";',
        "#clear APT::Architectures;",
        f'APT::Architectures {{ "{of}"; }};',
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


def download(packages: Packages, into: Path) -> list[Path]:
    """Fetches packages into a folder, by pinned digests or by signed lists. Returns the files, sorted by name.

    Raises MissingTool if apt-get, Debian's keyring, the archive or a package is unavailable.
    """
    doing, hint = f"fetching {packages.what}", packages.hint
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise errors.MissingTool(f"{doing}: apt-get and dpkg-deb are needed, and this machine lacks them", hint=hint)
    if not KEYRING.is_file():
        raise errors.MissingTool(
            f"{doing}: Debian's keyring {KEYRING} is missing, so its archive cannot be trusted",
            hint="apt-get install debian-archive-keyring",
        )
    # A mirror may lack an architecture or a release; the public archive has them all.
    archives = list(dict.fromkeys((mirror(), PUBLIC_MIRROR)))
    if found := download_pinned(packages, archives, into):
        return found
    state = paths.cache_dir("apt", f"{packages.suite}-{packages.debian}")
    with locks.held(state / "lock", "it fetches packages"):
        for archive in archives:
            conf = str(_configure(state, archive, packages))
            try:
                _fetch(state, conf, packages, into)
                break
            except errors.MissingTool:
                if archive == archives[-1]:
                    raise
    return sorted(into.glob("*.deb"))


def _fetch(state: Path, conf: str, packages: Packages, into: Path) -> None:
    """Downloads by the local lists, or by fresh ones if a point release replaced a package."""
    doing, hint = f"fetching {packages.what}", f"check the network and apt's sources, then: {packages.hint}"
    apt = ["apt-get", "-q", "-c", conf]
    get = [*apt, "download", *packages.names]
    if any(state.glob("lists/*_Packages*")):
        try:
            process.run(get, doing=doing, hint=hint, cwd=into)
            return
        except errors.MissingTool:
            pass
    process.run([*apt, "update"], doing=f"{doing}: reading Debian's package list", hint=hint)
    process.run(get, doing=doing, hint=hint, cwd=into)


def download_pinned(packages: Packages, archives: Iterable[str], into: Path) -> list[Path]:
    """The packages from the first archive that has them all; none if one is not pinned or not available.

    They are fetched by path and digest. A mirror's lists are larger than these packages, and useless while the mirror
    is being updated.
    """
    wanted = [_POOL.get((packages.suite, packages.debian, name)) for name in packages.names]
    for archive in archives if None not in wanted else ():
        found = []
        for place, digest in filter(None, wanted):
            file = into / PurePosixPath(place).name
            argv = [APT_HELPER, "-q", "download-file", f"{archive}/{place}", str(file), f"SHA256:{digest}"]
            try:
                process.run(argv, doing=f"fetching {file.name}", hint="")
            except errors.MissingTool:
                for left in into.glob(f"{file.name}*"):
                    left.unlink()
                break
            found.append(file)
        if len(found) == len(wanted):
            return sorted(found)
        for file in found:
            file.unlink(missing_ok=True)
    return []


@dataclass(frozen=True)
class Tools:
    """Programs for this machine and their libraries, from Debian's packages."""

    kind: str  # their folder in the cache
    piece: str  # their name for `python -m tensorop.provision`
    what: str
    packages: tuple[str, ...]  # including libraries that the base system may lack
    bin: str  # folder of the programs
    names: tuple[str, ...]  # programs to keep
    purpose: str
    megabytes: int = 0

    @property
    def hint(self) -> str:
        return f"apt-get install {self.packages[0]} (Debian 12), or without root: {self._command}"

    @property
    def _command(self) -> str:
        return f"python -m tensorop.provision {self.piece}"

    def path(self, name: str) -> Path:
        """The script that starts a program, whether or not it exists."""
        return self._entry().folder / name

    def bring(self, name: str, *, offline: bool | None) -> Path:
        """The script; its program is fetched if it is absent. Raises MissingTool."""
        return self._entry().bring(offline=offline) / name

    def _entry(self) -> cache.CacheEntry:
        packages = Packages(self.packages, _OF_TOOLS, host_arch(), self.what, self.hint)
        final = cache.entry_path(self.kind, f"{packages.suite}-{packages.debian}-{packages.recipe}")

        def fill(folder: Path) -> None:
            root = folder / "root"
            root.mkdir()
            packages.unpack(root)
            for other in (root / self.bin).iterdir():
                if other.name not in self.names:
                    other.unlink()
            shutil.rmtree(root / "usr/share", ignore_errors=True)
            for kept in self.names:
                script = folder / kept
                script.write_text(_starter(f"{final}/root", self.bin, kept))
                script.chmod(0o755)

        return cache.CacheEntry(final, fill, self.what, self._command, self.purpose, self.megabytes)


def _starter(root: str, folder: str, name: str) -> str:
    """A script that starts an unpacked program with the unpacked libraries.

    The library path is an argument of the loader: an emulator's guest would inherit LD_LIBRARY_PATH. The script removes
    the variables that a shell adds to an empty environment, so the guest's environment stays as given.
    """
    host = architecture(host_arch())
    libraries = ":".join(f"{root}/{part}/{host.multiarch}" for part in ("usr/lib", "lib"))
    clean = "/usr/bin/env -u PWD -u OLDPWD -u SHLVL -u _"
    return f"#!/bin/sh\nexec {clean} {host.loader} --library-path '{libraries}' '{root}/{folder}/{name}' \"$@\"\n"


def version(folder: Path, package: str) -> str:
    """The version of a package that `Packages.unpack` unpacked, in Debian's spelling; "" if it is absent."""
    try:
        rows = [line.split() for line in (folder / "packages.txt").read_text().splitlines()]
    except OSError:
        return ""
    return next((row[1] for row in rows if row[0] == package), "")

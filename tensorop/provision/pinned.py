"""Debian packages that are fetched by their place in the archive and their digest, without a list of all packages.

A mirror's lists are larger than all of these, and useless while the mirror is being brought up to date. The digests are
those of the release's signed lists; a package that a point release replaced leaves the archive, and the lists serve.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from tensorop.errors import MissingTool
from tensorop.provision import process

HELPER = "/usr/lib/apt/apt-helper"

# Release, architecture, package, its place below pool/main, its SHA-256; of Debian 13.7.
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


def bring(names: Iterable[str], archives: Iterable[str], *, suite: str, architecture: str, into: Path) -> list[Path]:
    """The packages, from the first of some archives that has them all; none where one is not pinned or is not there."""
    wanted = [_POOL.get((suite, architecture, name)) for name in names]
    for archive in archives if None not in wanted else ():
        found = []
        for place, digest in filter(None, wanted):
            file = into / PurePosixPath(place).name
            argv = [HELPER, "-q", "download-file", f"{archive}/{place}", str(file), f"SHA256:{digest}"]
            try:
                process.run(argv, doing=f"fetching {file.name}", hint="")
            except MissingTool:
                for left in into.glob(f"{file.name}*"):
                    left.unlink()
                break
            found.append(file)
        if len(found) == len(wanted):
            return sorted(found)
        for file in found:
            file.unlink(missing_ok=True)
    return []

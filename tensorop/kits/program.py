"""Builds a kit's program: harness, judge, the product's library and the controls, in one static executable."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tensorop import paths
from tensorop.errors import JobError
from tensorop.model.architecture import architecture
from tensorop.model.kernel import Artifact
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.provision import libc
from tensorop.render import adapting
from tensorop.specs import products
from tensorop.toolchain import cache, harness, tool
from tensorop.toolchain.cache import BuildLog
from tensorop.toolchain.compile import candidate_flags, compile_source
from tensorop.verify.controls import Control

PROGRAM = "kit"
_ENTRY = b"tensorop_candidate_0"
_CONTROL = "tensorop_control_{:03d}"  # as long as _ENTRY, to be replaced in place in an object


def build(
    operator: Operator,
    platform: Platform,
    archive: Path,
    dtypes: Sequence[str],
    controls: Sequence[tuple[Control, str]],
    jobs: int = 2,
) -> Artifact:
    """A kit's program.

    archive: the product's static library, which is linked in unchanged; dtypes: those of the library
    controls: each with its dtype

    Raises JobError if it cannot be built, MissingTool without a compiler.
    """
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        objects = list(pool.map(lambda one: _control(operator, platform, *one), controls))
    target = architecture(platform.arch)
    arch = f'-DKIT_ARCH="{target.name}"'
    flags = ("-target", target.static_triple, f"-mcpu={target.static_cpu}", arch, *harness.FLAGS)
    native = paths.native_dir()
    kit = sorted((native / "kit").glob("*.c"))
    parts = [path for path in harness.sources() if path.stem != "harness_entry"]
    adapter, baselines = adapting.text(operator), operator.folder / harness.BASELINES
    table = _table(operator, dtypes, len(controls))
    static = libc.static_link(platform.arch)

    def fill(folder: Path) -> BuildLog | Outcome:
        for name, text in (*operator.slots.files, (harness.ADAPTER, adapter), ("table.c", table)):
            (folder / name).write_text(text, encoding="utf-8")
        made = []
        for number, artifact in enumerate(objects):
            made.append(f"control_{number}.o")
            renamed = artifact.path.read_bytes().replace(_ENTRY + b"\0", _CONTROL.format(number).encode() + b"\0")
            (folder / made[-1]).write_bytes(renamed)
        include = ("-I", str(native), "-I", str(native / "kit"), "-I", ".", "-I", str(operator.folder))
        written = (folder / harness.ADAPTER, folder / "table.c")
        for file in (*parts, *kit, *([baselines] if baselines.is_file() else []), *written):
            own = ("-Dmain=tensorop_harness",) if file.name == "harness.c" else ()
            own = (*own, *platform.compiler.arch_flags) if file == baselines else own
            made.append(f"{file.stem}.o")
            argv = tool.cc(*flags, *own, *include, "-c", str(file.absolute()), "-o", made[-1])
            built = tool.run(argv, folder, timeout_s=120, doing=f"compiling {file.name}")
            if isinstance(built, Outcome):
                return built
        argv = static.argv((*made, str(archive.absolute())), PROGRAM)
        linked = tool.run(argv, folder, timeout_s=120, doing="linking the kit")
        if isinstance(linked, BuildLog):
            (folder / PROGRAM).chmod(0o755)
        return linked

    files = [*parts, *kit, *(native / "kit").glob("*.h"), *native.glob("*.h"), archive]
    files += [*sorted(operator.folder.glob("*.h")), *([baselines] if baselines.is_file() else [])]
    key = cache.key_of(
        cache.content(files), operator.slots.files, adapter, table, [o.key for o in objects], flags, static.origin,
        platform.compiler.arch_flags, tool.compiler_version(),
    )  # fmt: skip
    return tool.required(cache.entry("kits", key, PROGRAM, fill), f"the kit for {platform.name}")


def _control(operator: Operator, platform: Platform, control: Control, dtype: str) -> Artifact:
    flags = (*candidate_flags(platform), f"-DTENSOROP_DTYPE_{dtype}=1")
    built = tool.required(compile_source(control.source(operator), flags), f"control '{control.name}' ({dtype})")
    if _ENTRY + b"\0" not in built.path.read_bytes():
        raise JobError(f"control '{control.name}' of {operator.name} does not define {_ENTRY.decode()}")
    return built


def _table(operator: Operator, dtypes: Sequence[str], controls: int) -> str:
    """The C tables of functions that a plan can call."""
    own = next(iter(products.load(operator).libraries.values())).names
    names = [name for kind in ("all", *dtypes) for name in own.get(kind, ())]
    entries = [_CONTROL.format(number) for number in range(controls)]
    return "\n".join(
        [
            '#include "call.h"',
            *(f"extern void {name}(void);" for name in names),
            *(f"void {name}(const struct tensorop_call *call);" for name in entries),
            "const struct { const char *name; void (*at)(void); } kit_symbols[] = {",
            *(f'    {{"{name}", {name}}},' for name in names),
            "};",
            f"const unsigned kit_symbols_count = {len(names)};",
            "const tensorop_entry kit_controls[] = {",
            *(f"    {name}," for name in entries or ["0"]),
            "};",
            f"const unsigned kit_controls_count = {len(entries)};",
            "",
        ]
    )

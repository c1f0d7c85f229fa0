"""Writes the reference pages of docs/reference/ that the code decides: `make reference`.

A test renders them again and fails where a page and the code differ. Without arguments all are written.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from json_pages import bench_page, journal_page, manifest_page, typed
from markup import code, fenced, first, named, page, sentence, table, wrapped
from platform_page import platform_page

import tensorop
from tensorop import errors, events, paths, settings, tuning
from tensorop.author import grammar, offline
from tensorop.cli.ctrl_c import INTERRUPTED
from tensorop.cli.main import cli
from tensorop.cli.operator_command import GROUPS, STOPPED_EARLY, operator_command
from tensorop.cuda import backend as cuda
from tensorop.cuda import kernels, library
from tensorop.model import bench
from tensorop.model.job import Job
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.package import routines
from tensorop.render import render
from tensorop.specs import catalog, operators, platforms, products

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "reference"


# --- the command line ------------------------------------------------------------------------------------------------


def cli_page() -> str:
    shown = dict.fromkeys(catalog.names("templates"), "gemm")
    fixed = [name for name in cli.commands if name not in shown]
    parts = [
        "```sh\ntensorop gemm --platform rvv --budget 5m\ntensorop bench build/gemm-rvv\n```\n",
        "Results go to stdout, progress and errors to stderr. `tensorop COMMAND --help` prints the same texts.",
        "What a command exits with: [exit statuses](exit-statuses.md).\n",
        table(["Command", "Purpose"], _overview(fixed)),
        "## `tensorop OPERATOR`\n",
        _operator(),
    ]
    for name in fixed:
        parts += _command(name, cli.commands[name])
    return page("Command line", "Look up every command of `tensorop`, its options and their defaults here.", *parts)


def _overview(fixed: Iterable[str]) -> Iterator[tuple[str, str]]:
    named = ", ".join(f"`tensorop {name}`" for name in catalog.names("templates"))
    yield f"[`tensorop OPERATOR`](#tensorop-operator): {named}", "Tune an operator for a platform and make a C library."
    for name in fixed:
        command = cli.commands[name]
        yield f"[`tensorop {name}`](#tensorop-{name})", first(command.help or "")


def _operator() -> str:
    command = operator_command("gemm")
    _, more = (command.help or "").split("\n\n", 1)
    parts = ["Tune an operator for a platform and make a C library of it. Every operator takes these options.\n"]
    parts += [_usage("tensorop OPERATOR [OPTIONS]", command.epilog), _prose(more)]
    for group in GROUPS:
        of_group = [one for one in command.params if command.groups[str(one.name)] == group]
        parts += [f"### {group}\n", _options(of_group, _plain(Job))]
    known = [(name, operators.load(name)) for name in catalog.names("templates")]
    rows = [
        (code(name), ", ".join(one.dtypes), ", ".join(map(code, one.suites)), code(one.shapes.help), code(one.example))
        for name, one in known
    ]
    parts += ["### Operators\n", table(["Operator", "dtypes", "Suites of shapes", "Form of a shape", "Example"], rows)]
    for kind in ("platforms", "tuners"):
        names = ", ".join(map(code, catalog.names(kind)))
        parts.append(wrapped(f"{kind.capitalize()}: {names}.") + "\n")
    return "\n".join(parts)


def _plain(kind: type[Any]) -> Mapping[str, str]:
    """The help of a job's options without the names that an operator's command adds to it, which a table has."""
    return {one.name or name: one.help for name, (_, one) in kind.options().items()}


def _command(name: str, command: click.Command) -> Iterator[str]:
    yield f"## `tensorop {name}`\n"
    yield _prose(command.help or "")
    if not isinstance(command, click.Group):
        yield _usage(f"tensorop {name} {_arguments(command)}", command.epilog)
        yield _options(command.params)
        return
    for below, one in command.commands.items():
        yield f"### `tensorop {name} {below}`\n"
        yield _prose(one.help or "")
        yield _usage(f"tensorop {name} {below} {_arguments(one)}", one.epilog)
        yield _options(one.params)


def _arguments(command: click.Command) -> str:
    return " ".join(["[OPTIONS]", *(one.metavar or "" for one in command.params if isinstance(one, click.Argument))])


def _prose(text: str) -> str:
    return "\n\n".join(wrapped(part) for part in inspect.cleandoc(text).split("\n\n")) + "\n"


def _usage(line: str, epilog: str | None) -> str:
    typed = [one.strip() for one in (epilog or "").splitlines() if one.startswith("  ")]
    return fenced(line) + "\n" + fenced("\n".join(typed), "sh")


def _options(parameters: Iterable[click.Parameter], helps: Mapping[str, str] | None = None) -> str:
    rows = []
    for one in parameters:
        name = str(one.name)
        if not isinstance(one, click.Option):
            continue
        flag, spelled = one.is_flag, "/".join([*one.opts, *one.secondary_opts])
        ranged = isinstance(one.type, click.IntRange)
        metavar = "" if flag else one.metavar if one.metavar and not ranged else _metavar(one.type)
        wanted = one.required or one.default in (None, (), "") or (flag and not one.default)
        default = "required" if one.required else "" if wanted else _default(one.default)
        text, _, shown = (one.help or "").partition("  [default: ")
        text, _, example = text.partition(" Example: ")
        text, example = (helps or {}).get(name, text), code(example.removesuffix(".")) if example else ""
        rows.append((code(f"{spelled} {metavar}".strip()), text, code(shown.rstrip("]") or default), example))
    return table(["Option", "Meaning", "Default", "Example"], rows) if rows else ""


def _metavar(kind: click.ParamType[Any]) -> str:
    if isinstance(kind, click.Choice):
        return "|".join(map(str, kind.choices))
    if isinstance(kind, click.IntRange):
        return f"{kind.min or 0}..{kind.max}" if kind.max is not None else "N"
    return {"path": "PATH", "directory": "DIR", "file": "FILE"}.get(kind.name, kind.name.upper())


def _default(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


# --- Python ----------------------------------------------------------------------------------------------------------


def python_page() -> str:
    example = """import numpy as np
import tensorop

done = tensorop.tune("gemm", platform="native", dtypes="f32", budget="30s")
library = tensorop.load(done.out)
c = library.gemm(np.ones((8, 4), np.float32), np.ones((4, 8), np.float32))
"""
    signature = inspect.signature(tuning.tune)
    rows = [
        (code(name), code(str(one.annotation)), _python_default(one.default), Job.options()[name][1].help)
        for name, one in signature.parameters.items()
        if name in Job.options()
    ]
    parts = [
        fenced(example, "python"),
        "Everything else in the package is internal and may change.\n",
        "## `tensorop.tune`\n",
        fenced("tensorop.tune(operator, *, progress=..., **options) -> Done", "python"),
        _docstring(_own_docstring("tensorop/tuning.py", "tune")),
        table(["Option", "Type", "Default", "Meaning"], rows),
        "## `tensorop.load`\n",
        fenced(f"tensorop.load{inspect.signature(tensorop.load)}".replace("'", ""), "python"),
        _docstring(inspect.getdoc(tensorop.load) or ""),
        "## `Library`\n",
        _docstring(inspect.getdoc(tensorop.Library) or ""),
        table(["Member", "Type", "Meaning"], _members()),
    ]
    known = {name: operators.load(name) for name in catalog.names("templates")}
    bindings = {f"library.{name}": f"{name}/binding.py" for name, one in known.items() if one.extension is None}
    devices = (name for name, one in known.items() if operators.serves_devices(one))
    bindings |= {f"library.{name} of a GPU library": f"{name}/device/binding.py" for name in devices}
    for title, file in bindings.items():
        name = title.split()[0].removeprefix("library.")
        found = _nested(ROOT / "templates" / file, name)
        arguments = ast.unparse(found.args).replace("=one", "=1.0").replace("=zero", "=0.0")
        parts += [f"### {title.replace(title.split()[0], code(title.split()[0]))}\n"]
        parts += [fenced(f"library.{name}({arguments})", "python"), _docstring(ast.get_docstring(found) or "")]
    parts.append("## Records\n")
    shown = (events.Done, bench.Bench, bench.Row, bench.Ratio, bench.AtVlen, bench.BaselineInfo)
    for record in (*shown, events.Phase, events.Note, events.Trying):
        parts += [f"### `{record.__name__}`\n", _docstring(inspect.getdoc(record) or ""), _fields(record)]
    parts += ["## Errors\n", "All are importable from `tensorop.errors`.\n", _errors()]
    return page("Python", "Look up the functions and records that Python programs may use here.", *parts)


def _python_default(value: object) -> str:
    return code(repr(str(value) if isinstance(value, Path) else value))


def _own_docstring(file: str, name: str) -> str:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name)
    return ast.get_docstring(found) or ""


def _docstring(text: str) -> str:
    """Paragraphs; lines of the form `name: text`, with what goes on below, are items."""
    out: list[str] = []
    for line in inspect.cleandoc(text).splitlines():
        item = re.match(r"([a-z_]+(?:, [a-z_]+)*): (.*)", line)
        if item:
            out += ["" if out and out[-1] and not out[-1].startswith(("- ", "  ")) else None]
            out += [f"- {', '.join(map(code, item[1].split(', ')))}: {item[2]}"]
        elif line.startswith("Raises ") and out and out[-1]:
            out += ["", line]
        elif out and out[-1] and out[-1].startswith(("- ", "  ")) and line:
            out.append(f"  {line.strip()}")
        else:
            out.append(line)
    parts = re.split(r"\n{2,}", named("\n".join(line for line in out if line is not None)))
    return "\n\n".join(part if part.startswith("- ") else wrapped(part) for part in parts) + "\n"


def _nested(path: Path, name: str) -> ast.FunctionDef:
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return next(one for one in tree if isinstance(one, ast.FunctionDef) and one.name == name)


def _members() -> Iterator[tuple[str, str, str]]:
    yield code("folder"), code("Path"), "Where the product lies."
    yield code("dtypes"), code("tuple[str, ...]"), "Element types that the library holds."
    for name, one in vars(tensorop.Library).items():
        if isinstance(one, property):
            hint = inspect.signature(one.fget).return_annotation if one.fget else ""  # type: ignore[arg-type]
            settable = " Can be set." if one.fset else ""
            yield code(name), code(str(hint)), first(inspect.getdoc(one) or "") + settable


def _fields(record: type[Any]) -> str:
    source = Path(inspect.getfile(record))
    rows = [(code(name), code(hint), text) for name, hint, text in typed(source, record.__name__)]
    return table(["Field", "Type", "Meaning"], rows)


def _errors() -> str:
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.TensoropError)]
    rows = [
        (code(one.__name__), code(one.__bases__[0].__name__), str(one.exit_status), first(inspect.getdoc(one) or ""))
        for one in kinds
    ]
    return table(["Error", "Derived from", "Exit status", "Meaning"], rows)


# --- C ---------------------------------------------------------------------------------------------------------------


def c_page() -> str:
    parts = [
        fenced((ROOT / "examples/c/main.c").read_text(encoding="utf-8"), "c"),
        "Include `tensorop/NAME.h` and link `-ltensorop_NAME`. The headers below are those of a library with every",
        "dtype; they are shown for f32, and a table has the names for the others.\n",
    ]
    gemm, blas, conv2d, attention = map(operators.load, ("gemm", "blas", "conv2d", "attention"))
    parts += _header("common.h", gemm, "Common to all libraries: status codes, threads, provenance.")
    parts += _header("gemm.h", gemm, "Matrix products.", _functions(gemm))
    parts += _header("cblas.h", gemm, "The standard names, in `libtensorop_cblas`.")
    parts += _header("blas.h", blas, "Further routines, in `libtensorop_blas` of `tensorop blas`, for f32 and f64.")
    parts += _header("conv2d.h", conv2d, "Convolutions.", _functions(conv2d))
    parts += _header("attention.h", attention, "Attention.", _functions(attention))
    parts += _header("device/header.h", gemm, "Matrix products on NVIDIA GPUs, from the CUDA platforms.")
    parts += _header("device/header.h", attention, "Attention on NVIDIA GPUs, from the CUDA platforms with mma.sync.")
    return page("C API", "Look up the functions, structs and status codes of the libraries here.", *parts)


def _functions(operator: Operator) -> str:
    spec = products.load(operator)
    rows = []
    for dtype, types in spec.types.items():
        operand = types.get("operand", types["real"])
        of = next(iter(spec.libraries.values())).names
        names = [*of[dtype], *of.get(f"epilogue {dtype}", ())]
        rows.append((code(dtype), " ".join(map(code, names)), code(operand), code(types.get("result", types["real"]))))
    return table(["dtype", "Functions", "Inputs", "Output and coefficients"], rows)


def _header(name: str, operator: Operator, purpose: str, more: str = "") -> Iterator[str]:
    spec = products.load(operator)
    device = name.startswith("device/")
    template = f"{name}.j2" if device else f"product/{name}.j2"
    names: dict[str, object] = {"dtypes": ["bf16", "f16"] if device else ["f32"], "types": spec.types}
    names |= {"platform_name": "PLATFORM", "arch": "riscv64", "tool_version": tensorop.__version__}
    names |= {"routines": routines.described(spec.routines), "statuses": spec.statuses}
    names |= {"in_size": 2, "c_size": 2, "measured": None, "operator": operator.name, "epilogue": True, **spec.settings}
    names |= library.terms(operator) if device else {}
    folders = kernels.folders(operator) if device else products.folders(operator)
    text = render.formatted(render.environment(folders).get_template(template).render(names))
    yield f"## `tensorop/{f'{operator.name}_cuda.h' if device else name}`\n"
    yield f"{purpose}\n"
    if more:
        yield more
    yield from (fenced(part, "c") for part in _declarations(text))


def _declarations(text: str) -> Iterator[str]:
    """What a header declares, each with the comment before it; without guards, includes and pragmas."""
    text = re.sub(r"^#(ifndef|define|include|pragma|if|endif|ifdef|else)\b.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r'^extern "C" \{\n|^\}\n', "", text, flags=re.MULTILINE)
    text = text.replace(" *\n * SPDX-License-Identifier: MIT */", " */")
    yield re.sub(r"\n{2,}", "\n\n", text).strip()


# --- environment and exit statuses -----------------------------------------------------------------------------------


def environment_page() -> str:
    common = (paths.native_dir() / "product" / "common.h.j2").read_text(encoding="utf-8")
    common += (paths.native_dir() / "record.c").read_text(encoding="utf-8")
    product = re.findall(r"^ \*   (TENSOROP_\w+) +(.*?)(?: \(default: (.*)\))?$", common, re.MULTILINE)
    readmes = [paths.native_dir() / "kit/README", *paths.builtin_dir("templates").glob("*/device/kit/README")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in readmes)
    kit: dict[str, tuple[str, str]] = {}
    for name, value, meaning in re.findall(r"^    (TENSOROP_KIT_\w+)=(\S+) +(.*)$", text, re.MULTILINE):
        kit.setdefault(name, (sentence(meaning), code(f"{name}={value}")))
    client = ", ".join(map(code, settings.CLIENT))
    scrubbed = ", ".join(code(f"{prefix}*") for prefix in settings.SCRUBBED_PREFIXES)
    parts = [
        fenced(
            "TENSOROP_CACHE=/big/disk/tensorop tensorop gemm --platform rvv\nTENSOROP_NUM_THREADS=4 ./my-program", "sh"
        ),
        "## The command line and Python\n",
        table(["Variable", "Meaning", "Default"], [(code(n), text, default) for n, (text, default) in _variables()]),
        wrapped(f"The client of `--author llm` also reads {client} and the proxy variables.") + "\n",
        wrapped(f"Programs that tensorop starts see no secrets and no variables that tune a BLAS: {scrubbed}.") + "\n",
        "The program of `tensorop record` sees all variables.\n",
        "## Programs that use a library\n",
        "A library reads these at its first call.\n",
        table(["Variable", "Meaning", "Default"], [(code(n), sentence(t), d or "none") for n, t, d in product]),
        "## `run-kit`, the program of a tuning kit\n",
        table(["Variable", "Meaning", "Example"], [(code(name), *row) for name, row in kit.items()]),
    ]
    return page("Environment variables", "Look up every environment variable that tensorop reads here.", *parts)


def _variables() -> Iterable[tuple[str, tuple[str, str]]]:
    return settings.VARIABLES.items()


def exit_page() -> str:
    try:
        tuning.shapes(operators.load("gemm"), "64x64")
    except errors.UsageError as error:
        shown = f"error: {error.message}\n       {error.hint}"
    rows = [
        ("0", "Done."),
        (str(errors.JobError.exit_status), "The job failed; the message says why. Also: `verify`, `judge` or `check` "
         "found an error, or `bench` found a ratio below `--fail-below` or a slower row with `--compare`."),
        (str(errors.UsageError.exit_status), "The request is wrong: an option, a name or a file."),
        (str(STOPPED_EARLY), "You pressed Ctrl-C once; a verified product of the best so far is in `--out`."),
        (str(INTERRUPTED), "You stopped the job before there was a product; the same command goes on."),
    ]  # fmt: skip
    parts = [
        fenced(f"$ tensorop gemm --shapes 64x64\n{shown}\n$ echo $?\n{errors.UsageError.exit_status}"),
        table(["Status", "Meaning"], rows),
        "From Python the same failures are exceptions of `tensorop.errors`:\n",
        _errors(),
    ]
    return page("Exit statuses", "Look up what an exit status of `tensorop` means here.", *parts)


# --- what is supported -----------------------------------------------------------------------------------------------


def supported_page() -> str:
    known = {name: operators.load(name) for name in catalog.names("templates")}
    rows = []
    for name in catalog.names("platforms"):
        one = platforms.load(name)
        served = {of: [d for d in op.dtypes if d in one.dtypes] for of, op in known.items()}
        if one.device is not None:
            served = {of: [d for d in found if _has_family(known[of], one, d)] for of, found in served.items()}
        described = re.split(r";(?![^(]*\))", first(one.description))[0]
        what = "the CPU of this machine, as detected" if name == "native" else described
        rows.append(
            (code(name), re.sub(r" \(x86-64\)$", "", what), *(", ".join(d) or "no" for d in served.values()), _how(one))
        )
    parts = [
        "```sh\ntensorop platforms list\ntensorop doctor --platform rvv\n```\n",
        table(["Platform", "Hardware", *map(code, known), "How speed is measured"], rows),
        "A board model's results are [modelled cycles](../explanation/modelled-cycles.md), never the speed of a board.",
        "With `--runner ssh://HOST` the same platform is measured by the board's own clock.\n",
        "`tensorop` and its libraries run on Linux.",
    ]
    return page("Supported operators and platforms", "Find out what tensorop can tune, for what, and how here.", *parts)


def _has_family(operator: Operator, platform: Platform, dtype: str) -> bool:
    """Whether an operator has a kernel family for a dtype on a platform's GPUs."""
    if not operators.serves_devices(operator):
        return False
    folder, suffix = operator.folder, cuda.SUFFIX
    families = offline.templates(folder, operator.name, suffix=suffix) if offline.files(folder, suffix=suffix) else ()
    return any(kernels.set_of(platform, family, dtype) for family in families)


def _how(platform: Any) -> str:
    if platform.device is not None:
        return "not while it is built; by a kit on a GPU"
    if platform.runner == "native" or platform.name == "generic":
        return "clock of this machine"
    return f"board model `{platform.board['name']}` in QEMU" if platform.board else "correctness only"


# --- the language of templates


def template_page() -> str:
    """The written page, with the grammar between its marks."""
    begin, end = "<!-- language -->\n", "<!-- end -->\n"
    text = (FOLDER / "template.md").read_text(encoding="utf-8")
    before, after = text.partition(begin)[0], text.partition(end)[2]
    language = grammar.language()
    device = wrapped(_flat(language.device))
    return f"{before}{begin}{fenced(language.grammar, 'text')}\n{device}\n{end}{after}"


def _flat(text: str) -> str:
    return " ".join(text.split())


PAGES: Mapping[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "python.md": python_page,
    "c-api.md": c_page,
    "environment.md": environment_page,
    "exit-statuses.md": exit_page,
    "journal.md": journal_page,
    "manifest.md": manifest_page,
    "bench-json.md": bench_page,
    "supported.md": supported_page,
    "platform-yaml.md": platform_page,
    "template.md": template_page,
}


def main(names: Iterable[str]) -> None:
    for name in names:
        (FOLDER / name).write_text(PAGES[name](), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or PAGES)

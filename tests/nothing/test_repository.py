"""Rules that no tool checks: who reads the environment, what the core may name, what a wheel holds."""

from __future__ import annotations

import ast
import dataclasses
import re
import subprocess
import sys
import tomllib
import venv
import warnings
import zipfile
from functools import cache
from pathlib import Path

import pytest
import yaml

import tensorop
from tensorop.provision.check import DISTRIBUTION
from tensorop.runners.base import Need
from tensorop.runners.protocol import TargetLibrary
from tensorop.runners.session import JUDGED, Guest

ROOT = Path(__file__).resolve().parents[2]
CORE = sorted((ROOT / "tensorop").rglob("*.py"))
DATA_FOLDERS = ("cmake", "platforms", "primitives", "templates", "tuners")
MAX_LINES = 450
FEW_LINES = 400

# Words of general use that are also names of plug-ins.
GENERAL = {"bandit", "blas", "generic", "grid", "native", "random", "scalar"}
# What of the core may name a plug-in: defaults, examples in help texts, files of others that bear an ISA's name.
MAY_NAME = {
    "tensorop/cli/catalog_commands.py": {"bayes", "gemm", "rvv"},
    "tensorop/cli/author_commands.py": {"gemm", "rvv"},
    "tensorop/kits/commands.py": {"gemm", "rvv"},
    "tensorop/cli/bench_command.py": {"gemm", "rvv"},
    "tensorop/cli/library_commands.py": {"gemm", "rvv"},
    "tensorop/cli/verify_command.py": {"gemm", "rvv"},
    "tensorop/cli/operator_command.py": {"avx2", "rvv"},
    "tensorop/model/architecture.py": {"neon"},  # in the name of a compiler's header
    "tensorop/model/job.py": {"bayes"},
    "tensorop/tuning.py": {"gemm", "rvv"},
    "tensorop/api.py": {"gemm"},
    "tensorop/cli/explain_command.py": {"gemm", "rvv"},
    "tensorop/cli/judge_command.py": {"gemm", "rvv"},
    "tensorop/cli/main.py": {"gemm", "rvv"},
    "tensorop/cli/preload_command.py": {"gemm"},
    "tensorop/cli/prompt_command.py": {"gemm", "rvv"},
    "tensorop/cli/record_command.py": {"gemm", "rvv"},
    "tensorop/provision/baseline.py": {"avx2", "avx512"},
}


@cache
def configuration() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def plugin_names() -> set[str]:
    found = {p.stem for folder in ("platforms", "primitives") for p in (ROOT / folder).glob("*.yaml")}
    found |= {p.stem for p in (ROOT / "tuners").glob("*.py")}
    found |= {p.parent.name for p in (ROOT / "templates").glob("*/operator.yaml")}
    return found - GENERAL


def test_the_core_names_no_plugin() -> None:
    hits = []
    for path in CORE:
        words = sorted(plugin_names() - MAY_NAME.get(name(path), set()))
        pattern = "|".join(re.escape(word).replace(r"\-", "[-_ ]") for word in words)
        named = re.compile(rf"(?<![a-z0-9])({pattern})(?![a-z0-9])", re.IGNORECASE)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if named.search(line):
                hits.append(f"{name(path)}:{number}: {line.strip()}")
    assert not hits, "a plug-in is named in the core:\n" + "\n".join(hits)


def test_the_core_names_no_layout_of_a_device_operator() -> None:
    """Names of an operator's `device:` section, and the flags that gemm's are made of, stand in its folder alone."""
    named = re.compile(r"\b(a_along_m|b_along_k|ta|tb)\b")
    files = [*CORE, *(p for p in (ROOT / "tensorop/native/device").rglob("*") if p.is_file())]
    assert not [name(path) for path in files if named.search(path.read_text(encoding="utf-8"))]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _mentions(path: Path) -> set[str]:
    """`print` called, `os.environ` or `os.getenv` read."""
    found = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv"):
            found.add("environment")
        if (
            isinstance(node, ast.ImportFrom)
            and node.module == "os"
            and {a.name for a in node.names} & {"environ", "getenv"}
        ):
            found.add("environment")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            found.add("print")
        streams = ("stdout", "stderr", "__stdout__", "__stderr__")
        if isinstance(node, ast.Attribute) and node.attr in streams and ast.unparse(node) == f"sys.{node.attr}":
            found.add("print")
    return found


def test_only_settings_read_the_environment() -> None:
    assert [name(path) for path in CORE if "environment" in _mentions(path)] == ["tensorop/settings.py"]


def test_only_commands_print() -> None:
    """Beside cli: `python -m tensorop.provision`."""
    found = {name(path) for path in CORE if "print" in _mentions(path) and path.parent.name != "cli"}
    assert found <= {"tensorop/provision/__main__.py"}


def _calls(path: Path) -> set[str]:
    """The last names of what a module calls, and modules it takes from `tensorop.runners`."""
    found = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found |= {node.func.attr, ".".join(ast.unparse(node.func).split(".")[-2:])}
        if isinstance(node, ast.ImportFrom) and node.module == "tensorop.runners":
            found |= {f"runners.{alias.name}" for alias in node.names}
    return found


def test_one_function_starts_processes_with_a_strangers_code() -> None:
    """A runner's command is made in one place, which confines it; others start tools.

    `load` opens products, and the dispatch what a driver decides: C of an operator's folder, whose Python runs here
    too.
    """
    calls = {name(path): _calls(path) for path in CORE if path.parent.name != "cli"}
    assert [path for path, found in calls.items() if "runner.command" in found] == ["tensorop/runners/confined.py"]
    starters = {path for path, found in calls.items() if "runners.process" in found}
    assert {path for path in starters if not path.startswith("tensorop/toolchain/")} == {
        "tensorop/author/llm/reading.py",  # a program of ours, limited before it is sent a byte
        "tensorop/cuda/compile.py",  # nvcc, a tool
        "tensorop/measure/loop_analysis.py",  # llvm-mca, a tool
        "tensorop/runners/confined.py",
        "tensorop/runners/session.py",  # its types
        "tensorop/runners/ssh.py",  # the board's own shell
    }
    assert "process.run(" not in (ROOT / "tensorop/runners/session.py").read_text(encoding="utf-8")
    opening = [path for path, found in calls.items() if found & {"dlopen", "LoadLibrary"}]
    assert opening == [
        "tensorop/api.py",
        "tensorop/costs/decisions.py",
        "tensorop/package/device_arrays.py",  # NVIDIA's driver
    ]


def test_no_caller_chooses_the_jail() -> None:
    """What a process may do follows from what is in it: libraries and their threads."""
    assert {field.name for field in dataclasses.fields(Guest)} == {
        "vlen", "libraries", "environment", "cpu", "threads", "plugin_args",
    }  # fmt: skip
    assert Guest().needs == Guest(libraries=(TargetLibrary("lib.so", "tensorop", "f32"),)).needs == Need.NOTHING
    assert Guest(threads=2).needs == Need.THREADS
    assert Guest(libraries=(TargetLibrary("lib.so", "cblas", "f32"),)).needs == Need.THREADS | Need.READS
    judged = Guest(libraries=(TargetLibrary("lib.so", JUDGED, ""),))
    assert judged.needs == Need.THREADS | Need.READS | Need.FORKS
    calling = [name(path) for path in CORE if "session.JUDGED" in path.read_text(encoding="utf-8")]
    assert calling == ["tensorop/blas/judging.py"]


def test_modules_are_small() -> None:
    sizes = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in CORE}
    large = {path: lines for path, lines in sizes.items() if lines > FEW_LINES}
    if large:
        warnings.warn(f"modules of more than {FEW_LINES} lines: {large}", stacklevel=1)
    assert not [path for path, lines in sizes.items() if lines > MAX_LINES]


def test_public_names_exist_and_are_documented() -> None:
    public = [n for n in dir(tensorop) if not n.startswith("_")]
    for wanted in ("load", "Library", "tune"):
        assert wanted in public
        assert getattr(tensorop, wanted).__doc__


def test_no_submodule_hides_a_public_name() -> None:
    """Importing `tensorop.x` binds `x` in tensorop, over whatever was public under that name."""
    below = {path.stem for path in (ROOT / "tensorop").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not below & {"load", "tune", "Library"}


def test_every_module_says_what_it_is_for() -> None:
    assert not [name(p) for p in CORE if p.read_text(encoding="utf-8") and not ast.get_docstring(_tree(p))]


def test_version_is_that_of_the_changelog() -> None:
    top = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert top is not None
    assert tensorop.__version__ == top.group(1) == configuration()["project"]["version"]  # type: ignore[index]


def test_a_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["cff-version"], citation["version"]) == ("1.2.0", tensorop.__version__)
    assert citation["authors"] == [{"name": "The tensorop authors"}]


def test_every_package_is_in_the_wheels_list() -> None:
    listed = set(configuration()["tool"]["setuptools"]["packages"])  # type: ignore[index]
    folders = {"tensorop"} | {
        ".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "tensorop").rglob("__init__.py")
    }
    assert folders <= listed
    assert listed - folders == {f"tensorop.{folder}" for folder in DATA_FOLDERS} | {"tensorop.native"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of what git knows and of what is about to be added, built apart so that the checkout stays clean."""
    work = tmp_path_factory.mktemp("wheel")
    for kept in _kept():
        target = work / "source" / kept
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / kept).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    command += ["-w", str(work), str(work / "source")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return next(work.glob("*.whl"))


def _kept() -> list[Path]:
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout: nobody says which files belong")
    return [Path(line) for line in done.stdout.splitlines() if (ROOT / line).is_file()]


def test_a_wheel_holds_all_of_the_package_and_nothing_beside_it(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    assert {n.split("/")[0] for n in held} == {"tensorop", f"tensorop_tuner-{tensorop.__version__}.dist-info"}
    for path in _kept():
        if path.parts[0] == "tensorop":
            assert str(path) in held
        elif path.parts[0] in DATA_FOLDERS:
            assert f"tensorop/{path}" in held


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own with the wheel; dependencies come from this one, nothing of the checkout does."""
    place = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(place, with_pip=False)
    python = str(place / "bin" / "python")
    command = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--no-deps", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (_packages(place) / "dependencies.pth").write_text(str(Path(pytest.__file__).resolve().parents[1]) + "\n")
    return place


def _packages(place: Path) -> Path:
    return place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def test_the_wheel_is_of_a_name_that_is_ours(wheel: Path) -> None:
    assert configuration()["project"]["name"] == DISTRIBUTION == "tensorop-tuner"  # type: ignore[index]
    assert wheel.name == f"tensorop_tuner-{tensorop.__version__}-py3-none-any.whl"


def test_an_installed_wheel_is_a_command(installed: Path, tmp_path: Path) -> None:
    for words, expected in ((["--help"], r"^Usage: tensorop "), (["platforms", "list"], r"^native ")):
        command = [str(installed / "bin" / "tensorop"), *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert re.search(expected, done.stdout, re.MULTILINE), done.stdout
    script = "import importlib.metadata as m, tensorop.provision.check as c; print(m.version(c.DISTRIBUTION))"
    done = subprocess.run(
        [str(installed / "bin" / "python"), "-I", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == tensorop.__version__, done.stderr


def test_products_of_an_installed_wheel_have_the_licence(installed: Path) -> None:
    script = "from tensorop.package import product; print(product.licence(), end='')"
    command = [str(installed / "bin" / "python"), "-I", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == (ROOT / "LICENSE").read_text(encoding="utf-8"), done.stderr


def test_nothing_tells_to_install_a_strangers_package() -> None:
    """The bare name is another project on the package index."""
    own = Path(__file__).relative_to(ROOT)
    told = re.compile(r"(pip|pipx|uv|uv pip)\s+install\s+(-\S+\s+)*[\"']?tensorop(?![-_\w/])|\btensorop\[")
    for path in _kept():
        if path != own and path.suffix in {".py", ".md", ".cmake", ".j2", ".toml", ".yaml", ".in", ".txt", ""}:
            text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
            assert not told.search(text), path


def test_an_installed_wheel_finds_its_plugins(installed: Path, tmp_path: Path) -> None:
    packages = _packages(installed)
    script = (
        "import importlib.util as u, tensorop\n"
        "from tensorop.cli.main import cli\n"
        f"assert tensorop.__file__.startswith({str(packages)!r}), tensorop.__file__\n"
        "print([n for n in ('tuners', 'tests', 'platforms', 'templates') if u.find_spec(n)], flush=True)\n"
        "for kind in ('platforms', 'primitives', 'operators', 'tuners'):\n"
        "    cli.main([kind, 'list'], standalone_mode=False)\n"
    )
    command = [str(installed / "bin" / "python"), "-I", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[]\n")
    for name in ("native", "scalar", "gemm", "random"):
        assert re.search(rf"^{name} ", done.stdout, re.MULTILINE)

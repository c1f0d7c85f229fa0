"""Builds the site of docs/ into build/site/: `make docs`. It is strict about links and anchors.

Pages are plain Markdown, as every host of repositories shows them. What Sphinx wants more is added to a copy of them:
the contents, pages of the repository's root, and no links to files that are not pages.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
COPIED = ("CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")  # of the root: pages contribute/NAME
# The contents: titles with pages in their order; FOLDER/ is its other pages, by name.
CONTENTS = {
    "Start": ["tutorial.md", "how-to/install.md", "reference/supported.md", "reference/glossary.md"],
    "How-to: tune": [
        "how-to/tune-my-shapes.md", "how-to/tune-for-a-program.md", "how-to/tune-without-a-board.md",
        "how-to/tune-a-board-over-ssh.md", "how-to/tune-with-a-kit.md", "how-to/make-a-cuda-library.md",
        "how-to/distribute-trials.md",
    ],
    "How-to: use": [
        "how-to/use-the-library.md", "how-to/use-conv2d.md", "how-to/use-attention.md", "how-to/replace-blas.md",
        "how-to/use-blas.md", "how-to/judge-blas.md", "how-to/compare-in-ci.md",
        "how-to/troubleshooting.md", "how-to/report-a-vulnerability.md",
    ],
    "How-to: extend": [
        "how-to/write-a-kernel-template.md", "how-to/judge-a-kernel.md", "how-to/use-an-llm.md",
        "how-to/describe-a-platform.md", "how-to/calibrate-a-core.md", "how-to/write-a-tuner.md",
        "how-to/add-a-device-operator.md", "how-to/",
    ],
    "Reference": [
        "reference/cli.md", "reference/python.md", "reference/c-api.md", "reference/environment.md",
        "reference/exit-statuses.md", "reference/product-files.md", "reference/manifest.md", "reference/journal.md",
        "reference/bench-json.md", "reference/extension-points.md", "reference/",
    ],
    "Explanation": [
        "explanation/verification.md", "explanation/modelled-cycles.md", "explanation/search.md",
        "explanation/dispatch.md", "explanation/security.md", "explanation/",
    ],
    "Results": ["results/"],
    "Contribute": [f"contribute/{name}" for name in COPIED],
}  # fmt: skip
_LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\])\(([^)\s#]*)(#[^)\s]*)?\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`(?!\]\()", re.MULTILINE | re.DOTALL)


def contents() -> str:
    """The directives that make the sidebar."""
    named = {page for pages in CONTENTS.values() for page in pages}
    parts = []
    for title, pages in CONTENTS.items():
        found: list[str] = []
        for page in pages:
            rest = sorted(str(path.relative_to(DOCS)) for path in (DOCS / page).glob("*.md"))
            found += [one for one in rest if one not in named] if page.endswith("/") else [page]
        found.sort(key=lambda page: not page.endswith("/index.md"))  # first
        parts.append("```{toctree}\n:hidden:\n:caption: " + title + "\n\n" + "\n".join(found) + "\n```\n")
    return "\n".join(parts)


def linked(text: str, page: str) -> str:
    """A page whose links lead to pages: one to another file of the repository is its name alone."""
    here = posixpath.dirname(page)
    at = "" if page.startswith("contribute/") else posixpath.join("docs", here)

    def written(found: re.Match[str]) -> str:
        words, path, anchor = found[1], found[2], found[3] or ""
        target = posixpath.normpath(posixpath.join(at, path))
        if not path or re.match(r"[a-z]+:", path):
            return found[0]
        if target in COPIED:
            return f"{words}({posixpath.relpath(f'contribute/{target}', here)}{anchor})"
        if target.startswith("docs/"):
            return f"{words}({posixpath.relpath(target[5:], here or '.')}{anchor})"
        return words.strip("[]") if not target.startswith("..") and (ROOT / target).exists() else found[0]

    out, end = [], 0
    for code in _CODE.finditer(text):  # code has no links
        out += [_LINK.sub(written, text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*out, _LINK.sub(written, text[end:])])


def copy(to: Path) -> None:
    """The pages as Sphinx reads them."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(DOCS, to, ignore=shutil.ignore_patterns("generate", "__pycache__", "*.md"))
    pages = {str(path.relative_to(DOCS)): path for path in DOCS.rglob("*.md")}
    for name, path in {**pages, **{f"contribute/{name}": ROOT / name for name in COPIED}}.items():
        text = linked(path.read_text(encoding="utf-8"), name)
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_text(f"{text}\n{contents()}" if name == "index.md" else text, encoding="utf-8")


def build(folder: Path) -> int:
    """Writes the site; returns 0 where nothing is wrong with it."""
    source = folder.with_name(f"{folder.name}-source")
    copy(source)
    conf = str(Path(__file__).parent)
    shutil.rmtree(folder, ignore_errors=True)
    return build_main(
        ["-q", "-W", "--keep-going", "-n", "-c", conf, "-d", f"{source}/.doctrees", str(source), str(folder)]
    )


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(build(ROOT / "build" / "site"))

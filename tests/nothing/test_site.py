"""The site of docs/: it builds without a warning, loads nothing from another host, and its pictures have words."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOADS = {
    "script": ("src",), "link": ("href",), "img": ("src", "srcset"), "iframe": ("src",), "source": ("src", "srcset"),
    "video": ("src", "poster"), "audio": ("src",), "object": ("data",), "embed": ("src",), "use": ("href",),
}  # fmt: skip
NOT_LOADED = {"canonical", "search", "index", "next", "prev", "author", "license"}  # of <link rel=...>
ELSEWHERE = re.compile(r"^\s*(?:[a-z]+:)?//", re.IGNORECASE)


_BUILD = """
import runpy, sys
from pathlib import Path
sys.exit(runpy.run_path(sys.argv[1])["build"](Path(sys.argv[2])))
"""


class Page(HTMLParser):
    """What a page loads, and pictures without words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.wordless: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if not (tag == "link" and given.get("rel", "") in NOT_LOADED):
            self.loads += [given[name] for name in LOADS.get(tag, ()) if name in given]
        self.loads += _of_css(given.get("style", ""))
        if tag == "img" and not given.get("alt", "").strip():
            self.wordless.append(given.get("src", ""))


def _of_css(text: str) -> list[str]:
    imports = re.findall(r"@import\s+[\"']([^\"']+)", text)
    return imports + [found.strip("\"' ") for found in re.findall(r"url\(([^)]*)\)", text)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, str(ROOT / "docs/generate/build_site.py"), str(folder)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"make docs fails:\n{done.stdout}{done.stderr}"
    return folder


def test_every_page_is_on_the_site(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_nothing_comes_from_another_host(site: Path) -> None:
    found = []
    for path in site.rglob("*"):
        if path.suffix in (".html", ".svg"):
            loads = Page(path.read_text(encoding="utf-8")).loads
        elif path.suffix == ".css":
            loads = _of_css(path.read_text(encoding="utf-8"))
        elif path.suffix == ".js":
            text = path.read_text(encoding="utf-8")
            loads = re.findall(r"(?:src|href)\s*=\s*[\"'`]([^\"'`]+)|(?:fetch|import)\(\s*[\"'`]([^\"'`]+)", text)
            loads = [one or other for one, other in loads]
        else:
            continue
        found += [f"{path.relative_to(site)}: {one}" for one in loads if ELSEWHERE.match(one)]
    assert not found


def test_pictures_have_words(site: Path) -> None:
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert not {path.name: page.wordless for path, page in pages.items() if page.wordless}


def test_what_is_loaded_is_found() -> None:
    page = '<link rel="stylesheet" href="//a/b.css"><link rel="canonical" href="https://a"><a href="https://b">b</a>'
    page += "<script src='https://c/d.js'></script><img src='e.svg'><p style='background: url(https://f)'></p>"
    found = Page(page)
    assert found.loads == ["//a/b.css", "https://c/d.js", "e.svg", "https://f"]
    assert found.wordless == ["e.svg"]
    assert [bool(ELSEWHERE.match(one)) for one in found.loads] == [True, True, False, True]
    assert _of_css("@import 'https://a'; @font-face { src: url(\"https://b\") }") == ["https://a", "https://b"]

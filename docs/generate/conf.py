"""Sphinx's settings for the site: nothing of it is loaded from another host."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

project = "tensorop"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
extensions = ["myst_parser"]
myst_heading_anchors = 4
myst_enable_extensions = ["alert"]
suppress_warnings = ["misc.highlighting_failure"]  # an example of JSON may have `...`
exclude_patterns = [".doctrees"]
highlight_language = "none"  # where a block names no language
smartquotes = False  # `--option` in a sentence
html_theme = "furo"
html_title = f"tensorop {version}"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False

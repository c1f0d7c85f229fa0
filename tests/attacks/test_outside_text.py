"""Text from outside in files that compilers, builds and shells read: it is read there, and nothing more."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tensorop.cuda import library as device_library
from tensorop.errors import SpecError
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.winner import Winners
from tensorop.package import cmake
from tensorop.package.sources import OperatorPart, Sources, sources
from tensorop.render import words
from tensorop.specs import operators, platforms
from tests.support import device_products, products

EVIL = "__attribute__((constructor)) static void evil(void) { }"
HOSTILE = [
    f"*/ {EVIL} /*",
    f'"; {EVIL} const char *more = "',
    f"K1 *\\\n/ {EVIL} /\\\n*",
    f"K1 \n#define static\n{EVIL} //",
    f"K1 ??/\n*/ {EVIL} \\",
    f"K1 */ {EVIL} \r\u2028\u202e\x00\x1b[2J é ?\\?/",
    '"\\ // %s $(id) ${CMAKE_C_COMPILER} `id` @VERSION@ #; ) message(FATAL_ERROR x) \n Libs: -levil',
]
_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|\w+|\S', re.DOTALL)
_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")


def tokens(text: str) -> list[str]:
    """What a compiler takes of C: no comments, of a string that it is one; lines joined first, as it does."""
    assert not _TRIGRAPH.search(text)
    assert text.isascii()
    text = text.replace("\\\n", "")
    kept: list[str] = []
    for match in _TOKEN.finditer(text):
        token = '""' if match[0].startswith('"') else match[0]
        if not token.startswith(("/*", "//")) and not (token == '""' and kept[-1:] == ['""']):  # a long one in pieces
            kept.append(token)
    return kept


def made(text: str, label: str) -> tuple[Platform, Sources]:
    """A product's C with `text` wherever text from outside may be. label: of templates, whose names become
    identifiers."""
    operator: Operator = replace(operators.load("gemm"), description=text)
    platform = replace(platforms.load("rvv"), name=text, description=text)

    def named(found: Winners) -> Winners:
        variants = tuple(
            replace(v, kernel=replace(v.kernel, template=replace(v.template, name=label, strategy=text)))
            for v in found.variants
        )
        return replace(found, variants=variants)

    found = [products.by_vlen(named(products.winners(("f32",))[0]))]
    return platform, sources(OperatorPart(operator, found, {"unit": text}, text), platform, text)


def every(of: Sources) -> Mapping[str, str]:
    units = {unit.name: unit.text for library in of.libraries for unit in library.units}
    return {**dict(of.headers), **dict(of.private), **units}


@pytest.fixture(scope="module")
def honest() -> dict[str, list[str]]:
    return {name: tokens(text) for name, text in every(made("text", "name")[1]).items()}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_adds_a_token_to_a_product(text: str, honest: dict[str, list[str]]) -> None:
    platform, of = made(text, text)
    called = words.identifier(text)
    found = {
        name.replace(called, "name"): [token.replace(called, "name") for token in tokens(c)]
        for name, c in every(of).items()
    }
    assert found == honest
    shown = words.in_build_file(text)
    config = cmake.package_files(of, platform)["TensorOpConfig.cmake"]
    for file in (config, *cmake.pkgconfig_files(of, platform).values()):
        assert text not in file
        assert shown in file
    assert not re.search(r"[^\x20-\x7e]|[\"'\\`$@#;<>|&(){}]", shown)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_adds_a_token_to_a_library_for_a_device(text: str) -> None:
    platform = platforms.load("cuda-wmma")
    content, _ = device_products.made(platform, 2, ("f16",))

    def rendered(word: str) -> list[str]:
        measured = {"reach": 1, "squarings": 1, "odd": 1, "parts": (1, 1, 1, 1), "where": word}
        measured |= {"rows": [], "figures": [], "variants": [(0, 0)] * len(content.variants)}
        own = replace(platform, name=word)
        files = device_library.sources(content.operator, own, content.variants, content.images, {}, measured)
        return [
            token
            for name, data in sorted(files.items())
            if name.endswith((".c", ".h"))
            for token in tokens(data.decode())
        ]

    assert rendered(text) == rendered("text")


@pytest.mark.parametrize("value", ["1}; evil(); {", "a b", 1.5, None, ["x"], "x" * 65])
def test_a_tunable_is_a_number_or_a_word(value: object) -> None:
    with pytest.raises(SpecError, match="tunable 'mc': expected a number or a word"):
        words.value("mc", value)  # type: ignore[arg-type]
    assert words.value("by", "rows") == "rows"


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_is_a_command_of_a_kits_script(text: str, tmp_path: Path) -> None:
    said = words.in_build_file(f"{text} $(touch there) `touch there`")
    script = f'echo "this kit is for {said}"'
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert done.stdout == f"this kit is for {said}\n"
    assert not list(tmp_path.iterdir())

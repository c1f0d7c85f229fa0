"""A fuzzing target for each format that others write: shipped files with pieces exchanged, cut, doubled and made nasty.

    pytest tests/attacks/test_fuzz.py                                  a few examples of each
    pytest tests/attacks/test_fuzz.py --fuzz 600 -k journal            ten minutes of one
    pytest tests/attacks/test_fuzz.py --fuzz 600 --timeout 20000       ten minutes of each

Whatever comes is taken or refused by an error of ours. No example may take ten seconds, nor all of them a gibibyte.
"""

from __future__ import annotations

import contextlib
import json
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tensorop import api, tuning
from tensorop.author import gate, offline
from tensorop.author.llm import completion, reading
from tensorop.author.parse import parse
from tensorop.calibration.constants import Calibration
from tensorop.cli.main import cli
from tensorop.commands import opened
from tensorop.errors import TensoropError
from tensorop.model.point import Point
from tensorop.package import card, plugin_record
from tensorop.process import barrier
from tensorop.render import instantiate, render, texts
from tensorop.report import gather
from tensorop.specs import board, inherit, microbench, products, yamlfile, yamltext
from tensorop.specs import operators as operator_specs
from tensorop.specs import platforms as platform_specs
from tensorop.specs import primitives as primitive_specs
from tensorop.specs.printable import printable
from tensorop.store import journal
from tests.support.commands import ROOT

EXAMPLES = 25  # of each target in the whole suite
SECONDS = 10.0  # for one example
MEMORY = 1 << 30  # bytes

OPERATOR, PLATFORM = operator_specs.load("gemm"), platform_specs.load("generic")
PRIMITIVES = PLATFORM.primitives_of("f32")
RUN = ROOT / "tests" / "data" / "run" / "share" / "tensorop"

PIECES = [
    *("!!int abc", "!!python/name:os.system", "2020-13-45", ".nan", "-.inf", "1e999", "&a [*a]", "*a", "&a", "<<: *a"),
    *("9" * 5000, "-1", "0", "1", "1048576", "9223372036854775808", "null", "~", "true", "[]", "{}", "NaN", "1.5"),
    *("[" * 4000, "{" * 4000, "(" * 4000, "- " * 400, "-" * 400, "1+" * 3000, "\n" * 50, "\x00", "\x1b[2J", "\u202e"),
    *("\ud800", "\r", "\r\n", "\t", "---", "```", "~~~", "<think>", "</think>", "{{", "}}", "{%", "%}", "{#", "#}"),
    *("{{ 1 // 0 }}", "{% for i in [1] %}", "{% endfor %}", "{% macro f() %}", "{{ ''.__class__ }}", "{% if 1 %}"),
    *("//", "/*", "*/", "asm", "#include", "goto x;", "??/", "\\", '"', "'", "static", "(", ")", ";", "{", "}", "*&"),
    *("mr_vectors", "nr", "ku: [0]", "lanes", "np.f2py", "np.zeros(10**9)", "v.T", "__import__", ", ", ": "),
    *("-fplugin=x", "/"),
]  # fmt: skip


@st.composite
def changed(draw: st.DrawFn, whole: tuple[str, ...]) -> str:
    """One of the texts after one to four changes."""
    text = draw(st.sampled_from(whole))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        length = draw(st.sampled_from((0, 1, 5, 40, 400)))
        piece = draw(st.one_of(st.sampled_from(PIECES), st.text(max_size=20)))
        match draw(st.integers(0, 3)):
            case 0:
                text = text[:at] + piece + text[at:]
            case 1:
                text = text[:at] + piece + text[at + length :]
            case 2:
                text = text[:at] + text[at + length :]
            case 3:
                text = text[:at] + text[at : at + length] * 2 + text[at + length :]
    return text


TEMPLATES = tuple(file.read_text() for file in offline.files(OPERATOR.folder).values())
BODIES = tuple(text.split("\n---\n", 1)[1] for text in TEMPLATES)
HEAD = "---\nstrategy: one\nreads: {a: columns, b: scalars}\nneeds: [fma]\ntunables: {mr_vectors: [2], nr: [3]}\n---\n"
KERNELS = (
    "    const size_t q = n;\n    for (size_t p = 0; p < k; ++p)\n        c[p] = alpha * a[p] + (float)q;\n",
    "    float s = 0;\n    if (k > 1) { s += fma(s, s, b[0], 1); }\n    c[0] = s;\n",
)


def _reply(text: str) -> None:
    found = barrier.guarded("author", reading.template_text, text)
    assert isinstance(found, str)
    parse(found, operator="gemm", name="d", author="llm")


def _body_of_a_completion(text: str) -> None:
    completion.read(text.encode(errors="surrogatepass"), "application/json")


def _head(text: str) -> None:
    template = parse(text, operator="gemm", name="d", author="llm")
    instantiate.micro_space(PLATFORM, template, "f32")


def _template(text: str) -> None:
    template = replace(parse(HEAD + "x", operator="gemm", name="d", author="llm"), text=text)
    barrier.guarded("gate", gate.check_template, template, PRIMITIVES)


def _c(text: str) -> None:
    if "{{" in text or "{%" in text or "{#" in text:
        return  # templates of others are rendered in a process of their own
    template = replace(parse(HEAD + "x", operator="gemm", name="d", author=offline.AUTHOR), text=text)
    point = Point.of({"mr_vectors": 2, "nr": 3})
    with contextlib.suppress(render.RenderError):
        barrier.guarded(
            "gate", texts.Texts().kernel, OPERATOR, PLATFORM, instantiate.variant(OPERATOR, template, "f32", point)
        )


def _schema(schema: type) -> Callable[[str], None]:
    return lambda text: void(yamlfile.validate(schema, yamltext.parse(text, "x.yaml"), "x.yaml"))


def void(_: object) -> None:
    """What is found is not looked at."""


def _model(text: str) -> None:
    data = yamltext.parse(text, "x.yaml")
    inherit.resolve([inherit.PlatformFile("x", Path("x.yaml"), data)])


def _journal(text: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = journal.journal_path(Path(place))
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode(errors="surrogatepass"))
        history = journal.read(Path(place))
        history.replay()
        with contextlib.suppress(Exception):  # `report` says the same of whatever a part of it raises
            gather.gather(Path(place))


def _manifest(text: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "share" / "tensorop" / "manifest.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode(errors="surrogatepass"))
        plugin_record.reopened(path, ())
        api.load(place)


def _calls(text: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "calls.txt"
        path.write_bytes(text.encode(errors="surrogatepass"))
        tuning.shapes(operator_specs.load("gemm"), f"@{path}")


def _card(text: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "libtensorop_gemm.so"
        path.write_bytes(b"\x7fELF" + card.MARKER.encode("latin-1") + text.encode(errors="surrogatepass") + b"\0")
        ended = CliRunner().invoke(cli, ["inspect", str(path)])
        assert ended.exception is None or isinstance(ended.exception, TensoropError | SystemExit), ended.exception
        assert not [c for c in ended.output if not c.isprintable() and c not in "\n\t"]
        opened.open_product(path)


def read(*names: str) -> tuple[str, ...]:
    return tuple(file.read_text() for name in names for file in sorted(ROOT.glob(name)))


JOURNAL = (RUN / "journal.jsonl").read_text().splitlines(keepends=True)
BOOK = "".join([*JOURNAL[:12], *JOURNAL[-4:]])
COMPLETION = json.dumps(
    {"choices": [{"finish_reason": "stop", "message": {"content": TEMPLATES[0][:2000]}}], "usage": {"prompt_tokens": 3}}
)
CARRIED = json.dumps(
    {
        **json.loads((RUN / "manifest.json").read_text()),
        "plugins": {"platforms/mine.yaml": (ROOT / "platforms" / "generic.yaml").read_text()},
    }
)

CALLS = (
    "# mine\n64x64x64 2.5\n1x300x200\n",
    "sgemm layout=col transa=N transb=T m=64 n=32 k=16 calls=5 seconds=3.1\n"
    "ddot n=8 incx=1 incy=1 calls=1 seconds=0.1\n",
)

TARGETS: dict[str, tuple[Callable[[str], None], tuple[str, ...]]] = {
    "reply": (_reply, tuple(f"Here it is.\n<think>so</think>\n```\n{text}\n```\n" for text in TEMPLATES)),
    "completion": (_body_of_a_completion, (COMPLETION,)),
    "head": (_head, tuple(text.split("\n---\n", 1)[0] + "\n---\nbody\n" for text in TEMPLATES)),
    "template": (_template, BODIES),
    "c": (_c, KERNELS),
    "platform": (_schema(platform_specs.PlatformSpec), read("platforms/generic.yaml", "platforms/rvv.yaml")),
    "primitives": (_schema(primitive_specs.SetSpec), read("primitives/scalar.yaml", "primitives/avx2.yaml")),
    "operator": (_schema(operator_specs.OperatorSpec), read("templates/gemm/operator.yaml")),
    "product": (_schema(products.ProductSpec), read("templates/gemm/product/product.yaml")),
    "model": (_model, read("platforms/cortex-a72.yaml")),
    "published": (_schema(microbench._Published), read("platforms/published/cortex-a53.yaml")),
    "benches": (_schema(microbench._Benches), read("tensorop/native/microbench/riscv64/bench.yaml")),
    "calibration": (_schema(Calibration), ("schema: 1\nplatform: x\nmodel: {name: a, version: 1}\n",)),
    "board": (_schema(board.BoardModel), read("platforms/cortex-a72.yaml")),
    "journal": (_journal, (BOOK,)),
    "manifest": (_manifest, (CARRIED,)),
    "card": (_card, ((RUN / "manifest.json").read_text(),)),
    "calls": (_calls, CALLS),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.filterwarnings("ignore")
def test_a_format(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path))
    target, whole = TARGETS[name]
    assert whole
    wanted = float(request.config.getoption("--fuzz"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slowest, tried = (0.0, ""), 0

    def one(text: str) -> None:
        nonlocal slowest, tried
        tried += 1
        began = time.process_time()
        with contextlib.suppress(TensoropError):
            target(text)
        slowest = max(slowest, (time.process_time() - began, text))

    began, number = time.monotonic(), 0
    while number == 0 or time.monotonic() - began < wanted:
        rounds = settings(
            max_examples=200 if wanted else EXAMPLES,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink) if wanted else (Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        rounds(seed(number)(given(changed(whole))(one)))()
        number += 1
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    print(f"{name}: {tried} examples, the slowest {slowest[0]:.2f} s, {grown >> 20} MiB more")
    assert slowest[0] < SECONDS, printable(slowest[1][:2000])
    assert grown < MEMORY, f"{name} took {grown >> 20} MiB"

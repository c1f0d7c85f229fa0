"""YAML of strangers: whatever a text holds, it is read or refused with its line, at once."""

from __future__ import annotations

import pytest

from tensorop.author.parse import parse as parse_template
from tensorop.errors import SpecError
from tensorop.model.expression import parse as parse_constraint
from tensorop.specs import yamltext

LAUGHS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "\n".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]" for i in range(9)
)
MERGED = "a: &a {k0: 1}\n" + "\n".join(
    f"{chr(98 + i)}: &{chr(98 + i)} {{k{i}: 1, <<: [{', '.join([f'*{chr(97 + i)}'] * 9)}]}}" for i in range(9)
)
REFUSED = {
    "tag with a word": ("a: !!int abc", "line 1: the tag .*int' is not allowed"),
    "tag with a number": ("a: !!float 1", "the tag"),
    "tag of binary": ("a: !!binary aGk=", "the tag"),
    "tag of a set": ("a: !!set {x}", "the tag"),
    "tag of Python": ("a: 1\nb: !!python/object/apply:os.system [id]", "line 2: the tag"),
    "tag in full": ("a: !<tag:yaml.org,2002:timestamp> 2024-01-01", "the tag"),
    "tag without a name": ("a: ! x", "the tag"),
    "own tag": ("%TAG !e! tag:example.com,2000:\n---\na: !e!x 1", "the tag"),
    "many digits": ("a: " + "1" * 5000, "an integer of 5000 digits"),
    "many digits in hexadecimal": ("a: 0x" + "f" * 5000, "an integer of 5002 digits"),
    "65 bits": ("a: 18446744073709551616", "does not fit in 64 bits"),
    "no number": ("a: .nan", "a finite number"),
    "infinite": ("a: -.inf", "a finite number"),
    "too large": ("a: 1e999", "a finite number"),
    "4000 brackets": ("a: " + "[" * 4000, "line 1: nested more than 32 deep"),
    "4000 brackets on lines": ("a:\n" + " [\n" * 4000, "line 3[0-9]: nested more than 32 deep"),
    "4000 brackets in a deep place": ("a: 1\nb: {c: " + "[" * 4000, "line 2: nested more than 32 deep"),
    "4000 braces": ("{a: " * 4000, "nested more than 32 deep"),
    "4000 keys": ("? " * 4000, "nested more than 32 deep"),
    "deep blocks": ("\n".join(" " * i + "a:" for i in range(400)), "nested more than 32 deep"),
    "laughs": (LAUGHS, "more than 200000 values"),
    "merged laughs": (MERGED, "more than 200000 values|appears twice"),
    "itself": ("a: &x [*x]", "'x' contains itself"),
    "merged itself": ("a: &x {<<: *x}", "'x' contains itself"),
    "unknown alias": ("a: *x", r"line 1: .\*x. refers to nothing"),
    "half of a character": ('a: 1\nb: "\ud800"', "line 2: .*invalid Unicode"),
    "control character": ("a: \x1b[2J", "not readable as YAML"),
    "zero byte": ("a: \x00", "not readable as YAML"),
    "list as key": ("? [1]\n: 2", "as key, got"),
    "number as key": ("1.5: 2", "as key, got 1.5"),
    "nothing as key": ("~: 2", "as key, got None"),
    "key twice": ("a: 1\na: 2", "line 2: .*'a' appears twice"),
    "two documents": ("a: 1\n---\nb: 1", "line 2: a second document"),
    "no mapping": ("[1, 2]", "expected a mapping of keys, got list"),
    "nothing": ("", "expected a mapping of keys, got NoneType"),
    "a megabyte": ("a: " + "x" * (1 << 20), "the YAML has 1048579 characters"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_place(name: str) -> None:
    text, says = REFUSED[name]
    with pytest.raises(SpecError, match=says) as caught:
        yamltext.parse(text, "some.yaml")
    assert str(caught.value).startswith("some.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-13-45", "2024-13-45"),
        ("2024-01-01T25:61:61Z", "2024-01-01T25:61:61Z"),
        ("12:30:45", "12:30:45"),
        ("1:2.5", "1:2.5"),
        ("017", "017"),
        ("=", "="),
        ("-0x10", -16),
        ("1_000", 1000),
        ("-1.5e3", -1500.0),
        ('"\\x1b"', "\x1b"),
        ("[~, yes, 1]", [None, True, 1]),
    ],
)
def test_no_dates_and_no_sexagesimals(text: str, value: object) -> None:
    assert yamltext.parse(f"a: {text}", "some.yaml") == {"a": value}


HEAD = "---\nstrategy: one\nreads: {a: rows}\nneeds: []\ntunables: {mr_vectors: [1]}\n%s\n---\nbody\n"


@pytest.mark.parametrize(
    "more",
    [
        "seed_configurations: [{mr_vectors: !!int abc}]",
        "seed_configurations: " + "[" * 4000,
        "seed_configurations: [{mr_vectors: " + "9" * 5000 + "}]",
        "seed_configurations: 2024-13-45",
        "x: &a 1\ny: *a",
        "'\ud800': 1",
    ],
)
def test_a_head_of_a_template(more: str) -> None:
    with pytest.raises(SpecError):
        parse_template(HEAD % more, operator="gemm", name="d", author="llm")


@pytest.mark.parametrize("must", ["-" * 490 + "mr_vectors", "mr_vectors == '\ud800'", "9" * 400, "mr_vectors\0"])
def test_a_constraint_that_cannot_be_read(must: str) -> None:
    with pytest.raises(SpecError, match=r"deeply|not an expression|not allowed"):
        parse_constraint(must, {"mr_vectors": int})

"""Spaces against brute force: the product filtered by Python's own evaluation."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorop.errors import JobError, SpecError
from tensorop.model.expression import parse
from tensorop.model.kernel import Constraint
from tensorop.model.point import Point
from tensorop.space import Space

NUMBERS = st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True).map(tuple)
WORDS = st.lists(st.sampled_from(["ab", "ba", "none"]), min_size=1, max_size=3, unique=True).map(tuple)
CONSTRAINTS = st.lists(
    st.sampled_from(
        [
            "a * b <= limit",
            "a % 2 == 0 or b > 3",
            "min(a, b, 4) != max(c, 1)",
            "w != 'ab' or a < 5",
            "w in ('ab', 'none')",
            "a // b >= 1",
            "not (a == b) and -c <= limit - 7",
            "1 <= a < limit",
            "c in (0, 2, 4, 6, 8)",
        ]
    ),
    max_size=4,
    unique=True,
)


def brute_force(dimensions, constraints, facts):
    for values in itertools.product(*dimensions.values()):
        names = {**facts, **dict(zip(dimensions, values, strict=True))}
        try:
            if all(eval(must, {}, names) for must in constraints):
                yield Point.of(dict(zip(dimensions, values, strict=True)))
        except ZeroDivisionError:
            continue


@settings(max_examples=150, deadline=None)
@given(a=NUMBERS, b=NUMBERS, c=NUMBERS, w=WORDS, musts=CONSTRAINTS, limit=st.integers(1, 30), order=st.randoms())
def test_generated_points_are_the_brute_force_ones(a, b, c, w, musts, limit, order):
    items = [("a", a), ("b", b), ("c", c), ("w", w)]
    order.shuffle(items)
    dimensions = dict(items)
    expected = list(brute_force(dimensions, musts, {"limit": limit}))
    constraints = [Constraint(must, f"because {must}") for must in musts]
    if not expected:
        with pytest.raises(JobError, match="no configuration satisfies"):
            Space.of(dimensions, constraints, {"limit": limit})
        return
    space = Space.of(dimensions, constraints, {"limit": limit})
    assert list(space.points()) == expected
    assert space.size + sum(r.points for r in space.refusals()) == space.product
    assert [space.index(space.at(i)) for i in range(space.size)] == list(range(space.size))
    assert set(space.sample(random.Random(0), space.size)) == set(expected)
    for point in expected[:10]:
        for other in space.neighbours(point):
            assert other in space
            assert sum(point[name] != other[name] for name in dimensions) == 1


def test_the_first_point_that_agrees_with_a_part():
    space = Space.of({"a": (3, 1, 2), "b": (1, 2), "w": ("x", "y")}, [Constraint("a * b <= 4", "room")])
    names = {"a": (0, 1, 2, 3), "b": (1, 2), "w": ("x", "z")}
    found = 0
    for some in ((), ("a",), ("b",), ("a", "b"), ("w", "a"), ("a", "b", "w")):
        for values in itertools.product(*(names[name] for name in some)):
            part = dict(zip(some, values, strict=True))
            agree = [p for p in space.points() if part.items() <= p.items()]
            assert space.first(part) == (agree[0] if agree else None)
            found += bool(agree)
    assert found == 19
    assert space.first({"a": 1, "none": 1}) is None


def test_neighbours_skip_illegal_values():
    space = Space.of({"a": (1, 2, 3, 4), "w": ("x", "y", "z")}, [Constraint("a != 2", "two is odd here")])
    near = {str(p) for p in space.neighbours(Point.of(a=3, w="y"))}
    assert near == {"a=1 w=y", "a=4 w=y", "a=3 w=x", "a=3 w=z"}


def test_points_outside_are_outside():
    space = Space.of({"a": (1, 2)}, [Constraint("a > 1", "one is too few")])
    assert Point.of(a=2) in space
    for other in (Point.of(a=1), Point.of(a=7), Point.of(b=2), Point.of(a=2, b=2)):
        assert other not in space


def test_an_empty_space_counts_its_reasons():
    with pytest.raises(
        JobError,
        match=r"no configuration satisfies the constraints \(0 of 6\): .*registers.*: 4 points.*odd.*: 2 points",
    ):
        Space.of(
            {"mr": (8, 9, 10), "nr": (1, 2)},
            [Constraint("mr < 9", "too many registers"), Constraint("mr % 2 == 1", "odd")],
        )


def test_a_constraint_over_facts_alone_refuses_all_at_once():
    with pytest.raises(JobError, match=r"needs 32 registers.*1000000000000 points"):
        Space.of(
            {name: tuple(range(10)) for name in "abcdefghijkl"},
            [Constraint("registers >= 32", "needs 32 registers")],
            {"registers": 16},
        )


def test_an_endless_space_is_refused():
    with pytest.raises(JobError, match="too large to enumerate"):
        Space.of({name: tuple(range(20)) for name in "abcdefghijkl"}, [Constraint("l > 99", "never")])


@pytest.mark.parametrize(
    ("dimensions", "complaint"),
    [
        ({"a": (1, 1)}, "lists a value twice"),
        ({"a": (1, "x")}, "mixes words and numbers"),
        ({"registers": (1,)}, "name of a platform fact"),
    ],
)
def test_faulty_dimensions(dimensions, complaint):
    with pytest.raises(SpecError, match=complaint):
        Space.of(dimensions, (), {"registers": 32})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a ** 99999999", "not allowed"),
        ("a / 2 == 1", "not allowed"),
        ("a << 4000000000", "not allowed"),
        ("__import__('os').system('true')", "not allowed"),
        ("a.__class__ == 1", "not allowed"),
        ("(lambda: 1)()", "not allowed"),
        ("[x for x in (1,)]", "not allowed"),
        ("w * 1000000000 == w", "is a word; expected a number"),
        ("w + 1 == 2", "is a word; expected a number"),
        ("a == w", "compares a word with a number"),
        ("a in w", "followed by a list"),
        ("min(a)", "not allowed"),
        ("max(a, key=b)", "not allowed"),
        ("1.5 < a", "not allowed"),
        ("99999999999999999999 > a", "not allowed"),
        ("nr > 2", "unknown name 'nr'"),
        ("a >", "not an expression"),
        ("a; b", "not an expression"),
        ("a > 1 and " * 60 + "a", "at most"),
        ("a\0", "not an expression"),
        ("", "not an expression"),
    ],
)
def test_expressions_outside_the_language_are_refused(text, complaint):
    with pytest.raises(SpecError, match=complaint):
        parse(text, {"a": int, "b": int, "w": str})

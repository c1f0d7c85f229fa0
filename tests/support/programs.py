"""Random programs of the templates' language, near misses of them, and programs just outside it.

A program is the body of a function of sizes, strides and three operands (`AROUND`). Honest programs are written with
what is known of each index; a near miss has one or two tokens or statements exchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from tensorop.author import c_gate
from tensorop.model.primitive import Primitives
from tensorop.model.trial import Outcome
from tensorop.render import instantiate, render
from tensorop.specs import platforms

AROUND = """\
static void program(size_t m, size_t n, size_t k, const double *restrict a, size_t lda, const double *restrict b,
    size_t rsb, size_t csb, double *restrict c, size_t ldc, double alpha, double beta)
{
    /*@ holds(m >= 1); holds(n >= 1); holds(k >= 1); holds(lda >= 1); holds(ldc >= 1);
        reads(a, k, lda, m, 1); reads(b, k, rsb, n, csb); writes(c, n, ldc, m, 1); */
    const size_t lanes = lanes();
    const size_t full = full();
    (void)full;
BODY
}
"""
NEVER = "never();"  # in place of what the proof holds for never executed
_CALLED = ("full", "tail", "zero", "load", "load_tail", "load_strided", "store", "store_tail", "add", "mul", "prefetch")


def _primitives() -> Primitives:
    """Those of rvv, whose vectors have a length that no text knows, as functions of plain C (programs.c)."""
    found = platforms.load("rvv").primitives_of("f64")
    plain = {
        name: replace(one, c=f"plain_{name}({', '.join(f'${arg}' for arg in one.args)})", support="")
        for name, one in found.by_name.items()
        if name in _CALLED
    }
    return replace(found, by_name=plain, lanes="plain_lanes", vector="vector_t", support="")


PRIMITIVES = _primitives()
CALLABLES = instantiate.callables(PRIMITIVES)


def proved(body: str) -> str | Outcome:
    """The C of a program once the gate is through with it."""
    source = AROUND.replace("BODY", c_gate.marked(body))
    read = c_gate.read(source, body, PRIMITIVES, CALLABLES)
    if isinstance(read, Outcome):
        return read
    return render.expand(c_gate.unmarked(read.trapped(NEVER), body), CALLABLES)


def compiled_unproved(body: str) -> str:
    """The C of a program that the gate refuses."""
    return render.expand(AROUND.replace("BODY", body), CALLABLES)


@dataclass
class Writer:
    """Writes one honest program. Each expression of `known[size]` is at least 0 and below this size where it stands."""

    rng: Random
    known: dict[str, list[str]] = field(default_factory=lambda: {"m": ["0"], "n": ["0"], "k": ["0"]})
    made: int = 0
    size: str = ""  # the one that conditions compare with numbers (the rule of paths)

    def program(self) -> str:
        self.size = self.rng.choice("mnk")
        return "\n".join(self.statement(0) for _ in range(self.rng.randint(1, 3))) + "\n"

    def name(self, of: str) -> str:
        self.made += 1
        return f"{of}{self.made}"

    def under(self, size: str, indices: list[str], depth: int, count: int = 2) -> str:
        """Statements in which these are indices of this size."""
        before = self.known[size]
        self.known[size] = [*before, *indices, *indices]  # the newest are the likeliest
        made = " ".join(self.statement(depth + 1) for _ in range(self.rng.randint(1, count)))
        self.known[size] = before
        return made

    # ---- indices and places

    def index(self, size: str) -> str:
        rng, one = self.rng, self.rng.choice(self.known[size])
        if rng.random() < 0.75:
            return one
        found = [f"{size} - 1", f"{size} / 2", f"{size} % 3 / 3", f"({size} - 1) / 2", f"({size} >> 1)"]
        found += [f"{size} - 1 - {one}"] if re.fullmatch(r"\w+", one) else []
        found += [f"(3 < {size} - 1 ? 3 : {size} - 1)"] if size == self.size else []
        return rng.choice(found)

    def times(self, size: str, stride: str) -> str:
        index = self.index(size)
        index = index if re.fullmatch(r"\w+", index) else f"({index})"
        return self.rng.choice([f"{index} * {stride}", f"{stride} * {index}"])

    def offset(self, operand: str) -> str:
        parts = {
            "a": (self.times("k", "lda"), self.index("m")),
            "b": (self.times("k", "rsb"), self.times("n", "csb")),
            "c": (self.times("n", "ldc"), self.index("m")),
        }[operand]
        return " + ".join(parts if self.rng.random() < 0.7 else parts[::-1])

    def place(self, operand: str) -> str:
        at = self.offset(operand)
        return self.rng.choice([f"{operand}[{at}]", f"{operand}[{at}]", f"*({operand} + {at})"])

    def data(self) -> str:
        one = self.rng.choice([self.place("a"), self.place("b"), self.place("c"), "alpha", "beta", "0"])
        return one if self.rng.random() < 0.6 else f"{one} {self.rng.choice('+-*')} {self.data()}"

    # ---- statements

    def statement(self, depth: int) -> str:
        simple = [self.change, self.change, self.vector, self.array]
        nested = [
            self.up,
            self.up,
            self.down,
            self.steps,
            self.walk,
            self.vectors,
            self.choice,
            self.choice,
            self.local,
        ]
        return self.rng.choice(simple if depth > 2 else nested if depth == 0 else simple + nested)(depth)

    def change(self, _: int) -> str:
        return f"{self.place('c')} {self.rng.choice(['=', '+=', '-=', '*='])} {self.data()};"

    def vector(self, _: int) -> str:
        """A part of a vector at a place that has this many elements."""
        some, row = self.name("s"), self.times("n", "ldc")
        return (
            f"{{ size_t {some} = m < lanes ? m : lanes; "
            f"store_tail(c + {row}, {self.rng.choice(['zero(full)', f'load_tail(a, tail({some}))'])}, tail({some})); }}"
        )

    def array(self, _: int) -> str:
        x, q, size = self.name("x"), self.name("q"), self.rng.choice([2, 3, 4, 8])
        first = self.rng.choice(["= {0}", f"= {{{self.data()}, 0}}"])
        return (
            f"{{ double {x}[{size}] {first}; for (int {q} = 0; {q} < {size}; ++{q}) {x}[{q}] += {self.data()}; "
            f"{self.place('c')} = {x}[{self.rng.randrange(size)}]; }}"
        )

    def up(self, depth: int) -> str:
        size, i = self.rng.choice("mnk"), self.name("i")
        first = self.rng.choice("0012")
        indices = [i, *(f"{i} - {number + 1}" for number in range(int(first)))]
        body = self.under(size, indices, depth)
        return self.rng.choice(
            [
                f"for (size_t {i} = {first}; {i} < {size}; ++{i}) {{ {body} }}",
                f"for (size_t {i} = {first}; {size} > {i}; {i} += 1) {{ {body} }}",
                f"{{ size_t {i} = {first}; while ({i} < {size}) {{ {body} ++{i}; }} }}",
            ]
        )

    def down(self, depth: int) -> str:
        size, i = self.rng.choice("mnk"), self.name("i")
        if self.rng.random() < 0.4:
            body = self.under(size, [i], depth)
            return f"for (ptrdiff_t {i} = (ptrdiff_t){size} - 1; {i} >= 0; --{i}) {{ {body} }}"
        body = self.under(size, [f"{i} - 1"], depth)
        return self.rng.choice(
            [
                f"for (size_t {i} = {size}; {i} > 0; --{i}) {{ {body} }}",
                f"for (size_t {i} = {size}; {i}; --{i}) {{ {body} }}",
                f"{{ size_t {i} = {size}; while ({i} >= 1) {{ {body} {i} -= 1; }} }}",
            ]
        )

    def steps(self, depth: int) -> str:
        size, i, by = self.rng.choice("mnk"), self.name("i"), self.rng.choice([2, 3, 4])
        body = self.under(size, [i, f"{i} + {by - 1}"], depth)
        rest = self.under(size, [i], depth, 1)
        first = f"for (; {i} + {by} <= {size}; {i} += {by}) {{ {body} }}"
        return f"{{ size_t {i} = 0; {first} for (; {i} < {size}; ++{i}) {{ {rest} }} }}"

    def walk(self, depth: int) -> str:
        """A pointer that moves by a stride."""
        q, left = self.name("q"), self.name("left")
        at, column = self.index("m"), self.times("n", "csb")
        start, step, by = self.rng.choice([("a", "lda", at), (f"a + {at}", "lda", "0"), (f"b + {column}", "rsb", "0")])
        unrolled = self.rng.choice([1, 1, 2, 4])
        sum_ = " + ".join(f"{q}[{by}{f' + {u} * {step}' if u else ''}]" for u in range(unrolled))
        move = f"{q} += {step};" if unrolled == 1 else f"{q} += {unrolled} * {step};"
        test, count = ("", f"--{left}") if unrolled == 1 else (f" >= {unrolled}", f"{left} -= {unrolled}")
        first = f"const double *{q} = {start}; size_t {left} = k;"
        return f"{{ {first} for (; {left}{test}; {count}) {{ {self.place('c')} += {sum_}; {move} }} }}"

    def vectors(self, depth: int) -> str:
        """Vectors along m, and what is left of the last one."""
        i, some = self.name("i"), self.name("s")
        column, row = self.times("n", "ldc"), self.times("k", "lda")
        if self.rng.random() < 0.4:
            value = self.rng.choice(["zero(full)", f"load_tail(a + {row} + {i}, tail({some}))"])
            return (
                f"for (size_t {i} = 0; {i} < m; {i} += lanes) {{ size_t {some} = m - {i} < lanes ? m - {i} : lanes; "
                f"store_tail(c + {column} + {i}, {value}, tail({some})); }}"
            )
        more = self.rng.choice([1, 1, 2])
        by = "lanes" if more == 1 else f"{more} * lanes"
        at = self.rng.choice([i, f"{i} + {more - 1} * lanes"])
        value = self.rng.choice([f"load(a + {row} + {at}, full)", f"mul(load(a + {row} + {at}, full), alpha, full)"])
        rest = f"for (; {i} < m; ++{i}) c[{column} + {i}] = 0;"
        if more == 1 and self.rng.random() < 0.5:
            rest = f"if ({i} < m) store_tail(c + {column} + {i}, zero(full), tail(m - {i}));"
        store = f"store(c + {column} + {at}, {value}, full);"
        return f"{{ size_t {i} = 0; for (; {i} + {by} <= m; {i} += {by}) {store} {rest} }}"

    def choice(self, depth: int) -> str:
        """A condition, and what it shows."""
        rng, number = self.rng, self.rng.choice([1, 2, 3, 7, 8, 20])
        size = self.size
        other = rng.choice("mnk")
        match rng.randrange(6):
            case 0:
                found = f"if ({size} > {number}) {{ {self.under(size, [str(number)], depth)} }}"
            case 1:
                found = f"if ({size} >= {number + 1} && csb == 1) {{ {self.under(size, [str(number)], depth)} }}"
            case 2:
                found = f"if (beta == 0) {{ {self.under('m', [], depth)} }}"
            case 3:
                index = rng.choice(self.known[other])
                found = f"if ({index} < {size}) {{ {self.under(size, [index], depth)} }}"
            case 4:
                p, i = (rng.choice(self.known[one]) for one in "km")
                found = f"if (lda == 1) {{ {self.place('c')} = a[{p} + {i}]; }}"
            case _:
                flag = self.name("ok")
                inside = self.under(size, [str(number)], depth)
                return f"{{ bool {flag} = {size} > {number}; if ({flag}) {{ {inside} }} }}"
        if rng.random() < 0.3:
            found += f" else {{ {self.statement(depth + 1)} }}"
        return found

    def local(self, depth: int) -> str:
        """A local that is an index."""
        size, u = self.rng.choice("mnk"), self.name("u")
        if self.rng.random() < 0.5:
            return f"{{ size_t {u} = {self.index(size)}; {self.under(size, [u], depth)} }}"
        number = self.rng.choice([1, 3, 8])
        grows = f"size_t {u} = 0; if ({self.size} > {number}) {u} = {number};"
        return f"{{ {grows} {self.under(self.size, [u], depth)} }}"


# ---- near misses

_TOKENS = re.compile(r"\w+|<=|>=|==|!=|\+\+|--|\+=|-=|\*=|&&|\S")
_OTHER = {
    "<": ["<=", "!="], "<=": ["<"], ">": [">=", "!="], ">=": [">"], "==": ["!=", ">="], "++": ["--"], "--": ["++"],
    "+": ["-"], "-": ["+"], "+=": ["-=", "="], "-=": ["+="], "*": ["+"], "=": ["+="],
}  # fmt: skip
_ALIKE = (("m", "n", "k"), ("lda", "ldc", "rsb", "csb"))
_CHANGES = ("++{0};", "--{0};", "{0} += 1;", "{0} -= 2;", "{0} = 0;", "{0} += k;", "{0} += lanes;", "{0} = m;")


def near_miss(text: str, rng: Random) -> str:
    """The text after one or two changes."""
    for _ in range(rng.choice([1, 1, 1, 2])):
        tokens = [*_TOKENS.finditer(text)]
        match rng.randrange(8):
            case 0:
                text = _moved_statement(text, rng)
            case 1:  # a counter, a size or a pointer changes once more
                names = sorted({one[0] for one in tokens if re.fullmatch(r"[a-z]+\d+|[mnk]", one[0])})
                at = rng.choice([one.end() for one in tokens if one[0] in ";{" and _outside(text, one.start())])
                text = f"{text[:at]} {rng.choice(_CHANGES).format(rng.choice(names))}{text[at:]}"
            case _:
                for one in rng.sample(tokens, len(tokens)):
                    if others := _others(one[0], tokens):
                        text = text[: one.start()] + rng.choice(others) + text[one.end() :]
                        break
    return text


def _others(token: str, tokens: list[re.Match[str]]) -> list[str]:
    if token.isdecimal():
        return [str(int(token) + 1), str(max(int(token) - 1, 0)), str(2 * int(token))]
    if token in _OTHER:
        return _OTHER[token]
    found = [one for alike in _ALIKE if token in alike for one in alike if one != token]
    if re.fullmatch(r"[iuq]\d+|left\d+|s\d+", token):
        found += [one[0] for one in tokens if one[0] != token and re.fullmatch(r"[iu]\d+", one[0])]
        found += [f"({token} + 1)", f"({token} - 1)", f"({token} - 4)"]
    elif found and token in "mnk":
        found += [f"({token} + 1)", f"({token} - 1)", f"({token} - 4)", f"2 * {token}"]
    return found


def _outside(text: str, at: int) -> bool:
    """Whether a place is outside of a loop's head and of a list."""
    return text[:at].count("(") == text[:at].count(")")


def _statements(text: str) -> list[tuple[int, int]]:
    """The places of statements that change an element."""
    return [
        one.span()
        for one in re.finditer(r"(?:(?<=[{};] )|^)(?:c\[|\*\(c )[^;{}]*;", text, re.M)
        if _outside(text, one.start())
    ]


def _moved_statement(text: str, rng: Random) -> str:
    """The text with a statement at another place too, or nowhere."""
    found = _statements(text)
    if not found:
        return text
    first, last = rng.choice(found)
    statement = text[first:last]
    if rng.random() < 0.3:
        return f"{text[:first]};{text[last:]}"
    at = rng.choice([one.end() for one in re.finditer(r"[;}]", text) if _outside(text, one.start())])
    return f"{text[:at]} {statement}{text[at:]}"


# ---- just outside the language

Outside = Callable[[str], str]
OUTSIDE: dict[str, Outside] = {  # by what it adds: a statement in place of one that changes an element
    "do": lambda s: f"do {{ {s} --k; }} while (k);",
    "do once": lambda s: f"do {{ {s} }} while (0);",
    "switch": lambda s: f"switch (k) {{ case 1: {s} }}",
    "goto": lambda s: f"goto past; {s} past: ;",
    "break": lambda s: f"for (size_t z = 0; z < k; ++z) {{ {s} break; }}",
    "continue": lambda s: f"for (size_t z = 0; z < k; ++z) {{ if (z == 1) continue; {s} }}",
    "return": lambda s: f"if (k == 2) return; {s}",
    "comma in a condition": lambda s: f"if ((m, k) > 2) {{ {s} }}",
    "comma in a value": lambda s: s.replace(" = ", " = (alpha, beta) + ").replace(" += ", " += (alpha, beta) + "),
    "a change in a condition": lambda s: f"if (++k > 2) {{ {s} }}",
    "a change in an index": lambda s: f"{{ size_t z = 0; c[z++] = 0; {s} }}",
    "a chain": lambda s: f"{{ size_t y, z; y = z = 0; {s} }}",
    "a cast of data": lambda s: f"c[0] = (float)alpha; {s}",
    "a cast of a size to data": lambda s: f"c[0] = (double)k; {s}",
    "a size as data": lambda s: f"c[0] = k; {s}",
    "a cast to int": lambda s: f"if ((int)k > 2) {{ {s} }}",
    "a cast of an address": lambda s: f"{{ const char *z = (const char *)a; (void)z; {s} }}",
    "^": lambda s: f"if ((k ^ 1) > 2) {{ {s} }}",
    "&": lambda s: f"if (k & 1) {{ {s} }}",
    "|": lambda s: f"{{ const size_t z = k | 1; (void)z; {s} }}",
    "~": lambda s: f"if (~k > 2) {{ {s} }}",
    "unary minus": lambda s: f"if (-k > 2) {{ {s} }}",
    "minus data": lambda s: f"c[0] = -alpha; {s}",
    "?: on data": lambda s: f"c[0] = k > 2 ? alpha : beta; {s}",
    "?: on data by beta": lambda s: f"c[0] = beta == 0 ? 0 : c[0]; {s}",
    "?: on addresses": lambda s: f"{{ const double *z = k > 2 ? a : b; c[0] = *z; {s} }}",
    "?: that is no minimum": lambda s: f"{{ const size_t z = k > 2 ? 1 : 0; (void)z; {s} }}",
    "a literal as data": lambda s: f"c[0] = 1.5 * alpha; {s}",
    "a quotient of data": lambda s: f"c[0] = alpha / beta; {s}",
    "a condition on data": lambda s: f"if (a[0] > 0) {{ {s} }}",
    "a condition on alpha": lambda s: f"if (alpha > 0) {{ {s} }}",
    "an index of data": lambda s: f"{{ const size_t z = a[0]; (void)z; {s} }}",
    "two counters": lambda s: f"for (size_t y = 0, z = k; y < z; ++y, ++z) {{ {s} }}",
    "nested counters": lambda s: f"for (size_t y = 0; y < k;) {{ for (size_t z = 0; z < m; ++z) ++y; {s} }}",
    "a counter that is set": lambda s: f"for (size_t z = 0; z < k; ++z) {{ if (m == 1) z = 0; {s} }}",
    "a step of a size": lambda s: f"for (size_t z = 0; z < k; z += m) {{ {s} }}",
    "a step of a quotient": lambda s: f"for (size_t z = 0; z < k; z += k / 64) {{ {s} }}",
    "a bound that moves": lambda s: f"for (size_t z = 0; z < k; ++z) {{ ++k; {s} }}",
    "!= as a test": lambda s: f"for (size_t z = 0; z != k; ++z) {{ {s} }}",
    "two tests": lambda s: f"for (size_t z = 0; z < k && z < m; ++z) {{ {s} }}",
    "a halved counter": lambda s: f"for (size_t z = k; z > 0; z /= 2) {{ {s} }}",
    "a mixed condition": lambda s: f"if (k > 2 && m > 2 || csb == 1) {{ {s} }}",
    "a product of sizes": lambda s: f"if (m * k > 6) {{ {s} }}",
    "%=": lambda s: f"k %= 4; {s}",
    "<<=": lambda s: f"k <<= 1; {s}",
    "a shift by a size": lambda s: f"if (k << m > 2) {{ {s} }}",
    "a hexadecimal literal": lambda s: f"if (k > 0x2) {{ {s} }}",
    "a suffix": lambda s: f"if (k > 2u) {{ {s} }}",
    "sizeof": lambda s: f"if (k > sizeof(double)) {{ {s} }}",
    "addresses compared": lambda s: f"if (a == b) {{ {s} }}",
    "the address of an element": lambda s: f"{{ double *z = &c[0]; (void)z; {s} }}",
    "a truth as a size": lambda s: f"{{ const size_t z = k > 2; (void)z; {s} }}",
    "a divisor that may be 0": lambda s: f"{{ const size_t z = m / rsb; (void)z; {s} }}",
    "a volatile local": lambda s: f"{{ volatile size_t z = 0; (void)z; {s} }}",
    "a static local": lambda s: f"{{ static size_t z = 0; (void)z; {s} }}",
    "a function's call": lambda s: f"abort(); {s}",
    "a name of the function": lambda s: f"{{ size_t k = 0; (void)k; {s} }}",
}


def outside(text: str, what: str, rng: Random) -> str | None:
    """The text with what no program may have; None if it has no statement for that."""
    found = [(first, last) for first, last in _statements(text) if OUTSIDE[what](text[first:last]) != text[first:last]]
    if not found:
        return None
    first, last = rng.choice(found)
    return text[:first] + OUTSIDE[what](text[first:last]) + text[last:]


# ---- what is compiled

# Sizes and strides of calls: lanes, m, n, k, lda, rsb, csb, ldc
Call = tuple[int, int, int, int, int, int, int, int]
_HUGE = (1 << 56) - 1  # a stride that nothing is multiplied by


def calls(rng: Random, count: int) -> list[Call]:
    """Every operand is dense in some calls, and has gaps in others."""
    found: list[Call] = [(1, 1, 1, 1, 1, 1, 1, 1), (4, 1, 1, 1, _HUGE, _HUGE, _HUGE, _HUGE)]
    while len(found) < count:
        lanes = rng.choice([1, 2, 3, 4, 8])
        long = rng.randrange(8)  # one size may be long
        m, n, k = (
            rng.choice([20, 21, 40, 63, 64, 65, 70]) if long == at else rng.choice([1, 1, 2, 3, 4, 5, 7, 8, 9, 12])
            for at in range(3)
        )
        if rng.random() < 0.3:
            m = max(lanes * rng.choice([1, 2, 3]) + rng.choice([-1, 0, 0, 1]), 1)
        along_n, along_k = (n + rng.choice([0, 0, 3]), 1), (1, k + rng.choice([0, 0, 3]))
        rsb, csb = rng.choice([along_n, along_k, (2, 2 * k + 1), (1, 1), (2 * n + 1, 2), (0, 1)])
        lda, ldc = (rng.choice([m, m, m + 1, m + 5, 1]) for _ in range(2))
        lda, rsb = (rng.choice([_HUGE, one]) if k == 1 else one for one in (lda, rsb))
        ldc, csb = (rng.choice([_HUGE, one]) if n == 1 else one for one in (ldc, csb))
        found.append((lanes, m, n, k, lda, rsb, csb, ldc))
    return found


def whole_file(texts: list[str], harness: str, of: list[Call]) -> str:
    """The C of a program that calls each text (`proved`) with each size: `programs.c` with its tables."""
    named = (re.sub(r"\bprogram\(", f"program_{number}(", text, count=1) for number, text in enumerate(texts))
    table = ", ".join(f"program_{number}" for number in range(len(texts)))
    rows = ", ".join("{" + ", ".join(f"{one}u" if one < 1 << 31 else f"{one}ull" for one in row) + "}" for row in of)
    parts = {"PROGRAMS": "\n".join(named), "TABLE": table, "CALLS": rows}
    return re.sub(r"/\* @(\w+) \*/", lambda found: parts[found[1]], harness)

"""Expressions and declarations."""

from __future__ import annotations

from tensorop.author.addresses.collectives import Collectives
from tensorop.author.addresses.conditions import COMPARISONS
from tensorop.author.addresses.knowledge import LANES, Refusal
from tensorop.author.addresses.linear import ZERO, number, symbol
from tensorop.author.addresses.syntax import Term
from tensorop.author.addresses.values import (
    INT,
    SIZE,
    Data,
    Int,
    OperandMemory,
    PartialVector,
    Ptr,
    State,
    Value,
    common,
    limits_of,
    literal,
)  # fmt: skip
from tensorop.author.gate import Guard
from tensorop.model.primitive import Collective


class Expressions(Collectives):
    """The values of expressions, and the values of names after them."""

    def _value(self, state: State, of: Term) -> Value:
        kind = of[0]
        if kind == "name":
            found = state.env.get(of[1])
            if found is None:
                raise Refusal(Guard.BOUNDS, f"'{of[1]}' has no known value here")
            if found is Data.UNSET and not self.trusted:
                raise Refusal(
                    Guard.LOCALS, f"'{of[1]}' may be read before it is written; initialize it in its declaration"
                )
            return found
        if kind == "call":
            if isinstance(called := self.callables.get(of[1]), Collective):
                return self._collective(state, called, of[2])
            return self._call(state, of[1], of[2])
        if kind == "two":
            return self._two(state, of[1], of[2], of[3])
        if kind == "assign":
            return self._assign(state, of[1], of[2], of[3])
        if kind == "item":
            return self._loaded(state, self._moved(state, of[1], of[2]))
        if kind == "number":
            return Data.NUMBER if of[1] is None else literal(of[1], of[2])
        match of:
            case "one", operator, right:
                return self._one(state, operator, right)
            case "step", by, first, to:
                old = self._value(state, to)
                new = self._computed(state, "+", old, Int(number(by), INT))
                new = self._write(state, to, new)
                return old if first else new
            case ("at", pointer):
                return self._loaded(state, self._value(state, pointer))
            case ("address", ("item", pointer, index)):
                return self._moved(state, pointer, index)
            case ("address", ("at", pointer)):
                return self._value(state, pointer)
            case ("address", _):
                raise Refusal(Guard.BOUNDS, "the address of a local is taken; pass an array to the primitive instead")
            case "part", value, ("x" | "y" | "z" | "w"):
                return self._computed(state, "+", self._value(state, value), Data.NUMBER)  # refused if not data
            case "cast", kind, stars, value:
                found = self._value(state, value)
                return Data.NOTHING if kind == "void" and not stars else self._converted(state, found, kind, stars)
            case "choice", condition, yes, no:
                return self._choice(state, condition, yes, no)
        raise Refusal(Guard.BOUNDS, f"its C has {of[1]}" if kind == "odd" else f"a {kind} is not allowed here")

    def _moved(self, state: State, pointer: Term, index: Term) -> Value:
        return self._computed(state, "+", self._value(state, pointer), self._value(state, index))

    def _two(self, state: State, operator: str, left: Term, right: Term) -> Value:
        if operator in ("+", "*", "-"):
            return self._computed(state, operator, self._value(state, left), self._value(state, right))
        if operator == ",":
            self._value(state, left)
            return self._value(state, right)
        if operator in COMPARISONS or operator in ("&&", "||"):
            if not self.trusted and self._is_scale(state, left, right):
                raise Refusal(
                    Guard.CONDITIONS, "a comparison of alpha or beta is used as a number; use it only in an if"
                )
            return self._either(state, *self._decide(state, ("two", operator, left, right)))
        return self._computed(state, operator, self._value(state, left), self._value(state, right))

    def _is_scale(self, state: State, *sides: Term) -> bool:
        return any(side[0] == "name" and state.env.get(side[1]) is Data.SCALE for side in sides)

    def _one(self, state: State, operator: str, right: Term) -> Value:
        if operator == "!":
            if not self.trusted and self._is_scale(state, right):
                raise Refusal(
                    Guard.CONDITIONS, "a comparison of alpha or beta is used as a number; use it only in an if"
                )
            yes, no = self._decide(state, right)
            return self._either(state, no, yes)
        found = self._value(state, right)
        if isinstance(found, Data):
            return self._computed(state, "+" if operator in "+-" else operator, found, Data.NUMBER)
        if operator == "+":
            return found
        if operator == "-":
            return self._computed(state, "-", Int(ZERO, INT), found)
        return Int(None, self._as_int(found).type)

    def _choice(self, state: State, condition: Term, yes: Term, no: Term) -> Value:
        if_yes, if_no = self._decide(state, condition)
        before = dict(state.env)
        found: list[tuple[Value, State]] = []
        for ways, of in ((if_yes, yes), (if_no, no)):
            under = self._under(state, ways)
            found.append((self._value(under, of), under))
            if under.env != before:
                raise Refusal(Guard.BOUNDS, "one operand of ?: changes a local; write an if")
        (a, under_a), (b, under_b) = found
        if isinstance(a, PartialVector) or isinstance(b, PartialVector):
            return a if a == b else PartialVector(ZERO)
        if isinstance(a, Data) or isinstance(b, Data):
            return a if a is b else Data.NUMBER
        if isinstance(a, Ptr) or isinstance(b, Ptr):
            if a == b:
                return a
            if not (self.places and isinstance(a, Ptr) and isinstance(b, Ptr)) or a._replace(offset=None) != b._replace(
                offset=None
            ):
                raise Refusal(Guard.BOUNDS, "?: chooses between two addresses; write an if")
            if a.offset is None or b.offset is None:
                return a._replace(offset=None)
            offset = self._chosen(state, (), (), negative=True)
            self._cases(offset, (if_yes, a.offset), (if_no, b.offset))
            self.hidden |= offset.symbols
            return a._replace(offset=offset)
        x, y = self._as_int(a), self._as_int(b)
        kind = common(x.type, y.type)
        if x == y:
            return Int(x.poly, kind)
        if not (self._whole(under_a, x) and self._whole(under_b, y)):
            return Int(None, kind)
        assert x.poly is not None
        assert y.poly is not None
        negative = not (self._prove(under_a, x.poly) and self._prove(under_b, y.poly))
        if negative and not kind.signed:
            return Int(None, kind)
        limits = [number(limit) for limit in limits_of(kind)] if negative else [ZERO]
        low, high = limits[:1], limits[1:]
        for one in (x.poly, y.poly):
            if self._prove(under_a, one - x.poly) and self._prove(under_b, one - y.poly):
                high.append(one)
            if self._prove(under_a, x.poly - one) and self._prove(under_b, y.poly - one):
                low.append(one)
        made = self._chosen(state, low, high, negative)
        self._cases(made, (if_yes, x.poly), (if_no, y.poly))
        return Int(made, kind)

    def _declare(self, state: State, of: Term) -> None:
        _, kind, names = of
        for name, stars, size, value in names:
            self._named(state, name, kind, stars + (size is not None))
            if not self.trusted:
                state.env[name] = Data.UNSET  # an initializer that uses the name means this local, not an outer one
            if size is not None:
                self._declare_array(state, name, kind, stars, size, value)
            elif name == LANES and self.trusted:
                state.env[name] = Int(symbol(LANES), SIZE)
            elif value is None:
                self._hold(state, name, Data.UNSET)
            else:
                self._hold(state, name, self._converted(state, self._value(state, value), kind, stars))

    def _hold(self, state: State, name: str, value: Value) -> Value:
        if name == LANES and not self.trusted and (isinstance(value, Data) or self._as_int(value).poly != symbol(name)):
            raise Refusal(Guard.NAMES, "'lanes' is the number of elements of a vector; choose another name")
        state.env[name] = value
        return value

    def _named(self, state: State, name: str, kind: str, stars: int) -> None:
        if name not in self.scopes[-1] and name in state.env:
            state.env[f"{name} {len(self.scopes) - 1}"] = state.env[name]
        self.scopes[-1][name] = kind, stars

    def _declare_array(self, state: State, name: str, kind: str, stars: int, size: str, value: Term | None) -> None:
        elements = self.data | self.vectors if self.places else self.data
        if stars or (kind not in elements and not self.trusted) or not size.isdecimal():
            if self.trusted:
                state.env[name] = Data.ODD
                return
            raise Refusal(Guard.BOUNDS, f"'{name}' is an array of another type; use arrays of {self.element}")
        flag = f"{name}[{len(self.scopes)}]"
        operand = OperandMemory(name, kind, 1, ((number(int(size)), ""),), True, flag)
        for item in value[1] if value is not None and value[0] == "row" else ():
            self._value(state, item)
        state.env[name] = Ptr(operand, ZERO, kind, 1)
        state.env[flag] = Data.UNSET if value is None else Data.NUMBER
        self.scopes[-1][flag] = kind, stars

    def _assign(self, state: State, operator: str, to: Term, value: Term) -> Value:
        new = self._value(state, value)
        if operator:
            new = self._computed(state, operator, self._value(state, to), new)
        return self._write(state, to, new)

    def _write(self, state: State, to: Term, value: Value) -> Value:
        match to:
            case ("name", name):
                kind, stars = self._declared_as(name)
                if not kind:
                    raise Refusal(Guard.NAMES, f"it changes '{name}', which is declared elsewhere")
                return self._hold(state, name, self._converted(state, value, kind, stars))
            case ("at", pointer):
                place = self._value(state, pointer)
            case "item", pointer, index:
                place = self._moved(state, pointer, index)
            case _:
                raise Refusal(Guard.BOUNDS, "an assignment needs a variable or an element of memory on its left side")
        if not isinstance(place, Ptr) or place.type in self.addresses:
            raise Refusal(Guard.BOUNDS, "a value that is not a pointer is dereferenced")
        self._near(place.offset)
        self._reach(state, place, (), writes=True)
        return Data.NUMBER  # the value that the element holds

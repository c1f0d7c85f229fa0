"""ExpressionReader of a template's C, each of one kind: a size, data, an address, a predicate or a condition.

So no text depends on how C converts between them, and a statement has one effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorop.author.c_types import TYPES
from tensorop.author.contracts import LANES, CallContract
from tensorop.author.grammar import Broken
from tensorop.author.terms import Term
from tensorop.model.primitive import Collective, shape_of

MOST_LITERAL = 1 << 31
SIZE, BOOL, DATA, PREDICATE, POINTER, SCALE = "a size", "a bool", "data", "a predicate", "an address", "alpha or beta"
COMPARED = ("<", "<=", ">", ">=", "==", "!=")
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
CASTS = ("size_t", "ptrdiff_t")


class ExpressionReader:
    """Reads the expressions of one template in its function; raises Broken for one that is not of its kind."""

    def __init__(self, contract: CallContract) -> None:
        self.contract, self.callables, self.predicate = contract, contract.callables, contract.primitives.predicate
        self.device = any(isinstance(one, Collective) for one in self.callables.values())
        self.scopes: list[dict[str, str]] = [{}]
        self.strides: set[str] = set()  # of the operands, by the contract
        self.laid = frozenset[str]()  # the same
        self.paces: set[str] = set()
        self.threads: set[str] = set()  # on a device, a thread's number and what is made of it and of literals
        self.factors: set[str] = set()  # those of them that a size is multiplied by

    def _is(self, kind: str, of: Term) -> None:
        """Refuses an expression that is not of the kind of the local that it becomes."""
        if kind is SIZE and of[0] == "call" and self._returns(of[1]) == "half":
            self._call(of[1], of[2])
            return
        reads = {SIZE: self._size, BOOL: self._flag, DATA: self._data, SCALE: self._data, POINTER: self._pointer}
        reads.get(kind, self._predicate)(of)

    def _condition(self, of: Term) -> None:
        """cond: atoms, all joined by && or all by ||."""
        join = of[1] if of[0] == "two" and of[1] in ("&&", "||") else ""
        if not join:
            self._atom(of)
            return
        for side in of[2:]:
            if side[:2] == ("two", "||" if join == "&&" else "&&") and not self.device:
                raise Broken("condition", "a condition mixes && and ||")
            self._condition(side)

    def _atom(self, of: Term) -> None:
        match of:
            case "one", "!", right:
                self._condition(right)
            case "two", operator, left, right if operator in COMPARED:
                if any(self._kind_of(side) is SCALE for side in (left, right)):
                    scale, other = (left, right) if self._kind_of(left) is SCALE else (right, left)
                    if operator not in ("==", "!=") or other[0] != "number" or other[2] not in ("0", "1"):
                        raise Broken("condition", f"'{scale[1]}' is compared otherwise than with 0 or 1 by == or !=")
                    return
                self._size(left)
                self._size(right)
            case ("name", name) if self._of(name) is BOOL:
                pass
            case ("call", name, arguments) if self._returns(name) == "bool":
                self._call(name, arguments)
            case _:
                self._size(of)

    def _flag(self, of: Term) -> None:
        """The value of a bool: a condition, or 0 or 1."""
        if of[0] != "number" or of[2] not in ("0", "1", ""):
            self._condition(of)

    def _size(self, of: Term) -> None:
        match of:
            case ("number", int(value), digits) if digits == str(value) and -self.device <= value < MOST_LITERAL:
                pass
            case ("name", name) if self._of(name) is SIZE or (self.device and self._of(name) is BOOL):
                pass
            case ("name", name) if self._of(name) is PREDICATE and self.contract.counted:
                pass
            case "two", ("+" | "-"), left, right:
                self._size(left)
                self._size(right)
            case "two", "*", left, right:
                self._product(left, right)
            case "two", ("/" | "%"), left, right:
                if right[0] == "number" and not right[1]:
                    raise Broken("division", "it divides by 0")
                self._size(left)
                self._size(right)
            case "two", ("<<" | ">>"), left, ("number", int(by), _) if 0 <= by < 32:
                self._size(left)
            case "choice", condition, yes, no:
                self._smaller(condition, yes, no)
            case "cast", kind, 0, value if kind in CASTS:
                self._size(value)
            case "call", name, arguments if name == LANES or self._returns(name) == SIZE:
                self._call(name, arguments)
            case (("item" | "at" | "part"), *_):
                raise Broken("data", f"a size or a condition depends on data, {words_of(of)}")
            case ("name", name) if self._of(name) in (DATA, SCALE):
                raise Broken("data", f"a size or a condition depends on data, '{name}'")
            case ("name", name) if self._of(name) is POINTER:
                raise Broken("pointer", f"an address, '{name}', is used as a size")
            case "call", name, _ if self._returns(name) == DATA:
                raise Broken("data", f"a size or a condition depends on data, a call of '{name}'")
            case ("cast", _, 0, value) | ("one", _, value):
                self._size(value)
                raise Broken("size", f"where a size is expected stands {words_of(of)}")
            case _:
                raise Broken("size", f"where a size is expected stands {words_of(of)}")

    def _product(self, left: Term, right: Term) -> None:
        self._size(left)
        self._size(right)
        if not (self._unit(left) or self._unit(right)):
            if thread := next((of for of in (left, right) if self._of_thread(of)), None):
                self.factors |= {thread[1]} if thread[0] == "name" else set()
                return
            raise Broken(
                "size", "a product has no side that is a literal, lanes, a stride or made of the thread's number"
            )

    def _of_thread(self, of: Term) -> bool:
        """Whether an expression is made of a thread's number and literals alone."""
        match of:
            case ("name", name):
                return name in self.threads
            case ("two", "+" | "-" | "*" | "/" | "%", left, ("number", *_)):
                return self._of_thread(left)
        return False

    def _unit(self, of: Term) -> bool:
        match of:
            case ("number", *_) | ("call", "lanes", ()):
                return True
            case ("name", name):
                return name == LANES or name in self.strides
            case "two", "*", left, right:
                return self._unit(left) and self._unit(right)
            case ("two", "/", inner, ("number", *_)) | ("cast", _, 0, inner):
                return self._unit(inner)
        return False

    def _smaller(self, condition: Term, yes: Term, no: Term) -> None:
        """a < b ? a : b, and the larger one alike."""
        if self.device:
            self._condition(condition)
        elif condition[0] != "two" or condition[1] not in MIRRORED or {condition[2], condition[3]} != {yes, no}:
            raise Broken("size", "?: chooses otherwise than the smaller or the larger of two sizes")
        self._size(yes)
        self._size(no)

    def _data(self, of: Term) -> None:
        match of:
            case ("number", value, digits):
                zero = value == 0 or digits.lower().rstrip("f") in ("0.", "0.0", ".0")
                if not (zero or (self.device and value == 1)):
                    raise Broken("data", f"the literal {digits} is data")
            case ("name", name) if self._of(name) in (DATA, SCALE):
                pass
            case (("item" | "at"), *_):
                self._element(of)
            case "two", ("+" | "-" | "*"), left, right:
                self._data(left)
                self._data(right)
            case "call", name, arguments if self._returns(name) == DATA:
                self._call(name, arguments)
            case _ if self.device:
                self._device_data(of)
            case _:
                raise Broken("data", f"where data are expected stands {words_of(of)}")

    def _device_data(self, of: Term) -> None:
        match of:
            case "part", value, ("x" | "y" | "z" | "w"):
                self._data(value)
            case "two", ">>", value, by:
                self._data(value)
                self._size(by)
            case "cast", kind, 0, value if kind in self.contract.data:
                self._data(value)
            case "choice", condition, yes, no:
                self._condition(condition)
                self._data(yes)
                self._data(no)
            case _:
                raise Broken("data", f"where data are expected stands {words_of(of)}")

    def _element(self, of: Term) -> None:
        if of[0] == "item":
            self._size(of[2])
        self._pointer(of[1])

    def _pointer(self, of: Term) -> None:
        match of:
            case ("name", name) if self._of(name) is POINTER:
                pass
            case "two", "+", left, right if self._kind_of(right) is POINTER:
                self._size(left)
                self._pointer(right)
            case "two", ("+" | "-"), left, right:
                self._pointer(left)
                self._size(right)
            case "item", rows, at:  # of an operand of pointers; the proof refuses any other
                self._pointer(rows)
                self._size(at)
            case "call", name, arguments if self._returns(name) == POINTER:
                self._call(name, arguments)
            case "choice", condition, yes, no if self.device:
                self._condition(condition)
                self._pointer(yes)
                self._pointer(no)
            case _:
                raise Broken("pointer", f"where an address is expected stands {words_of(of)}")

    def _predicate(self, of: Term) -> None:
        match of:
            case ("name", name) if self._of(name) is PREDICATE:
                pass
            case "call", name, arguments if self._returns(name) == PREDICATE:
                self._call(name, arguments)
            case _ if self.contract.counted:
                self._size(of)
            case _:
                raise Broken("statement", f"where a predicate is expected stands {words_of(of)}")

    def _call(self, name: str, arguments: Sequence[Term]) -> None:
        called = self.callables.get(name)
        if name == LANES or called is None:  # c_gate refuses an unknown one
            return
        if isinstance(called, Collective):
            for (kind, _, mark), argument in zip(called.declared, arguments, strict=False):
                if argument[0] == "two" and argument[1] in (*COMPARED, "&&", "||"):  # 0 or 1
                    self._condition(argument)
                elif mark != "&":  # the proof reads a changed local
                    self._is(POINTER if mark == "*" else self._kind(kind, 0), argument)
            return
        kinds = {"vector": DATA, "element": DATA, "pointer": POINTER, "matrix": POINTER, "predicate": PREDICATE}
        for kind, of in zip(called.args, arguments, strict=False):
            if (shape := shape_of(kind)) == "half":
                if of[0] == "call":
                    self._is(SIZE, of)
                else:
                    self._size(of)
            else:
                self._is(kinds.get(shape, SIZE), of)

    # ---- kinds

    def _kind(self, kind: str, stars: int, made: str = "") -> str:
        """The kind of a declared name. made: the primitive that its first value is of."""
        if stars or kind in self.contract.addresses:
            return POINTER
        if kind == self.predicate:  # a set's predicates may have the type of its sizes or vectors
            both = kind in TYPES or kind in self.contract.vectors
            if not both or self._returns(made) == PREDICATE:
                return PREDICATE
        if kind in self.contract.data or kind in self.contract.vectors:
            return DATA
        return BOOL if kind == "bool" else SIZE

    def _returns(self, name: str) -> str:
        called = self.callables.get(name)
        if isinstance(called, Collective):
            return "bool" if called.returns == "bool" else self._kind(called.returns, 0)
        returns = called.returns if called is not None else ""
        return PREDICATE if returns == "pred" else returns if returns in ("half", "memory", "none", "") else DATA

    def _of(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return ""

    def _kind_of(self, of: Term) -> str:
        """The kind of the name that an expression begins with."""
        match of:
            case ("name", name):
                return self._of(name)
            case "two", ("+" | "-"), left, _:
                return self._kind_of(left)
        return ""


def words_of(of: Term) -> str:
    """What an expression is, for a message."""
    match of:
        case ("name", name):
            return f"'{name}'"
        case ("number", _, digits):
            return f"the literal {digits}"
        case "two", operator, _, _:
            return f"'{operator}'"
        case "one", operator, _:
            return f"'{operator}'"
        case "call", name, _:
            return f"a call of '{name}'"
        case "cast", kind, stars, _:
            return f"a cast to {kind}{' *' * (stars > 0)}"
    words = {"item": "an element", "at": "an element", "assign": "an assignment", "step": "++ or --", "choice": "'?:'"}
    return words.get(of[0], {"row": "a list", "part": "a part of a vector"}.get(of[0], f"{of[-1]}"))

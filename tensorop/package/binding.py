"""The call of an operator from Python: that of its binding.py, else one generated from its operator.yaml."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter
from typing import Any, Protocol, cast

import numpy as np

from tensorop.errors import SpecError
from tensorop.model import expression
from tensorop.model.call import Access
from tensorop.model.number import Number
from tensorop.model.operator import Operator
from tensorop.model.signature import Operand
from tensorop.package.arguments import Array, dense, real, require_apart, require_output, whole
from tensorop.specs import extension, operators, products

_NO_MEMORY, _UNSUPPORTED = -5, -1  # of common.h


class Binding(Protocol):
    """What a binding.py has."""

    def declarations(self, dtypes: Sequence[str]) -> str:
        """The C declarations that `bind` uses, for cffi."""

    def bind(self, library: Any) -> Callable[..., Any] | Mapping[str, Callable[..., Any]]:
        """The function that calls a loaded library, which has cffi's `ffi` and `lib`, `dtypes` and `file`.

        Or several functions by their names.
        """


def of(operator: Operator, device: bool = False) -> Binding:
    """The binding of an operator. device: of its products for GPUs. Raises SpecError for a broken binding.py."""
    own = operators.binding(operator, device)
    found = cast(Binding, own) if own is not None else _Generated(operator)
    return found if operator.extension is None else _Extended(operator, found)


class _Extended:
    """The binding of an operator that extends another one: that one's call by its name, and more."""

    def __init__(self, operator: Operator, base: Binding) -> None:
        self._name, self._base, self._more = operator.folder.name, base, extension.calls(operator)

    def declarations(self, dtypes: Sequence[str]) -> str:
        return self._base.declarations(dtypes) + (self._more.declarations(dtypes) if self._more else "")

    def bind(self, library: Any) -> Mapping[str, Callable[..., Any]]:
        return {self._name: self._base.bind(library), **(self._more.bind(library) if self._more else {})}


class _Generated:
    """The binding of an operator whose product has the generated functions."""

    def __init__(self, operator: Operator) -> None:
        self._operator, self._contract = operator, operator.reference
        self._operands = operator.reference.operands
        self._inputs = [name for name, one in self._operands.items() if one.access in (Access.IN, Access.INOUT)]
        self._outputs = [name for name, one in self._operands.items() if one.access in (Access.OUT, Access.INOUT)]
        self._struct = f"tensorop_{operator.name}"
        for name, one in self._operands.items():
            if one.leading not in ("", "0"):
                file = operator.folder / "binding.py"
                raise SpecError(f"{file}: missing; without this file, operands.{name}.leading must be true")
        self._signature = self._named()

    def declarations(self, dtypes: Sequence[str]) -> str:
        interface, name = self._operator.interface, self._struct
        members = "".join(f"    {member.c} {member.name};\n" for member in interface.members)
        arguments = ", ".join([f"const struct {name} *", *("void *" for _ in interface.operands)])
        arguments += ", void *, size_t" if interface.workspace else ""
        calls = "".join(f"int {self._function(dtype)}({arguments});\n" for dtype in dtypes)
        checks = f"const char *{name}_message(int);\nint {name}_check(const struct {name} *);\n"
        return f"struct {name} {{\n{members}}};\n{checks}{calls}"

    def _function(self, dtype: str) -> str:
        return products.load(self._operator).types[dtype]["function"]

    def bind(self, library: Any) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            bound = self._signature.bind(*args, **named)
            bound.apply_defaults()
            return self._called(library, bound.arguments)

        call.__name__ = call.__qualname__ = self._operator.name
        call.__signature__ = self._signature  # type: ignore[attr-defined]
        call.__doc__ = self._documentation(library.dtypes)
        return call

    def _named(self) -> inspect.Signature:
        """Arrays that are read; then by name: sizes that no array has, flags, parameters, other arrays.

        A flag with the name of an operand is set if that array is given.
        """
        named, shapes, flags = Parameter.KEYWORD_ONLY, self._operator.shapes, self._contract.flags
        sides = {side for name in self._inputs for side in self._operands[name].shape}
        given = [name for name in self._inputs if name not in flags]
        found = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in given]
        found += [Parameter(name, named) for name in shapes.dims if name not in sides]
        found += [Parameter(name, named, default=None) for name in shapes.attributes if name not in sides]
        for name in [name for name in flags if name not in self._operands]:
            word, value = next(iter(flags[name].items()))
            found.append(Parameter(name, named, default=bool(value) if word.isdigit() else word))
        for name, usual in self._contract.parameters.items():
            found.append(Parameter(name, named, default=None if isinstance(usual, str) else usual))
        found += [Parameter(name, named, default=None) for name in self._operands if name not in given]
        try:
            return inspect.Signature(found)
        except ValueError as error:
            file = self._operator.folder / "binding.py"
            raise SpecError(f"{file}: missing; without this file, names must differ: {error}") from None

    def _documentation(self, dtypes: Sequence[str]) -> str:
        shapes = "\n".join(f"{name}: {', '.join(one.shape)}" for name, one in self._operands.items())
        return (
            f"{self._operator.description}\n\nReturns {', '.join(self._outputs)}. Shapes of the arrays:\n\n{shapes}\n\n"
            f"Number formats: {', '.join(dtypes)}. An array that is written is new if you give none; one that you give "
            "must be C-contiguous and overlap no other. Raises TypeError for other number formats, ValueError for "
            "shapes and values that do not fit."
        )

    def _called(self, library: Any, given: Mapping[str, Any]) -> Any:
        arrays = {name: np.asarray(given[name]) for name in self._operands if given[name] is not None}
        dtype = self._dtype(library.dtypes, arrays)
        known = {**self._sizes(arrays, given), **dict(self._flags(given))}
        numbers = {n: real(n, given[n]) for n in self._contract.parameters if given[n] is not None}
        lines = {f"ld_{name}": _line(self._operands[name], known) for name in self._contract.leading}
        call = library.ffi.new(f"struct {self._struct} *", {**known, **numbers, **lines})
        self._require(library, getattr(library.lib, f"{self._struct}_check")(call), known)
        for name in self._contract.parameters.keys() - numbers:
            setattr(call, name, expression.real(str(self._contract.parameters[name]), known))
        passed = {
            name: _fitting(name, arrays.get(name), one.sides(known), one.number(dtype), one.access)
            for name, one in self._operands.items()
        }
        for name, array in passed.items():
            if array is not None and self._operands[name].access is not Access.IN:
                require_apart(name, array, {other: one for other, one in passed.items() if other != name})
        at = [library.ffi.NULL if a is None else library.ffi.cast("void *", a.ctypes.data) for a in passed.values()]
        workspace = (library.ffi.NULL, 0) if self._operator.interface.workspace else ()
        self._require(library, getattr(library.lib, self._function(dtype))(call, *at, *workspace), {**known, **numbers})
        outputs = tuple(passed[name] for name in self._outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _dtype(self, dtypes: Sequence[str], arrays: Mapping[str, Array]) -> str:
        """The library's first dtype with the arrays' number formats."""
        for dtype in dtypes:
            if all(array.dtype.name in _names(self._operands[n].number(dtype)) for n, array in arrays.items()):
                return dtype
        got = ", ".join(f"{name} {array.dtype}" for name, array in arrays.items())
        raise TypeError(f"no dtype of this library ({', '.join(dtypes)}) has these number formats: {got}")

    def _sizes(self, arrays: Mapping[str, Array], given: Mapping[str, Any]) -> dict[str, int]:
        """All dimensions and attributes: from the arrays' shapes, else as given, else their defaults."""
        shapes = self._operator.shapes
        found: dict[str, int] = {}
        of: dict[str, str] = {}
        for name in self._inputs:
            sides = self._operands[name].shape
            if name not in arrays and all(side in shapes.dims for side in sides):
                raise ValueError(f"{name} has the sides {', '.join(sides)}; got None")
            if name in arrays and arrays[name].ndim != len(sides):
                raise ValueError(f"{name} has the sides {', '.join(sides)}; got an array of shape {arrays[name].shape}")
            for side, size in zip(sides, arrays[name].shape if name in arrays else (), strict=False):
                if side in shapes.names and found.setdefault(side, size) != size:
                    raise ValueError(f"{of[side]} and {name} differ in {side}: {found[side]} and {size}")
                of.setdefault(side, name)
        for name in shapes.names:
            if name not in found and given.get(name) is not None:
                found[name] = whole(name, given[name])
        return shapes.filled(found)

    def _flags(self, given: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
        for name, words in self._contract.flags.items():
            value = given[name]
            if name in self._operands:
                yield name, int(value is not None)
            elif isinstance(value, str):
                if value not in words:
                    legal = [repr(word) for word in words if not word.isdigit()] or ["True", "False"]
                    raise ValueError(f"{name} is {value!r:.80}: it must be {' or '.join(legal)}")
                yield name, words[value]
            else:
                yield name, whole(name, int(value) if isinstance(value, bool | np.bool_) else value, 32)

    def _require(self, library: Any, status: int, known: Mapping[str, float]) -> None:
        if status == 0:
            return
        sentence = library.ffi.string(getattr(library.lib, f"{self._struct}_message")(status)).decode()
        kind = {_NO_MEMORY: MemoryError, _UNSUPPORTED: RuntimeError}.get(status, ValueError)
        raise kind(f"{sentence} ({', '.join(f'{name} = {value}' for name, value in known.items())})")


def _names(number: Number) -> Iterator[str]:
    """The names of NumPy's dtypes for a number format; one that NumPy lacks has two."""
    yield np.dtype(number.storage).name
    if not number.whole and not issubclass(number.storage, np.floating):
        yield {"bf16": "bfloat16"}.get(number.name, number.name)


def _line(operand: Operand, known: Mapping[str, int]) -> int:
    """The length of an operand's lines; 1 if its shape is illegal, which the library finds."""
    try:
        return max(1, operand.sides(known)[-1])
    except SpecError:
        return 1


def _fitting(name: str, array: Array | None, shape: tuple[int, ...], number: Number, access: Access) -> Array | None:
    """The array to pass: dense, in this machine's byte order; None for no element."""
    if array is None:
        if access in (Access.IN, Access.INOUT) and np.prod(shape):
            raise ValueError(f"{name} has the shape {shape}; got None")
        return np.empty(shape, number.storage)
    if array.shape != shape:
        raise ValueError(f"{name} has the shape {shape}; got {array.shape}")
    if access is not Access.IN:
        require_output(
            name, array, (shape, array.dtype), lambda one: dense(one) is one, "an aligned, C-contiguous array"
        )
    return dense(array)

"""Calls of a GPU library from Python: handles, streams, workspace and arrays. An operator's device/binding.py adds its
own: how operands lie, and the problem that follows from it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorop.package import arguments
from tensorop.package import device_arrays as arrays
from tensorop.package.device_arrays import Array

_MOST_PLANS = 1024


def declarations(name: str, operands: Sequence[str], record: str) -> str:
    """The C declarations of an operator's library, for cffi. record: the members of its problem"""
    fn = f"tensorop_{name}"
    inputs = ", ".join(f"uintptr_t {one}" for one in operands)
    call = f"{fn}_handle handle, %sconst struct {fn}_problem *problem, {inputs}"
    return f"""
typedef struct {fn}_state *{fn}_handle;
struct {fn}_problem {{ {record} }};
const char *{fn}_message(int status);
int {fn}_create({fn}_handle *handle, int device);
int {fn}_destroy({fn}_handle handle);
int {fn}_workspace({call % ""}, size_t *bytes);
int {fn}_ex({call % "uintptr_t stream, "}, uintptr_t workspace, size_t bytes);
{arrays.DECLARATIONS}"""


class DevicePlan(NamedTuple):
    """What follows from how a call's operands lie."""

    problem: Any  # the C record
    shape: tuple[int, ...]  # of the result
    spans: tuple[int, ...]  # bytes of each operand from its first element to its last, the result last


def span(of: Array) -> int:
    """The bytes of an array from its first element to its last."""
    return of.element * of.span


def refuse(kind: type[Exception], message: str, status: int = arrays.INVALID) -> Exception:
    return arrays.error(kind, status, message)


def _checked(check: Callable[..., Any], *given: Any) -> Any:
    """What a check of `arguments` returns; its errors with the header's status."""
    try:
        return check(*given)
    except (TypeError, ValueError) as error:
        raise refuse(type(error), str(error)) from None


def real(name: str, value: Any) -> float:
    """A number that is computed with in 32 bits. Raises TypeError, or ValueError for one that is too large."""
    return float(_checked(arguments.real, name, value, 32, TypeError))


def flag(name: str, value: Any) -> bool:
    """True or False. Raises TypeError."""
    return bool(_checked(arguments.flag, name, value, TypeError))


def new_result(name: str, shape: tuple[int, ...], dtype: str, element: int) -> Array:
    """A result that the call allocates, before it is there."""
    return Array(name, 0, shape, arrays.dense(shape), dtype, element, True, None, None)


def require_result(given: Array, shape: tuple[int, ...], dtype: str, first: Array, what: str) -> None:
    """first: the first input; what: a word for the result

    Raises ValueError or TypeError for a result of another shape or dtype, or one that cannot be written."""
    if given.shape != shape:
        wanted, got = (" x ".join(map(str, one)) for one in (shape, given.shape))
        raise refuse(ValueError, f"{given.name} is {got}, the {what} is {wanted}")
    if given.dtype != dtype:
        message = f"{given.name} is {given.dtype}, of {first.dtype} it must be {dtype}: convert it"
        raise refuse(TypeError, message, arrays.UNSUPPORTED)
    if not given.writeable:
        raise refuse(ValueError, f"{given.name} is read-only: give another")
    if arguments.overlaps_itself(given.shape, given.strides):
        raise refuse(ValueError, f"{given.name} overlaps itself: give another")


class _Lying:
    """An array's place for NumPy, which must not read it."""

    def __init__(self, of: Array) -> None:
        steps = tuple(step * of.element for step in of.strides)
        where, kind = (of.address, True), f"|V{of.element}"
        self.__array_interface__ = {"data": where, "shape": of.shape, "strides": steps, "typestr": kind, "version": 3}


def _meet(x: int, x_bytes: int, y: int, y_bytes: int) -> bool:
    return bool(x_bytes and y_bytes) and x < y + y_bytes and y < x + x_bytes


class DeviceCalls:
    """The calls of a loaded library: `library.ffi`, `library.lib`."""

    def __init__(self, library: Any, name: str) -> None:
        self.ffi, self.name = library.ffi, name
        functions = ("message", "create", "destroy", "workspace", "ex")
        self._function = {one: getattr(library.lib, f"tensorop_{name}_{one}") for one in functions}
        self.protocols = arrays.Protocols(self.ffi, lambda: self.checked(arrays.NO_DRIVER))
        self._handles: dict[int, tuple[Any, threading.Lock]] = {}
        self._making = threading.Lock()
        self._plans: dict[Hashable, DevicePlan] = {}
        self._wanted: dict[Hashable, int] = {}  # bytes of workspace

    def checked(self, status: int) -> None:
        """Raises RuntimeError for a status that is not OK."""
        if status:
            message = self.ffi.string(self._function["message"](status)).decode()
            raise arrays.error(RuntimeError, status, f"{self.name} was not computed: {message}")

    def handle(self, device: int) -> tuple[Any, threading.Lock]:
        """The library's handle on a device, made at its first call, which takes a while; and who may use it."""
        found = self._handles.get(device)
        if found is not None:
            return found
        with self._making:
            if device not in self._handles:
                made = self.ffi.new(f"tensorop_{self.name}_handle *")
                self.checked(self._function["create"](made, device))
                self._handles[device] = self.ffi.gc(made[0], self._function["destroy"]), threading.Lock()
            return self._handles[device]

    def planned(self, key: Hashable, make: Callable[[], DevicePlan]) -> DevicePlan:
        """The plan for a key, remembered."""
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            plan = self._plans.setdefault(key, make())
        return plan

    def workspace(self, key: Hashable, handle: Any, problem: Any, at: Sequence[int]) -> int:
        """The bytes with which a call is fastest, remembered."""
        if key not in self._wanted:
            found = self.ffi.new("size_t *")
            self.checked(self._function["workspace"](handle, problem, *at, found))
            if len(self._wanted) >= _MOST_PLANS:
                self._wanted.clear()
            self._wanted[key] = found[0]
        return self._wanted[key]

    def enqueue(self, handle: Any, stream: int, problem: Any, at: Sequence[int], where: int, size: int) -> None:
        self.checked(self._function["ex"](handle, stream, problem, *at, where, size))


class DeviceCall:
    """One call: its arrays, their device, and the stream that it is enqueued on.

    Raises TypeError and ValueError for arrays that are not on one device.
    """

    def __init__(self, calls: DeviceCalls, inputs: Mapping[str, Any], result: tuple[str, Any], stream: Any) -> None:
        self.calls, self.given, (self.result_name, self.result_given) = calls, inputs, result
        self.first = next(iter(inputs.values()))
        self.owner, self.of_owner = arrays.producer(self.first), stream is None
        named = {**inputs, **({} if result[1] is None else {result[0]: result[1]})}
        devices = {name: calls.protocols.device_of(name, array) for name, array in named.items()}
        numbers = {one for one in devices.values() if one is not None}
        if len(numbers) > 1:
            where = ", ".join(f"{name} on {one}" for name, one in devices.items())
            what = f"arrays are on several devices ({where}): bring them to one"
            raise refuse(ValueError, what, arrays.OTHER_DEVICE)
        self.device = numbers.pop() if numbers else 0
        self.stream = self.owner.stream(self.first, self.device) if self.of_owner else arrays.handle_of(stream)
        self.inputs = [self._read(name, array) for name, array in inputs.items()]
        if result[1] is not None and arrays.producer(result[1]).waits:
            what = f"{result[0]} is of jax, whose arrays are never written: leave it out"
            raise refuse(TypeError, what)
        self.result = None if result[1] is None else self._read(*result)

    def _read(self, name: str, array: Any) -> Array:
        same = self.of_owner and arrays.producer(array) is self.owner and not self.owner.waits
        return self.calls.protocols.read(name, array, self.stream, same)

    def beside(self, name: str, array: Any) -> Array:
        """An array that a call's record has, whose data the call waits for. Raises TypeError and ValueError."""
        if (there := self.calls.protocols.device_of(name, array)) not in (None, self.device):
            what = f"{name} is on device {there}, {self.inputs[0].name} on {self.device}: bring them to one"
            raise refuse(ValueError, what, arrays.OTHER_DEVICE)
        one = self._read(name, array)
        if one.behind is not None:
            self.calls.protocols.wait(self.stream, one.behind)
        return one

    @property
    def key(self) -> Hashable:
        """What a plan follows from."""
        return (*(one[2:7] for one in self.inputs), None if self.result is None else self.result[2:7])

    def run(self, plan: DevicePlan, problem: Any, about: Hashable, dtype: str, workspace: Any = None) -> Any:
        """Enqueues the call and returns its result. problem: the plan's, or a copy; about: what the workspace also
        depends on; dtype: of a new result, "" for that of the first input
        """
        calls, result, returned = self.calls, self.result, self.result_given
        if result is None:
            on = None if self.of_owner else self.stream
            returned = self.owner.empty(self.first, plan.shape, dtype, self.device, on)
            result = self._read(self.result_name, returned)
        written = result.address, plan.spans[-1]
        if any(_meet(x.address, size, *written) for x, size in zip(self.inputs, plan.spans[:-1], strict=True)):
            inputs = {one.name: np.asarray(_Lying(one)) for one in self.inputs}
            _checked(arguments.require_apart, self.result_name, np.asarray(_Lying(result)), inputs)
        operands = [*self.inputs, result]
        for one in operands:
            if one.behind is not None:
                calls.protocols.wait(self.stream, one.behind)
        at = [one.address for one in operands]
        handle, turn = calls.handle(self.device)
        with turn:
            room, same = workspace, False
            if room is None:
                key = self.key, self.device, *(address % 256 for address in at), about
                room, same = self._scratch(calls.workspace(key, handle, problem, at))
            where, size = (0, 0) if room is None else self._space(room, same)
            calls.enqueue(handle, self.stream, problem, at, where, size)
        waits = any(arrays.producer(one).waits for one in self.given.values())
        if waits and calls.protocols.driver().cuStreamSynchronize(self.stream):
            calls.checked(arrays.DRIVER_ERROR)
        return returned

    def _scratch(self, size: int) -> tuple[Any, bool]:
        """A new workspace, which must live until the call is enqueued, and whether its library uses the stream."""
        on = None if self.of_owner else self.stream
        room = self.owner.scratch(self.first, size, self.device, on) if size else None
        return room, self.of_owner and not self.owner.waits

    def _space(self, room: Any, same: bool) -> tuple[int, int]:
        """Address and bytes of a workspace. Raises ValueError for one that is elsewhere or has gaps."""
        protocols, device = self.calls.protocols, self.device
        if not same and (there := protocols.device_of("workspace", room)) not in (None, device):
            what = f"workspace is on device {there}, the arrays on {device}: move it"
            raise refuse(ValueError, what, arrays.OTHER_DEVICE)
        one = protocols.read("workspace", room, self.stream, same)
        if one.span != math.prod(one.shape):
            raise refuse(ValueError, "workspace has gaps: give a contiguous one")
        return one.address, one.span * one.element

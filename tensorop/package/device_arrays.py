"""Arrays on a GPU, by DLPack and `__cuda_array_interface__`, and the Python libraries that they are of."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from tensorop.package import arguments

INVALID, UNSUPPORTED, NO_DRIVER, OTHER_DEVICE, DRIVER_ERROR = 1, 3, 5, 9, 11  # of the header's statuses
_ON_DEVICE = (2, 13)  # of DLPack's devices: CUDA's memory, and what it manages
_KINDS = {  # by DLPack's code and bits
    (4, 16): "bfloat16", (2, 16): "float16", (2, 32): "float32", (1, 16): "uint16", (0, 32): "int32",
}  # fmt: skip
# of __cuda_array_interface__
_STRINGS = {
    "<f2": "float16", "<f4": "float32", "<V2": "bfloat16", "|V2": "bfloat16", "<u2": "uint16", "<i4": "int32",
}  # fmt: skip
DECLARATIONS = """
struct dlpack {
    uintptr_t data;
    int32_t device_type, device, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t offset;
};
struct dlpack_versioned {
    uint32_t major, minor;
    void *context, *deleter;
    uint64_t flags;
    struct dlpack tensor;
};

int cuPointerGetAttribute(int *value, int attribute, uintptr_t pointer);
int cuEventCreate(void **event, unsigned flags);
int cuEventRecord(void *event, uintptr_t stream);
int cuStreamWaitEvent(uintptr_t stream, void *event, unsigned flags);
int cuEventDestroy_v2(void *event);
int cuStreamSynchronize(uintptr_t stream);
"""
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_holds = ctypes.pythonapi.PyCapsule_IsValid
_holds.argtypes = ctypes.py_object, ctypes.c_char_p


class Array(NamedTuple):
    """An array as a protocol describes it. strides: in elements, of `element` bytes; behind: the stream that its data
    come on, if the call's stream does not wait for it yet; owner: keeps the memory."""

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    element: int
    writeable: bool
    behind: int | None
    owner: Any

    @property
    def span(self) -> int:
        """Elements from the first to the last one."""
        inside = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return inside + 1 if all(self.shape) else 0


def error(kind: type[Exception], status: int, message: str) -> Exception:
    """An exception with the header's number as `status`."""
    made = kind(f"{message} (status {status})")
    made.status = status  # type: ignore[attr-defined]
    return made


class Producer:
    """The Python library that an array is of. This class stands for all that are unknown here."""

    waits = False  # whether it knows nothing of streams, so that a call must have ended when it returns

    def stream(self, array: Any, device: int) -> int:
        """The one that it enqueues on now."""
        given = getattr(array, "__cuda_array_interface__", {}).get("stream")
        return int(given or 0)

    def seen(self, name: str, array: Any) -> Array | None:
        """What a faster way than the protocols says of an array of the device, whose data come on `stream`."""
        return None

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str, device: int, stream: int | None) -> Any:
        """dtype: "" for that of `like`; stream: where it is used, None for its own `stream`."""
        raise error(TypeError, INVALID, f"c must be given: nothing allocates a {type(like).__name__}")

    def scratch(self, like: Any, size: int, device: int, stream: int | None) -> Any:
        """So many bytes, or None."""
        return None


class _Torch(Producer):
    def __init__(self) -> None:
        self.dtypes: dict[Any, str] = {}

    def stream(self, array: Any, device: int) -> int:
        return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)

    def seen(self, name: str, array: Any) -> Array | None:
        if array.get_device() < 0 or array.requires_grad:  # what DLPack says of those
            return None
        dtype = self.dtypes.get(array.dtype) or self.dtypes.setdefault(array.dtype, str(array.dtype)[6:])
        lies = tuple(array.shape), array.stride(), dtype, array.itemsize
        return Array(name, array.data_ptr(), *lies, True, None, array)

    def _on(self, device: int, stream: int | None) -> contextlib.AbstractContextManager[Any]:
        """Where memory is taken for a stream: it comes back to those who use that stream."""
        if stream is None:
            return contextlib.nullcontext()
        cuda = sys.modules["torch"].cuda
        default = stream in (0, 1)
        own = cuda.default_stream(device) if default else cuda.ExternalStream(stream, device=device)
        return cast("contextlib.AbstractContextManager[Any]", cuda.stream(own))

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str, device: int, stream: int | None) -> Any:
        with self._on(device, stream):
            return like.new_empty(shape, dtype=getattr(sys.modules["torch"], dtype) if dtype else like.dtype)

    def scratch(self, like: Any, size: int, device: int, stream: int | None) -> Any:
        with self._on(device, stream):
            return like.new_empty(size, dtype=sys.modules["torch"].uint8)


class _Cupy(Producer):
    def stream(self, array: Any, device: int) -> int:
        with sys.modules["cupy"].cuda.Device(device):
            return int(sys.modules["cupy"].cuda.get_current_stream().ptr)

    def _taken(self, shape: Any, dtype: Any, device: int, stream: int | None) -> Any:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(device):
            if stream is None:
                return cupy.empty(shape, dtype)
            with cupy.cuda.ExternalStream(stream, device) if stream > 1 else cupy.cuda.Stream.null:
                return cupy.empty(shape, dtype)

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str, device: int, stream: int | None) -> Any:
        return self._taken(shape, dtype or like.dtype, device, stream)

    def scratch(self, like: Any, size: int, device: int, stream: int | None) -> Any:
        return self._taken(size, "uint8", device, stream)


class _Jax(Producer):
    waits = True

    def stream(self, array: Any, device: int) -> int:
        return 0

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str, device: int, stream: int | None) -> Any:
        return sys.modules["jax"].numpy.empty(shape, dtype or like.dtype, device=like.device)

    def scratch(self, like: Any, size: int, device: int, stream: int | None) -> Any:
        return sys.modules["jax"].numpy.empty(size, "uint8", device=like.device)


_PRODUCERS = {"torch": _Torch(), "cupy": _Cupy(), "jax": _Jax(), "jaxlib": _Jax(), "": Producer()}
_found: dict[type, Producer] = {}


def producer(array: Any) -> Producer:
    """The library that an array is of."""
    kind = type(array)
    if kind not in _found:
        roots = [one.__module__.partition(".")[0] for one in kind.__mro__]
        _found[kind] = _PRODUCERS[next((root for root in roots if root in _PRODUCERS), "")]
    return _found[kind]


def handle_of(stream: Any) -> int:
    """A stream's number, whoever made it."""
    try:
        if hasattr(stream, "__cuda_stream__"):
            return int(stream.__cuda_stream__()[1])
        return arguments.whole("stream", getattr(stream, "cuda_stream", getattr(stream, "ptr", stream)))
    except (TypeError, ValueError):
        message = f"stream is a {type(stream).__name__}: give a stream of torch or cupy, or the number of a CUstream"
        raise error(TypeError, INVALID, message) from None


class Protocols:
    """Reads arrays. no_driver: raises that there is no driver."""

    def __init__(self, ffi: Any, no_driver: Callable[[], None]) -> None:
        self.ffi, self.no_driver = ffi, no_driver

    def driver(self) -> Any:
        """CUDA's driver API."""
        try:
            return self.ffi.dlopen("libcuda.so.1")
        except OSError:
            self.no_driver()

    def device_of(self, name: str, array: Any) -> int | None:
        """None of an array without memory. Raises TypeError for what is no array of a device."""
        if hasattr(array, "__dlpack_device__"):
            kind, number = array.__dlpack_device__()
            if int(kind) in _ON_DEVICE:
                return int(number)
        elif (given := getattr(array, "__cuda_array_interface__", None)) is not None:
            found = self.ffi.new("int *")
            if given["data"][0] == 0:
                return None
            if self.driver().cuPointerGetAttribute(found, 9, given["data"][0]) == 0:  # its device
                return int(found[0])
        else:
            message = "has neither __dlpack__ nor __cuda_array_interface__: give an array of torch, cupy or jax"
            raise error(TypeError, INVALID, f"{name} is a {type(array).__name__}, which {message}")
        message = f"{name} is in the host's memory: move it to the GPU first, as cupy.asarray(x) or tensor.cuda() do"
        raise error(TypeError, INVALID, message)

    def read(self, name: str, array: Any, stream: int, same: bool) -> Array:
        """same: whether whoever made the array enqueues on this stream itself."""
        if same and (found := producer(array).seen(name, array)) is not None:
            return found
        if hasattr(array, "__dlpack__"):
            number = -1 if same else stream or 1
            try:
                capsule = array.__dlpack__(stream=number, max_version=(1, 0))
            except TypeError:  # of before DLPack 1.0
                capsule = array.__dlpack__(stream=number)
            writeable = True
            if _holds(capsule, b"dltensor_versioned"):
                whole = self.ffi.cast("struct dlpack_versioned *", _pointer_of(capsule, b"dltensor_versioned"))
                tensor, writeable = whole.tensor, not whole.flags & 1
            else:
                tensor = self.ffi.cast("struct dlpack *", _pointer_of(capsule, b"dltensor"))
            shape = tuple(self.ffi.unpack(tensor.shape, tensor.ndim))
            strides = tuple(self.ffi.unpack(tensor.strides, tensor.ndim)) if tensor.strides else dense(shape)
            element = tensor.bits * tensor.lanes // 8
            dtype = _KINDS.get((tensor.code, tensor.bits * tensor.lanes)) or str(getattr(array, "dtype", element))
            return Array(name, tensor.data + tensor.offset, shape, strides, dtype, element, writeable, None, capsule)
        given = array.__cuda_array_interface__
        (address, only_read), shape, strides = given["data"], tuple(given["shape"]), given.get("strides")
        behind, dtype, element = given.get("stream"), given["typestr"], int(given["typestr"][2:])
        if strides is not None and any(stride % element for stride in strides):
            message = f"{name} has strides of {strides} bytes, elements have {element}: give a contiguous copy"
            raise error(ValueError, INVALID, message)
        of = dense(shape) if strides is None else tuple(stride // element for stride in strides)
        behind = None if behind is None or behind == (stream or 1) else int(behind)
        kind = _STRINGS.get(dtype, dtype)
        return Array(name, address or 0, shape, of, kind, element, not only_read, behind, given)

    def wait(self, stream: int, behind: int) -> None:
        """What was enqueued there so far comes before what this stream gets from now on."""
        cuda, event = self.driver(), self.ffi.new("void **")
        failed = cuda.cuEventCreate(event, 2) or cuda.cuEventRecord(event[0], behind)
        failed = failed or cuda.cuStreamWaitEvent(stream, event[0], 0) or cuda.cuEventDestroy_v2(event[0])
        if failed:
            raise error(RuntimeError, 11, f"an array's own stream {behind} cannot be waited for: error {failed}")


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))

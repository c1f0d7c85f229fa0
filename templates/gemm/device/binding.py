"""gemm on a GPU from Python: what tensorop.load(DIR).gemm does of a product for a device."""

from __future__ import annotations

import contextlib
import ctypes
import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

CARD = "tensorop_gemm_cuda_card"
_ROW_MAJOR, _COLUMN_MAJOR = 101, 102
_PLAIN, _TRANSPOSED = 111, 112
_INVALID, _UNSUPPORTED, _NO_DRIVER, _OTHER_DEVICE = 1, 3, 5, 9  # of the header's statuses
_ON_DEVICE = (2, 13)  # of DLPack's devices: CUDA's memory, and what it manages
_KINDS = {(4, 16): "bfloat16", (2, 16): "float16", (1, 16): "uint16"}  # by DLPack's code and bits
_STRINGS = {"<f2": "float16", "<V2": "bfloat16", "|V2": "bfloat16", "<u2": "uint16"}  # of __cuda_array_interface__
_DTYPES = {"bfloat16": "bf16", "uint16": "bf16", "float16": "f16"}
_TYPES = {"bf16": 0, "f16": 1}
_MOST_PLANS = 1024
_WORD = 8  # elements of 16 bytes
_DECLARATIONS = """
typedef struct tensorop_gemm_state *tensorop_gemm_handle;
struct tensorop_gemm_problem {
    int type, layout, transa, transb;
    float alpha, beta;
    int64_t m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c;
};
const char *tensorop_gemm_message(int status);
int tensorop_gemm_create(tensorop_gemm_handle *handle, int device);
int tensorop_gemm_destroy(tensorop_gemm_handle handle);
int tensorop_gemm_workspace(tensorop_gemm_handle handle, const struct tensorop_gemm_problem *problem, uintptr_t a,
                            uintptr_t b, uintptr_t c, size_t *bytes);
int tensorop_gemm_ex(tensorop_gemm_handle handle, uintptr_t stream, const struct tensorop_gemm_problem *problem,
                     uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t workspace, size_t bytes);

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


def declarations(dtypes: Sequence[str]) -> str:
    """The C declarations `bind` uses, for cffi."""
    return _DECLARATIONS


class _Array(NamedTuple):
    """An array as a protocol tells it. strides: in elements, of `element` bytes; behind: the stream that its data come
    on, where the call's own does not wait for it yet; owner: keeps the memory."""

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


class _Matrices(NamedTuple):
    """How an array's matrices lie. ld, stride: as the header has them."""

    batch: int | None
    rows: int
    columns: int
    by_row: bool
    ld: int
    stride: int


def _error(kind: type[Exception], status: int, said: str) -> Exception:
    """With the header's number as `status`."""
    error = kind(f"{said} (status {status})")
    error.status = status  # type: ignore[attr-defined]
    return error


class _Producer:
    """Where arrays are from. This one stands for all that are unknown here."""

    waits = False  # whether it knows nothing of streams, so that a call must have ended when it returns

    def stream(self, array: Any, device: int) -> int:
        """The one that it enqueues on now."""
        told = getattr(array, "__cuda_array_interface__", {}).get("stream")
        return int(told or 0)

    def empty(self, like: Any, shape: tuple[int, ...], device: int, stream: int) -> Any:
        raise _error(TypeError, _INVALID, f"c must be given: nothing allocates a {type(like).__name__}")

    def scratch(self, like: Any, size: int, device: int, stream: int) -> Any:
        """So many bytes, or None."""
        return None


class _Torch(_Producer):
    def stream(self, array: Any, device: int) -> int:
        return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)

    @contextlib.contextmanager
    def _on(self, device: int, stream: int) -> Iterator[Any]:
        """Where memory is taken for a stream: it comes back to those who use that stream."""
        torch = sys.modules["torch"]
        if stream == torch.cuda.current_stream(device).cuda_stream:
            yield torch
            return
        default = stream in (0, 1)
        own = torch.cuda.default_stream(device) if default else torch.cuda.ExternalStream(stream, device=device)
        with torch.cuda.stream(own):
            yield torch

    def empty(self, like: Any, shape: tuple[int, ...], device: int, stream: int) -> Any:
        with self._on(device, stream):
            return like.new_empty(shape, requires_grad=False)

    def scratch(self, like: Any, size: int, device: int, stream: int) -> Any:
        with self._on(device, stream) as torch:
            return torch.empty(size, dtype=torch.uint8, device=like.device)


class _Cupy(_Producer):
    def stream(self, array: Any, device: int) -> int:
        with sys.modules["cupy"].cuda.Device(device):
            return int(sys.modules["cupy"].cuda.get_current_stream().ptr)

    def _taken(self, shape: Any, dtype: Any, device: int, stream: int) -> Any:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(device):
            if stream == cupy.cuda.get_current_stream().ptr:
                return cupy.empty(shape, dtype)
            with cupy.cuda.ExternalStream(stream, device) if stream > 1 else cupy.cuda.Stream.null:
                return cupy.empty(shape, dtype)

    def empty(self, like: Any, shape: tuple[int, ...], device: int, stream: int) -> Any:
        return self._taken(shape, like.dtype, device, stream)

    def scratch(self, like: Any, size: int, device: int, stream: int) -> Any:
        return self._taken(size, "uint8", device, stream)


class _Jax(_Producer):
    waits = True

    def stream(self, array: Any, device: int) -> int:
        return 0

    def empty(self, like: Any, shape: tuple[int, ...], device: int, stream: int) -> Any:
        return sys.modules["jax"].numpy.empty(shape, like.dtype, device=like.device)

    def scratch(self, like: Any, size: int, device: int, stream: int) -> Any:
        return sys.modules["jax"].numpy.empty(size, "uint8", device=like.device)


_PRODUCERS = {"torch": _Torch(), "cupy": _Cupy(), "jax": _Jax(), "jaxlib": _Jax(), "": _Producer()}
_found: dict[type, _Producer] = {}


def _producer(array: Any) -> _Producer:
    kind = type(array)
    if kind not in _found:
        roots = [one.__module__.partition(".")[0] for one in kind.__mro__]
        _found[kind] = _PRODUCERS[next((root for root in roots if root in _PRODUCERS), "")]
    return _found[kind]


def _handle_of(stream: Any) -> int:
    """A stream's number, whoever made it."""
    try:
        if hasattr(stream, "__cuda_stream__"):
            return int(stream.__cuda_stream__()[1])
        return int(getattr(stream, "cuda_stream", getattr(stream, "ptr", stream)))
    except (TypeError, ValueError):
        said = f"stream is a {type(stream).__name__}: give a stream of torch or cupy, or the number of a CUstream"
        raise _error(TypeError, _INVALID, said) from None


def _matrices(of: _Array) -> _Matrices:
    """Raises ValueError where no leading dimension says how they lie."""
    if len(of.shape) not in (2, 3):
        said = f"{of.name} has {len(of.shape)} dimensions, a matrix has 2 and a batch of them 3"
        raise _error(ValueError, _INVALID, said)
    batch, (rows, columns), (across, along) = None, of.shape[-2:], of.strides[-2:]
    if len(of.shape) == 3:
        batch = of.shape[0]
    stride = of.strides[0] if batch is not None and batch > 1 else 0
    one = stride == 0
    if stride >= 0 and (along == 1 or columns <= 1) and (across >= columns or rows <= 1):
        ld = across if rows > 1 else _alone(columns, one)
        return _Matrices(batch, rows, columns, True, max(ld, columns, 1), stride)
    if stride >= 0 and (across == 1 or rows <= 1) and (along >= rows or columns <= 1):
        ld = along if columns > 1 else _alone(rows, one)
        return _Matrices(batch, rows, columns, False, max(ld, rows, 1), stride)
    said = f"{of.name} has strides {of.strides}: neither rows nor columns are contiguous, give a contiguous copy"
    raise _error(ValueError, _INVALID, said)


def _alone(size: int, one: bool) -> int:
    """The leading dimension of a single line, which nothing reads by: whole words of 16 bytes are fastest."""
    return -(-size // _WORD) * _WORD if one else size


def _overlaps_itself(of: _Array) -> bool:
    reach = 0
    for stride, size in sorted(zip(of.strides, of.shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += (size - 1) * stride
    return False


def _share(x: _Array, y: _Array) -> bool:
    """Whether they have elements in common, of arrays without gaps; others may lie within each other."""
    if any(one.span > math.prod(one.shape) for one in (x, y)):
        return False
    return x.address < y.address + 2 * y.span and y.address < x.address + 2 * x.span


def bind(library: Any) -> Callable[..., Any]:
    """The function that calls a loaded library (`library.ffi`, `library.lib`, `library.dtypes`)."""
    ffi, lib = library.ffi, library.lib
    handles: dict[int, tuple[Any, threading.Lock]] = {}
    making = threading.Lock()
    wanted: dict[Any, int] = {}  # bytes of workspace, by problem and alignment
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    holds = ctypes.pythonapi.PyCapsule_IsValid
    holds.argtypes = ctypes.py_object, ctypes.c_char_p

    def checked(status: int) -> None:
        if status:
            said = ffi.string(lib.tensorop_gemm_message(status)).decode()
            raise _error(RuntimeError, status, f"gemm was not computed: {said}")

    def driver() -> Any:
        try:
            return ffi.dlopen("libcuda.so.1")
        except OSError:
            checked(_NO_DRIVER)

    def handle(device: int) -> tuple[Any, threading.Lock]:
        """Made at a device's first call, which takes a while; and who may use it."""
        with making:
            if device not in handles:
                made = ffi.new("tensorop_gemm_handle *")
                checked(lib.tensorop_gemm_create(made, device))
                handles[device] = ffi.gc(made[0], lib.tensorop_gemm_destroy), threading.Lock()
            return handles[device]

    def device_of(name: str, array: Any) -> int | None:
        """None of an array without memory. Raises TypeError for what is no array of a device."""
        if hasattr(array, "__dlpack_device__"):
            kind, number = array.__dlpack_device__()
            if int(kind) in _ON_DEVICE:
                return int(number)
        elif (told := getattr(array, "__cuda_array_interface__", None)) is not None:
            found = ffi.new("int *")
            if told["data"][0] == 0:
                return None
            if driver().cuPointerGetAttribute(found, 9, told["data"][0]) == 0:  # its device
                return int(found[0])
        else:
            said = "has neither __dlpack__ nor __cuda_array_interface__: give an array of torch, cupy or jax"
            raise _error(TypeError, _INVALID, f"{name} is a {type(array).__name__}, which {said}")
        said = f"{name} is in the host's memory: move it to the GPU first, as cupy.asarray(x) or tensor.cuda() do"
        raise _error(TypeError, _INVALID, said)

    def read(name: str, array: Any, stream: int, same: bool) -> _Array:
        """same: whether whoever made the array enqueues on this stream itself."""
        if hasattr(array, "__dlpack__"):
            number = -1 if same else stream or 1
            try:
                capsule = array.__dlpack__(stream=number, max_version=(1, 0))
            except TypeError:  # of before DLPack 1.0
                capsule = array.__dlpack__(stream=number)
            writeable = True
            if holds(capsule, b"dltensor_versioned"):
                whole = ffi.cast("struct dlpack_versioned *", pointer_of(capsule, b"dltensor_versioned"))
                tensor, writeable = whole.tensor, not whole.flags & 1
            else:
                tensor = ffi.cast("struct dlpack *", pointer_of(capsule, b"dltensor"))
            shape = tuple(ffi.unpack(tensor.shape, tensor.ndim))
            strides = tuple(ffi.unpack(tensor.strides, tensor.ndim)) if tensor.strides else _dense(shape)
            element = tensor.bits * tensor.lanes // 8
            dtype = _KINDS.get((tensor.code, tensor.bits * tensor.lanes)) or str(getattr(array, "dtype", element))
            return _Array(name, tensor.data + tensor.offset, shape, strides, dtype, element, writeable, None, capsule)
        told = array.__cuda_array_interface__
        (address, only_read), shape, strides = told["data"], tuple(told["shape"]), told.get("strides")
        behind, dtype, element = told.get("stream"), told["typestr"], int(told["typestr"][2:])
        if strides is not None and any(stride % element for stride in strides):
            said = f"{name} has strides of {strides} bytes, elements have {element}: give a contiguous copy"
            raise _error(ValueError, _INVALID, said)
        of = _dense(shape) if strides is None else tuple(stride // element for stride in strides)
        behind = None if behind is None or behind == (stream or 1) else int(behind)
        kind = _STRINGS.get(dtype, dtype)
        return _Array(name, address or 0, shape, of, kind, element, not only_read, behind, told)

    def strange(name: str, dtype: str) -> Exception:
        held = ", ".join(kind for kind, own in _DTYPES.items() if own in library.dtypes)
        return _error(TypeError, _UNSUPPORTED, f"{name} is {dtype}, this library holds {held}: convert it")

    def wait(stream: int, behind: int) -> None:
        """What was enqueued there so far comes before what this stream gets from now on."""
        cuda, event = driver(), ffi.new("void **")
        failed = cuda.cuEventCreate(event, 2) or cuda.cuEventRecord(event[0], behind)
        failed = failed or cuda.cuStreamWaitEvent(stream, event[0], 0) or cuda.cuEventDestroy_v2(event[0])
        if failed:
            raise _error(RuntimeError, 11, f"an array's own stream {behind} cannot be waited for: error {failed}")

    def space(room: Any, device: int, stream: int) -> tuple[int, int]:
        """Address and bytes of a workspace. Raises ValueError for one that is elsewhere or has gaps."""
        there = device_of("workspace", room)
        if there not in (None, device):
            raise _error(ValueError, _OTHER_DEVICE, f"workspace is on device {there}, the arrays on {device}: move it")
        one = read("workspace", room, stream, same=False)
        if one.span != math.prod(one.shape):
            raise _error(ValueError, _INVALID, "workspace has gaps: give a contiguous one")
        return one.address, one.span * one.element

    def gemm(
        a: Any,
        b: Any,
        c: Any = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        transpose_a: bool = False,
        transpose_b: bool = False,
        stream: Any = None,
        workspace: Any = None,
    ) -> Any:
        """C = alpha * op(A) @ op(B) + beta * C on the GPU that the arrays are on; enqueued, and C is returned.

        a: (m, k), or (k, m) with transpose_a; b: (k, n), or (n, k) with transpose_b; c: (m, n), written in place. With
        a first dimension more, matrices of a batch; a matrix without it goes with each of a batch. Any array with
        `__dlpack__` or `__cuda_array_interface__` (torch, cupy, jax, numba), never copied: rows or columns must be
        contiguous, with any padding between them. All are of one dtype that the library holds: bfloat16, whose bits as
        uint16 do as well, or float16. At beta = 0, `c` is not read.
        c = None: a new array of torch, cupy or jax, of which `a` is; of others `c` must be given. c is not an array of
        jax, which are never written.
        stream: where it is enqueued, of torch or cupy or a number; by default where the library of `a` enqueues now. In
        a CUDA graph it is captured. What it computes is there for what follows on that stream; with arrays of jax,
        which knows no streams, the call waits until it is done.
        workspace: an array of bytes on the device that nothing else uses meanwhile; by default the library of `a`
        allocates what makes odd sizes faster. With too little, or off 256 bytes, it is computed all the same.

        Raises TypeError, ValueError or RuntimeError with the header's status as `status` and the next step in words;
        nothing is enqueued then.
        """
        number = device_of("a", a)
        owner = _producer(a)
        others = [device_of("b", b)] if c is None else [device_of("b", b), device_of("c", c)]
        devices = {one for one in (number, *others) if one is not None}
        if len(devices) > 1:
            said = ", ".join(f"{name} on {one}" for name, one in zip("abc", (number, *others), strict=False))
            raise _error(ValueError, _OTHER_DEVICE, f"arrays are on several devices ({said}): bring them to one")
        device = devices.pop() if devices else 0
        on = _handle_of(stream) if stream is not None else owner.stream(a, device)
        known = stream is None

        def taken(name: str, array: Any) -> _Array:
            return read(name, array, on, known and _producer(array) is owner and not owner.waits)

        x, y = taken("a", a), taken("b", b)
        for one in (x, y):
            if _DTYPES.get(one.dtype) not in library.dtypes:
                raise strange(one.name, one.dtype)
        if x.dtype != y.dtype:
            said = f"a is {x.dtype}, b is {y.dtype}: both must be of one dtype, convert one"
            raise _error(TypeError, _UNSUPPORTED, said)
        p, q = _matrices(x), _matrices(y)
        m, k = (p.columns, p.rows) if transpose_a else (p.rows, p.columns)
        inner, n = (q.columns, q.rows) if transpose_b else (q.rows, q.columns)
        if k != inner:
            said = f"op(a) is {m} x {k} and op(b) is {inner} x {n}: {k} and {inner} must agree"
            raise _error(ValueError, _INVALID, said)
        batches = {one.batch for one in (p, q) if one.batch is not None}
        if len(batches) > 1:
            raise _error(ValueError, _INVALID, f"a has {p.batch} matrices, b has {q.batch}: they must agree")
        batch = batches.pop() if batches else None
        shape = (m, n) if batch is None else (batch, m, n)
        if c is None:
            if beta != 0:
                raise _error(ValueError, _INVALID, "beta is not 0, so c must be given")
            c = owner.empty(a, shape, device, on)
        elif _producer(c).waits:
            raise _error(TypeError, _INVALID, "c is of jax, whose arrays are never written: leave it out")
        z = taken("c", c)
        if z.shape != shape:
            said = " x ".join(map(str, shape))
            raise _error(ValueError, _INVALID, f"c is {' x '.join(map(str, z.shape))}, the product is {said}")
        if z.dtype != x.dtype:
            raise _error(TypeError, _UNSUPPORTED, f"c is {z.dtype}, of {x.dtype} it must be {x.dtype}: convert it")
        if not z.writeable and not _producer(c).waits:
            raise _error(ValueError, _INVALID, "c is read-only: give another")
        r = _matrices(z)
        if _overlaps_itself(z) or _share(x, z) or _share(y, z):
            raise _error(ValueError, _INVALID, "c overlaps a, b or itself: give another")
        count = 1 if batch is None else batch
        follow = p.by_row and r.by_row and (p.stride, r.stride) == (m * p.ld, m * r.ld)
        if count > 1 and q.stride == 0 and follow and not transpose_a:  # one product of all rows: far faster than many
            m, count = m * count, 1
        problem = ffi.new("struct tensorop_gemm_problem *")
        problem.type = _TYPES[_DTYPES[x.dtype]]
        problem.layout = _ROW_MAJOR if r.by_row else _COLUMN_MAJOR
        problem.transa = _TRANSPOSED if bool(transpose_a) == (p.by_row == r.by_row) else _PLAIN
        problem.transb = _TRANSPOSED if bool(transpose_b) == (q.by_row == r.by_row) else _PLAIN
        problem.alpha, problem.beta = alpha, beta
        problem.m, problem.n, problem.k, problem.batch = m, n, k, count
        problem.lda, problem.ldb, problem.ldc = p.ld, q.ld, r.ld
        problem.stride_a, problem.stride_b, problem.stride_c = p.stride, q.stride, r.stride
        for one in (x, y, z):
            if one.behind is not None:
                wait(on, one.behind)
        at, turn = handle(device)
        where, size, room = 0, 0, None
        with turn:
            if workspace is None:
                key = device, bytes(ffi.buffer(problem)), x.address % 256, y.address % 256, z.address % 256
                if key not in wanted:
                    found = ffi.new("size_t *")
                    checked(lib.tensorop_gemm_workspace(at, problem, x.address, y.address, z.address, found))
                    if len(wanted) >= _MOST_PLANS:
                        wanted.clear()
                    wanted[key] = found[0]
                size = wanted[key]
            if size:
                room = owner.scratch(a, size, device, on)
            elif workspace is not None:
                room = workspace
            if room is not None:
                where, size = space(room, device, on)
            checked(lib.tensorop_gemm_ex(at, on, problem, x.address, y.address, z.address, where, size))
        if any(_producer(one).waits for one in (a, b)) and driver().cuStreamSynchronize(on):
            checked(11)
        return c

    return gemm


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))

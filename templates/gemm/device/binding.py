"""gemm on a GPU from Python: what tensorop.load(DIR).gemm does of a product for a device."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tensorop.package import arguments
from tensorop.specs import pymodule

arrays: Any = pymodule.load(Path(__file__).with_name("arrays.py"), "_tensorop_device_arrays")
CARD = "tensorop_gemm_cuda_card"
_ROW_MAJOR, _COLUMN_MAJOR = 101, 102
_PLAIN, _TRANSPOSED = 111, 112
_DTYPES = {"bfloat16": "bf16", "uint16": "bf16", "float16": "f16"}
_TYPES = {"bf16": 0, "f16": 1, "bf16_f32": 2, "f16_f32": 3}  # C is float in the last two
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
"""


def declarations(dtypes: Sequence[str]) -> str:
    """The C declarations `bind` uses, for cffi."""
    return _DECLARATIONS + arrays.DECLARATIONS


class _Plan(NamedTuple):
    """What follows from how A, B and C lie. problem: at alpha = 1 and beta = 0; spans: bytes of A, B and C from the
    first element to the last."""

    problem: Any
    shape: tuple[int, ...]
    spans: tuple[int, int, int]


class _Matrices(NamedTuple):
    """How an array's matrices lie. ld, stride: as the header has them."""

    batch: int | None
    rows: int
    columns: int
    by_row: bool
    ld: int
    stride: int


def _matrices(of: arrays.Array) -> _Matrices:
    """Raises ValueError where no leading dimension says how they lie."""
    if len(of.shape) not in (2, 3):
        said = f"{of.name} has {len(of.shape)} dimensions, a matrix has 2 and a batch of them 3"
        raise arrays.error(ValueError, arrays.INVALID, said)
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
    raise arrays.error(ValueError, arrays.INVALID, said)


def _alone(size: int, one: bool) -> int:
    """The leading dimension of a single line, which nothing reads by: whole words of 16 bytes are fastest."""
    return -(-size // _WORD) * _WORD if one else size


def _overlaps_itself(of: arrays.Array) -> bool:
    reach = 0
    for stride, size in sorted(zip(of.strides, of.shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += (size - 1) * stride
    return False


def _meet(x: arrays.Array, x_bytes: int, y: arrays.Array, y_bytes: int) -> bool:
    return bool(x_bytes and y_bytes) and x.address < y.address + y_bytes and y.address < x.address + x_bytes


class _Lying:
    """An array's place for NumPy, which must not read it."""

    def __init__(self, of: arrays.Array) -> None:
        steps = tuple(step * of.element for step in of.strides)
        where, kind = (of.address, True), f"|V{of.element}"
        self.__array_interface__ = {"data": where, "shape": of.shape, "strides": steps, "typestr": kind, "version": 3}


def _checked(check: Callable[..., Any], *given: Any) -> Any:
    """What a check of `arguments` returns; its errors with the header's status."""
    try:
        return check(*given)
    except (TypeError, ValueError) as error:
        raise arrays.error(type(error), arrays.INVALID, str(error)) from None


def bind(library: Any) -> Callable[..., Any]:
    """The function that calls a loaded library (`library.ffi`, `library.lib`, `library.dtypes`)."""
    ffi, lib = library.ffi, library.lib
    handles: dict[int, tuple[Any, threading.Lock]] = {}
    making = threading.Lock()
    plans: dict[Any, _Plan] = {}
    held = {dtype.removesuffix("_f32"): dtype for dtype in library.dtypes}  # of A and B, by their type
    of_c = "float32" if any(dtype.endswith("_f32") for dtype in library.dtypes) else ""  # where C is of another
    wanted: dict[Any, int] = {}  # bytes of workspace, by problem and alignment

    def checked(status: int) -> None:
        if status:
            said = ffi.string(lib.tensorop_gemm_message(status)).decode()
            raise arrays.error(RuntimeError, status, f"gemm was not computed: {said}")

    of = arrays.Protocols(ffi, lambda: checked(arrays.NO_DRIVER))

    def handle(device: int) -> tuple[Any, threading.Lock]:
        """Made at a device's first call, which takes a while; and who may use it."""
        with making:
            if device not in handles:
                made = ffi.new("tensorop_gemm_handle *")
                checked(lib.tensorop_gemm_create(made, device))
                handles[device] = ffi.gc(made[0], lib.tensorop_gemm_destroy), threading.Lock()
            return handles[device]

    def strange(name: str, dtype: str) -> Exception:
        known = ", ".join(kind for kind, own in _DTYPES.items() if own in held)
        return arrays.error(TypeError, arrays.UNSUPPORTED, f"{name} is {dtype}, this library holds {known}: convert it")

    def space(room: Any, device: int, stream: int, same: bool) -> tuple[int, int]:
        """Address and bytes of a workspace. Raises ValueError for one that is elsewhere or has gaps."""
        if not same and (there := of.device_of("workspace", room)) not in (None, device):
            raise arrays.error(
                ValueError, arrays.OTHER_DEVICE, f"workspace is on device {there}, the arrays on {device}: move it"
            )
        one = of.read("workspace", room, stream, same)
        if one.span != math.prod(one.shape):
            raise arrays.error(ValueError, arrays.INVALID, "workspace has gaps: give a contiguous one")
        return one.address, one.span * one.element

    def planned(
        x: arrays.Array, y: arrays.Array, z: arrays.Array | None, transpose_a: bool, transpose_b: bool
    ) -> _Plan:
        """z: None for a new C. Raises TypeError and ValueError."""
        for one in (x, y):
            if _DTYPES.get(one.dtype) not in held:
                raise strange(one.name, one.dtype)
        if x.dtype != y.dtype:
            said = f"a is {x.dtype}, b is {y.dtype}: both must be of one dtype, convert one"
            raise arrays.error(TypeError, arrays.UNSUPPORTED, said)
        p, q = _matrices(x), _matrices(y)
        m, k = (p.columns, p.rows) if transpose_a else (p.rows, p.columns)
        inner, n = (q.columns, q.rows) if transpose_b else (q.rows, q.columns)
        if k != inner:
            said = f"op(a) is {m} x {k} and op(b) is {inner} x {n}: {k} and {inner} must agree"
            raise arrays.error(ValueError, arrays.INVALID, said)
        batches = {one.batch for one in (p, q) if one.batch is not None}
        if len(batches) > 1:
            raise arrays.error(
                ValueError, arrays.INVALID, f"a has {p.batch} matrices, b has {q.batch}: they must agree"
            )
        batch = batches.pop() if batches else None
        shape = (m, n) if batch is None else (batch, m, n)
        kind, size = (of_c, 4) if of_c else (x.dtype, 2)
        z = arrays.Array("c", 0, shape, arrays.dense(shape), kind, size, True, None, None) if z is None else z
        if z.shape != shape:
            said = " x ".join(map(str, shape))
            raise arrays.error(
                ValueError, arrays.INVALID, f"c is {' x '.join(map(str, z.shape))}, the product is {said}"
            )
        if z.dtype != kind:
            raise arrays.error(
                TypeError, arrays.UNSUPPORTED, f"c is {z.dtype}, of {x.dtype} it must be {kind}: convert it"
            )
        if not z.writeable:
            raise arrays.error(ValueError, arrays.INVALID, "c is read-only: give another")
        r = _matrices(z)
        if _overlaps_itself(z):
            raise arrays.error(ValueError, arrays.INVALID, "c overlaps itself: give another")
        count = 1 if batch is None else batch
        follow = p.by_row and r.by_row and (p.stride, r.stride) == (m * p.ld, m * r.ld)
        if count > 1 and q.stride == 0 and follow and not transpose_a:  # one product of all rows: far faster than many
            m, count = m * count, 1
        problem = ffi.new("struct tensorop_gemm_problem *")
        problem.type = _TYPES[held[_DTYPES[x.dtype]]]
        problem.layout = _ROW_MAJOR if r.by_row else _COLUMN_MAJOR
        problem.transa = _TRANSPOSED if transpose_a == (p.by_row == r.by_row) else _PLAIN
        problem.transb = _TRANSPOSED if transpose_b == (q.by_row == r.by_row) else _PLAIN
        problem.alpha = 1
        problem.m, problem.n, problem.k, problem.batch = m, n, k, count
        problem.lda, problem.ldb, problem.ldc = p.ld, q.ld, r.ld
        problem.stride_a, problem.stride_b, problem.stride_c = p.stride, q.stride, r.stride
        return _Plan(problem, shape, (x.element * x.span, y.element * y.span, z.element * z.span))

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
        """C = alpha * op(A) @ op(B) + beta * C on the GPU that holds the arrays. The call is enqueued; it returns C.

        a: (m, k), or (k, m) with transpose_a
        b: (k, n), or (n, k) with transpose_b
        c: (m, n), written in place; None for a new array of the library of `a` (torch, cupy or jax only)
        alpha, beta: numbers; at beta = 0, `c` is not read
        transpose_a, transpose_b: whether `a` or `b` is transposed
        stream: of torch or cupy, or a number; by default the one that the library of `a` uses now
        workspace: an array of bytes on the device that nothing else uses during the call; by default one is allocated
        if that makes the call faster

        Arrays are any with `__dlpack__` or `__cuda_array_interface__` (torch, cupy, jax, numba). They are never copied,
        so rows or columns must be contiguous; any leading dimension is allowed. With one more dimension in front they
        are batches, and an array without it is used for every matrix of the batch.

        All have one dtype that the library holds: bfloat16 (or its bits as uint16) or float16. `c` is float32 if the
        library was made with `--c-dtype f32`. A jax array cannot be `c`, and a call with jax arrays waits for the
        result. A call can be captured in a CUDA graph.

        Raises TypeError, ValueError or RuntimeError with the header's status as `status`; nothing is enqueued then.
        """
        number, owner, known = of.device_of("a", a), arrays.producer(a), stream is None
        others = [of.device_of("b", b)] if c is None else [of.device_of("b", b), of.device_of("c", c)]
        devices = {one for one in (number, *others) if one is not None}
        if len(devices) > 1:
            said = ", ".join(f"{name} on {one}" for name, one in zip("abc", (number, *others), strict=False))
            raise arrays.error(
                ValueError, arrays.OTHER_DEVICE, f"arrays are on several devices ({said}): bring them to one"
            )
        if type(alpha) is not float or type(beta) is not float or alpha != 1.0 or beta != 0.0:
            alpha, beta = (_checked(arguments.real, *one, 32, TypeError) for one in (("alpha", alpha), ("beta", beta)))
        device = devices.pop() if devices else 0
        on = owner.stream(a, device) if known else arrays.handle_of(stream)

        def taken(name: str, array: Any) -> arrays.Array:
            return of.read(name, array, on, known and arrays.producer(array) is owner and not owner.waits)

        x, y = taken("a", a), taken("b", b)
        if c is None:
            if beta != 0:
                raise arrays.error(ValueError, arrays.INVALID, "beta is not 0, so c must be given")
            z = None
        elif arrays.producer(c).waits:
            raise arrays.error(TypeError, arrays.INVALID, "c is of jax, whose arrays are never written: leave it out")
        else:
            z = taken("c", c)
        flags = ("transpose_a", transpose_a), ("transpose_b", transpose_b)
        turned = tuple(_checked(arguments.flag, *one, TypeError) for one in flags)
        key = *x[2:7], *y[2:7], *((None,) if z is None else z[2:7]), *turned
        plan = plans.get(key)
        if plan is None:
            if len(plans) >= _MOST_PLANS:
                plans.clear()
            plan = plans.setdefault(key, planned(x, y, z, *turned))
        if z is None:
            c = owner.empty(a, plan.shape, of_c, device, None if known else on)
            z = taken("c", c)
        bytes_a, bytes_b, bytes_c = plan.spans
        if _meet(x, bytes_a, z, bytes_c) or _meet(y, bytes_b, z, bytes_c):
            at_a, at_b, at_c = (np.asarray(_Lying(one)) for one in (x, y, z))
            _checked(arguments.require_apart, "c", at_c, {"a": at_a, "b": at_b})
        problem = plan.problem
        if alpha != 1 or beta != 0:
            problem = ffi.new("struct tensorop_gemm_problem *", problem[0])
            problem.alpha, problem.beta = alpha, beta
        for one in (x, y, z):
            if one.behind is not None:
                of.wait(on, one.behind)
        at, turn = handles.get(device) or handle(device)
        where, size = 0, 0
        with turn:
            if workspace is not None:
                where, size = space(workspace, device, on, same=False)
            else:
                about = key, device, x.address % 256, y.address % 256, z.address % 256, alpha == 0
                if about not in wanted:
                    found = ffi.new("size_t *")
                    checked(lib.tensorop_gemm_workspace(at, problem, x.address, y.address, z.address, found))
                    if len(wanted) >= _MOST_PLANS:
                        wanted.clear()
                    wanted[about] = found[0]
                size = wanted[about]
                room = owner.scratch(a, size, device, None if known else on) if size else None
                where, size = (0, 0) if room is None else space(room, device, on, known and not owner.waits)
            checked(lib.tensorop_gemm_ex(at, on, problem, x.address, y.address, z.address, where, size))
        if any(arrays.producer(one).waits for one in (a, b)) and of.driver().cuStreamSynchronize(on):
            checked(11)
        return c

    return gemm

"""gemm on a GPU from Python: what tensorop.load(DIR).gemm does of a product for a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tensorop.package import device_arrays as arrays
from tensorop.package import device_binding, torch_module
from tensorop.package.arguments import leading
from tensorop.package.device_arrays import Array
from tensorop.package.device_binding import DeviceCall, DeviceCalls, DevicePlan, flag, real, refuse, span

CARD = "tensorop_gemm_cuda_card"
_ROW_MAJOR, _COLUMN_MAJOR = 101, 102
_PLAIN, _TRANSPOSED = 111, 112
_DTYPES = {"bfloat16": "bf16", "uint16": "bf16", "float16": "f16", "float32": "f32"}
# C is float but in the first two
_TYPES = {"bf16": 0, "f16": 1, "bf16_f32": 2, "f16_f32": 3, "f32": 4, "f32_tf32": 5, "f32_3xtf32": 6}
_NO_EPILOGUE = 13  # status of the header
_WORD = 8  # elements: of 16 bytes, or two words of floats
_ACTIVATIONS = {"none": 0, "relu": 1, "gelu": 2, "silu": 3}
_EPILOGUE = """
struct tensorop_gemm_epilogue {
    int activation;
    uintptr_t bias, residual;
    int64_t ld_residual, stride_residual;
    uintptr_t scale_rows, scale_columns;
};
"""
_RECORD = """
int type, layout, transa, transb;
float alpha, beta;
int64_t m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c;
const struct tensorop_gemm_epilogue *epilogue;
"""


def declarations(dtypes: Sequence[str]) -> str:
    """The C declarations `bind` uses, for cffi."""
    return _EPILOGUE + device_binding.declarations("gemm", ("a", "b", "c"), _RECORD)


class _Matrices(NamedTuple):
    """How an array's matrices lie. ld, stride: as the header has them."""

    batch: int | None
    rows: int
    columns: int
    by_row: bool
    ld: int
    stride: int


def _matrices(of: Array) -> _Matrices:
    """Raises ValueError where no leading dimension says how they lie."""
    if len(of.shape) not in (2, 3):
        said = f"{of.name} has {len(of.shape)} dimensions, a matrix has 2 and a batch of them 3"
        raise refuse(ValueError, said)
    batch, (rows, columns) = None, of.shape[-2:]
    if len(of.shape) == 3:
        batch = of.shape[0]
    stride = of.strides[0] if batch is not None and batch > 1 else 0
    one = stride == 0
    found = leading(of.shape[-2:], of.strides[-2:]) if stride >= 0 else None
    if found is not None:
        by_row, ld = found
        length = columns if by_row else rows
        return _Matrices(batch, rows, columns, by_row, max(ld or _alone(length, one), length, 1), stride)
    said = f"{of.name} has strides {of.strides}: neither rows nor columns are contiguous, give a contiguous copy"
    raise refuse(ValueError, said)


def _alone(size: int, one: bool) -> int:
    """The leading dimension of a single line, which nothing reads by: whole words of 16 bytes are fastest."""
    return -(-size // _WORD) * _WORD if one else size


def bind(library: Any) -> Callable[..., Any]:
    """The function that calls a loaded library (`library.ffi`, `library.lib`, `library.dtypes`)."""
    calls = DeviceCalls(library, "gemm")
    held = {dtype.partition("_")[0]: dtype for dtype in library.dtypes}  # of A and B, by their type
    of_c = "float32" if any(dtype.endswith("_f32") for dtype in library.dtypes) else ""  # where C is of another

    def planned(x: Array, y: Array, z: Array | None, transpose_a: bool, transpose_b: bool, plain: bool) -> DevicePlan:
        """z: None for a new C; plain: without an epilogue. Raises TypeError and ValueError."""
        for one in (x, y):
            if _DTYPES.get(one.dtype) not in held:
                known = ", ".join(kind for kind, own in _DTYPES.items() if own in held)
                said = f"{one.name} is {one.dtype}, this library holds {known}: convert it"
                raise refuse(TypeError, said, arrays.UNSUPPORTED)
        if x.dtype != y.dtype:
            said = f"a is {x.dtype}, b is {y.dtype}: both must be of one dtype, convert one"
            raise refuse(TypeError, said, arrays.UNSUPPORTED)
        p, q = _matrices(x), _matrices(y)
        m, k = (p.columns, p.rows) if transpose_a else (p.rows, p.columns)
        inner, n = (q.columns, q.rows) if transpose_b else (q.rows, q.columns)
        if k != inner:
            said = f"op(a) is {m} x {k} and op(b) is {inner} x {n}: {k} and {inner} must agree"
            raise refuse(ValueError, said)
        batches = {one.batch for one in (p, q) if one.batch is not None}
        if len(batches) > 1:
            raise refuse(ValueError, f"a has {p.batch} matrices, b has {q.batch}: they must agree")
        batch = batches.pop() if batches else None
        shape = (m, n) if batch is None else (batch, m, n)
        kind, size = (of_c, 4) if of_c else (x.dtype, x.element)
        z = device_binding.new_result("c", shape, kind, size) if z is None else z
        device_binding.require_result(z, shape, kind, x, "product")
        r = _matrices(z)
        count = 1 if batch is None else batch
        follow = p.by_row and r.by_row and (p.stride, r.stride) == (m * p.ld, m * r.ld)
        if (
            plain and count > 1 and q.stride == 0 and follow and not transpose_a
        ):  # one product of all rows: far faster than many
            m, count = m * count, 1
        problem = calls.ffi.new("struct tensorop_gemm_problem *")
        problem.type = _TYPES[held[_DTYPES[x.dtype]]]
        problem.layout = _ROW_MAJOR if r.by_row else _COLUMN_MAJOR
        problem.transa = _TRANSPOSED if transpose_a == (p.by_row == r.by_row) else _PLAIN
        problem.transb = _TRANSPOSED if transpose_b == (q.by_row == r.by_row) else _PLAIN
        problem.alpha = 1
        problem.m, problem.n, problem.k, problem.batch = m, n, k, count
        problem.lda, problem.ldb, problem.ldc = p.ld, q.ld, r.ld
        problem.stride_a, problem.stride_b, problem.stride_c = p.stride, q.stride, r.stride
        return DevicePlan(problem, shape, (span(x), span(y), span(z)))

    def finishing(call: DeviceCall, plan: DevicePlan, given: Mapping[str, Any], activation: int) -> Any:
        """The C record of an epilogue. given: its arrays, some None. Raises TypeError and ValueError."""
        *_, m, n = plan.shape
        batch, float_c = plan.shape[:-2], of_c or call.inputs[0].dtype
        shapes = {"bias": (n,), "residual": plan.shape, "scale_rows": (m,), "scale_columns": (n,)}
        made = calls.ffi.new("struct tensorop_gemm_epilogue *", {"activation": activation})
        for name, array in given.items():
            if array is None:
                continue
            one, dtype = call.beside(name, array), "float32" if name.startswith("scale") else float_c
            if name == "residual" and one.shape == (m, n):
                shapes[name] = (m, n)
            if one.shape != shapes[name]:
                wanted, got = (" x ".join(map(str, shape)) for shape in (shapes[name], one.shape))
                raise refuse(ValueError, f"{name} is {got}, it must be {wanted}")
            if one.dtype != dtype:
                raise refuse(TypeError, f"{name} is {one.dtype}, it must be {dtype}: convert it", arrays.UNSUPPORTED)
            if name == "residual":
                lies = _matrices(one)
                by_row = plan.problem.layout == _ROW_MAJOR
                if lies.by_row != by_row and min(m, n) > 1:
                    raise refuse(ValueError, f"residual must lie by {'rows' if by_row else 'columns'} as c does")
                made.ld_residual = max(lies.ld, n if by_row else m)
                made.stride_residual = lies.stride if batch else 0
            elif one.strides != (1,) and one.shape[0] > 1:
                raise refuse(ValueError, f"{name} has gaps: give a contiguous one")
            if call.result is not None and _meets(one, call.result, name):
                raise refuse(ValueError, f"{name} overlaps c: give another")
            setattr(made, name, one.address)
        return made

    def gemm(
        a: Any,
        b: Any,
        c: Any = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        transpose_a: bool = False,
        transpose_b: bool = False,
        bias: Any = None,
        residual: Any = None,
        scale_rows: Any = None,
        scale_columns: Any = None,
        activation: str = "none",
        stream: Any = None,
        workspace: Any = None,
    ) -> Any:
        """C = alpha * op(A) @ op(B) + beta * C on the GPU that holds the arrays. The call is enqueued; it returns C.

        With an epilogue, of a library made with `--epilogue`, C = activation(scale_rows[:, None] * scale_columns
        * (alpha * op(A) @ op(B) + beta * C) + bias + residual), computed in float and rounded once.

        a: (m, k), or (k, m) with transpose_a
        b: (k, n), or (n, k) with transpose_b
        c: (m, n), written in place; None for a new array of the library of `a` (torch, cupy or jax only)
        alpha, beta: numbers; at beta = 0, `c` is not read
        transpose_a, transpose_b: whether `a` or `b` is transposed
        bias: (n), of the dtype of `c`; residual: as `c`, of its dtype, or `c` itself
        scale_rows, scale_columns: (m) and (n), float32
        activation: `none`, `relu`, `gelu` (its tanh form) or `silu`
        stream: of torch or cupy, or a number; by default the one that the library of `a` uses now
        workspace: an array of bytes on the device that nothing else uses during the call; by default one is allocated
        if that makes the call faster

        Arrays are any with `__dlpack__` or `__cuda_array_interface__` (torch, cupy, jax, numba). They are never copied,
        so rows or columns must be contiguous; any leading dimension is allowed. With one more dimension in front they
        are batches, and an array without it is used for every matrix of the batch.

        All have one dtype that the library holds: bfloat16 (or its bits as uint16), float16 or float32. `c` is float32
        if the library was made with `--c-dtype f32`. A jax array cannot be `c`, and a call with jax arrays waits for
        the result. A call can be captured in a CUDA graph.

        `gemm.torch()` is a function for tensors of PyTorch, by the custom operator torch.ops.tensorop.gemm.

        Raises TypeError, ValueError or RuntimeError with the header's status as `status`; nothing is enqueued then.
        """
        if activation not in _ACTIVATIONS:
            known = ", ".join(_ACTIVATIONS)
            raise refuse(ValueError, f"activation must be one of {known}; got {activation!r}", _NO_EPILOGUE)
        given = {"bias": bias, "residual": residual, "scale_rows": scale_rows, "scale_columns": scale_columns}
        asked = (activation, *(name for name, array in given.items() if array is not None))
        plain = asked == ("none",)
        if type(alpha) is not float or type(beta) is not float or alpha != 1.0 or beta != 0.0:
            alpha, beta = real("alpha", alpha), real("beta", beta)
        call = DeviceCall(calls, {"a": a, "b": b}, ("c", c), stream)
        if c is None and beta != 0:
            raise refuse(ValueError, "beta is not 0, so c must be given")
        turned = flag("transpose_a", transpose_a), flag("transpose_b", transpose_b)
        plan = calls.planned((call.key, turned, plain), lambda: planned(*call.inputs, call.result, *turned, plain))
        problem = plan.problem
        if alpha != 1 or beta != 0 or not plain:
            problem = calls.ffi.new("struct tensorop_gemm_problem *", problem[0])
            problem.alpha, problem.beta = alpha, beta
        if not plain:
            epilogue = finishing(call, plan, given, _ACTIVATIONS[activation])
            problem.epilogue = epilogue
        return call.run(plan, problem, (turned, alpha == 0, asked), of_c, workspace)

    def torch() -> Any:
        op = torch_module.load(Path(__file__).parents[1] / "torch_op.py")
        return op.Gemm(library, gemm)

    gemm.torch = torch  # type: ignore[attr-defined]
    return gemm


def _meets(one: Array, result: Array, name: str) -> bool:
    """Whether an operand of an epilogue shares memory with C; a residual may be C itself."""
    if name == "residual" and (one.address, one.shape, one.strides) == (result.address, result.shape, result.strides):
        return False
    apart = one.address >= result.address + span(result) or result.address >= one.address + span(one)
    return not apart and span(one) > 0 and span(result) > 0

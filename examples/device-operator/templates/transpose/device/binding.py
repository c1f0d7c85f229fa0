"""transpose on a GPU from Python: tensorop.load(DIR).transpose(x)."""

from tensorop.package import device_arrays as arrays
from tensorop.package import device_binding
from tensorop.package.device_binding import DeviceCall, DeviceCalls, DevicePlan, real, refuse, span

CARD = "tensorop_transpose_cuda_card"
_TYPES = {"bfloat16": 0, "float16": 1}


def declarations(dtypes):
    return device_binding.declarations("transpose", ("x", "y"), "int type; float alpha; int64_t m, n, batch;")


def bind(library):
    calls = DeviceCalls(library, "transpose")

    def planned(x, y):
        if x.dtype not in _TYPES:
            raise refuse(TypeError, f"x is {x.dtype}, expected bfloat16 or float16: convert it", arrays.UNSUPPORTED)
        if len(x.shape) not in (2, 3) or x.strides != arrays.dense(x.shape):
            raise refuse(ValueError, f"x has shape {x.shape} and strides {x.strides}: give a dense matrix or batch")
        *batch, m, n = x.shape
        shape = (*batch, n, m)
        y = device_binding.new_result("y", shape, x.dtype, 2) if y is None else y
        device_binding.require_result(y, shape, x.dtype, x, "transposed x")
        if y.strides != arrays.dense(shape):
            raise refuse(ValueError, f"y has strides {y.strides}: give a dense array")
        fields = {"type": _TYPES[x.dtype], "alpha": 1, "m": m, "n": n, "batch": batch[0] if batch else 1}
        return DevicePlan(calls.ffi.new("struct tensorop_transpose_problem *", fields), shape, (span(x), span(y)))

    def transpose(x, y=None, *, alpha=1.0, stream=None):
        """Y = alpha * transposed X. x: (m, n) or (batch, m, n), dense, on a GPU; y: the result, new if None"""
        call = DeviceCall(calls, {"x": x}, ("y", y), stream)
        plan = calls.planned(call.key, lambda: planned(*call.inputs, call.result))
        problem = calls.ffi.new("struct tensorop_transpose_problem *", plan.problem[0])
        problem.alpha = real("alpha", alpha)
        return call.run(plan, problem, None, "")

    return transpose

"""Arrays that only tell of themselves by a protocol, in memory that the fake driver takes for the device's, and their
products by tensorop.load: argv is the product's folder. A process of its own has the driver."""

from __future__ import annotations

import ctypes
import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest

import tensorop
from tests.support.device_calls import bits, floats

warnings.simplefilter("ignore")  # nothing was verified
FAKE = ctypes.CDLL("libcuda.so.1")
gemm = getattr(tensorop.load(sys.argv[1]), "gemm", None)
_pythonapi = ctypes.pythonapi
_pythonapi.PyCapsule_New.restype = ctypes.py_object
_pythonapi.PyCapsule_New.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        *((name, ctypes.c_int32) for name in ("device_type", "device", "ndim")),
        *((name, ctypes.c_uint8) for name in ("code", "bits")),
        ("lanes", ctypes.c_uint16),
        *((name, ctypes.POINTER(ctypes.c_int64)) for name in ("shape", "strides")),
        ("offset", ctypes.c_uint64),
    )


class Versioned(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("major", "minor")),
        *((name, ctypes.c_void_p) for name in ("context", "deleter")),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


def memory(elements: int, shift: int = 0) -> np.ndarray:
    """At a multiple of 256 bytes and `shift` elements."""
    raw = np.full(elements + 256, 0x7FFF, np.uint16)
    first = (-raw.ctypes.data % 256) // 2 + shift
    return raw[first : first + elements]


class Held:
    """view: its bits, as they lie."""

    code, device_type, device, old, flags = 2, 2, 0, False, 0

    def __init__(self, view: np.ndarray, **said: Any) -> None:
        self.view, self.asked = view, []
        for name, value in said.items():
            setattr(self, name, value)

    def values(self) -> np.ndarray:
        return floats(np.ascontiguousarray(self.view), self.code == 2)


class ByDlpack(Held):
    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device_type, self.device

    def __dlpack__(self, *, stream: int, **more: Any) -> Any:
        if self.old and more:
            raise TypeError("no such argument")
        self.asked.append(stream)
        count, ndim = self.view.itemsize, self.view.ndim
        sizes = (ctypes.c_int64 * ndim)(*self.view.shape)
        strides = (ctypes.c_int64 * ndim)(*(stride // count for stride in self.view.strides))
        at, kind = self.view.ctypes.data - 2 * count, (self.code, 8 * count, 1)
        tensor = Tensor(at, self.device_type, self.device, ndim, *kind, sizes, strides, 2 * count)
        made = tensor if self.old else Versioned(1, 0, None, None, self.flags, tensor)
        self.kept = made, sizes, strides
        name = b"dltensor" if self.old else b"dltensor_versioned"
        return _pythonapi.PyCapsule_New(ctypes.addressof(made), name, None)


class ByInterface(Held):
    typestr, stream, read_only = "<f2", None, False

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        dense = self.view.flags.c_contiguous
        return {
            "data": (self.view.ctypes.data, self.read_only), "shape": self.view.shape, "typestr": self.typestr,
            "strides": None if dense else self.view.strides, "stream": self.stream, "version": 3,
        }  # fmt: skip


class Owned(ByDlpack):
    """Of a library that allocates, cupy by its name."""

    dtype = "float16"


def library(stream: int) -> types.ModuleType:
    """What is used of cupy: its current stream is this one."""
    module, cuda = types.ModuleType("cupy"), types.ModuleType("cupy.cuda")

    class Context:
        def __init__(self, *_: object) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    class Stream(Context):
        ptr = stream
        null = Context()

    module.taken = []

    def empty(shape: Any, dtype: Any) -> Owned:
        module.taken.append((shape, dtype))
        size = int(np.prod(shape))
        held = memory(size).reshape(shape) if dtype == "float16" else memory(size).view(np.uint8)[:size]
        return Owned(held, code=2 if dtype == "float16" else 1)

    cuda.Device, cuda.ExternalStream, cuda.Stream, cuda.get_current_stream = Context, Context, Stream, Stream
    module.cuda, module.empty = cuda, empty
    return module


def case(number: int) -> None:
    """Layouts, gaps, batches, shifts and both types, against NumPy."""
    rng = np.random.default_rng(number)
    f16, batch = bool(number % 2), (None, 3)[number // 2 % 2]
    m, n, k = ((16, 24, 32), (17, 9, 21), (1, 8, 40))[number % 3]
    ta, tb = bool(number & 4), bool(number & 8)
    alpha, beta = ((1.0, 0.0), (2.0, 1.0), (-1.0, 0.5))[number // 3 % 3]

    def held(values: np.ndarray, by_row: bool, pad: int, shift: int) -> Held:
        lines = values if by_row else values.swapaxes(-1, -2)
        gapped = memory(lines[..., 0].size * (lines.shape[-1] + pad), shift)
        view = gapped.reshape(*lines.shape[:-1], -1)[..., : lines.shape[-1]]
        view[...] = bits(lines, f16)
        made = ByInterface if number % 5 == 4 and f16 else ByDlpack
        return made(view if by_row else view.swapaxes(-1, -2), code=2 if f16 else (1, 4)[number // 4 % 2])

    shapes = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n)), (m, n)
    alone = batch is not None and number % 7 == 2  # B goes with each of the batch
    drawn = [
        rng.integers(-1, 2, shape if batch is None or (alone and at == 1) else (batch, *shape)).astype(np.float32)
        for at, shape in enumerate(shapes)
    ]
    a, b, c = (held(x, bool(number >> at & 1), (0, 8, 3)[(number + at) % 3], at * (number % 2))
               for at, x in enumerate(drawn))  # fmt: skip
    x, y = (x.swapaxes(-1, -2) if t else x for x, t in zip(drawn, (ta, tb), strict=False))
    expected = alpha * (x @ y) + beta * drawn[2]
    got = gemm(a, b, c, alpha=alpha, beta=beta, transpose_a=ta, transpose_b=tb, stream=64)
    assert got is c
    assert (c.values() == expected).all(), number
    assert (a.values() == drawn[0]).all()
    if isinstance(a, ByDlpack):
        assert a.asked == [64]


def test_calls_are_right() -> None:
    for number in range(48):
        case(number)
    before = FAKE.fake_launches()
    high, low, square = (ByDlpack(memory(m * n).reshape(m, n), old=True) for m, n in ((8, 0), (0, 8), (8, 8)))
    gemm(high, low, square, stream=64)  # k = 0
    assert (square.view == 0).all()
    gemm(low, square, ByDlpack(memory(0).reshape(0, 8)), stream=64)
    assert FAKE.fake_launches() == before + 1


def test_a_batch_with_one_matrix_is_one_product() -> None:
    a, b, c = (ByDlpack(memory(s).reshape(f)) for s, f in ((256, (2, 8, 16)), (128, (16, 8)), (128, (2, 8, 8))))
    a.view[...], b.view[...] = bits(np.ones(1), True), bits(np.ones(1), True)
    gemm(a, b, c, stream=64)
    assert (c.values() == 16).all()


def test_results_and_workspace_come_from_the_library_of_a() -> None:
    Owned.__module__ = "cupy.fake"
    sys.modules["cupy"] = cupy = library(stream=64)
    one = bits(np.ones(1), True)
    a, b = (Owned(memory(33 * 4002).reshape(f)) for f in ((33, 4002), (4002, 33)))  # padded copies
    a.view[...] = b.view[...] = one
    made = gemm(a, b)
    assert isinstance(made, Owned)
    assert (made.values() == 4002).all()
    assert a.asked == [-1]  # it is on that stream itself
    assert [taken for taken in cupy.taken if taken[1] == "float16"] == [((33, 33), "float16")]
    room = [taken for taken in cupy.taken if taken[1] == "uint8"]
    assert len(room) == 1
    gemm(a, b, made, workspace=ByInterface(memory(1 << 20).view(np.uint8), typestr="|u1"), stream=2000)
    assert (made.values() == 4002).all()
    assert a.asked == [-1, 2000]
    assert len([taken for taken in cupy.taken if taken[1] == "uint8"]) == 1


def test_tensors_of_torch_are_read_without_a_protocol_on_their_own_stream() -> None:
    class Tensor(Owned):
        dtype, requires_grad, itemsize = "torch.float16", False, 2
        get_device = lambda self: 0  # noqa: E731
        stride = lambda self: tuple(step // 2 for step in self.view.strides)  # noqa: E731
        data_ptr = lambda self: self.view.ctypes.data  # noqa: E731
        shape = property(lambda self: self.view.shape)

        def new_empty(self, shape: Any, dtype: object = None) -> Any:
            return Tensor(memory(int(np.prod(shape))).reshape(shape))

    Tensor.__module__ = "torch"
    sys.modules["torch"] = torch = types.ModuleType("torch")
    torch.uint8 = torch.cuda = types.SimpleNamespace(current_stream=lambda _: types.SimpleNamespace(cuda_stream=64))
    a, b = Tensor(memory(33 * 65).reshape(33, 65)), Tensor(memory(33 * 65).reshape(33, 65))
    a.view[...] = b.view[...] = bits(np.ones(1), True)
    assert (gemm(a, b, transpose_b=True).values() == 65).all()
    assert a.asked == []
    b.requires_grad = True  # DLPack says no to those
    gemm(a, b, transpose_b=True)
    assert b.asked == [-1]


def test_an_array_on_another_stream_is_waited_for() -> None:
    a, b, c = (ByInterface(memory(256).reshape(16, 16), stream=s) for s in (64, 64, None))
    a.view[...] = b.view[...] = bits(np.ones(1), True)
    at = (ctypes.c_uint64 * 1)()
    before = FAKE.fake_waits(at)
    gemm(a, b, c)  # on the stream of a
    assert FAKE.fake_waits(at) == before
    gemm(a, b, c, stream=type("Stream", (), {"__cuda_stream__": lambda self: (0, 1500)})())
    assert (FAKE.fake_waits(at), at[0]) == (before + 2, 1500)
    assert (c.values() == 16).all()


def test_what_is_wrong_is_said_with_status_and_next_step() -> None:
    def array(*shape: int, **said: Any) -> ByDlpack:
        return ByDlpack(memory(int(np.prod(shape))).reshape(shape), **said)

    a, b, c = array(16, 8), array(8, 24), array(16, 24)
    host = ByInterface(memory(128).reshape(16, 8))
    FAKE.fake_host(ctypes.c_uint64(host.view.ctypes.data), ctypes.c_uint64(host.view.ctypes.data + 256))
    wide = ByDlpack(np.zeros((16, 8), np.float32))
    both = memory(16 * 32).reshape(16, 32)
    for given, more, status, said in (
        ((np.ones((16, 8)), b, c), {}, 1, "a is in the host's memory: move it to the GPU first"),
        ((array(16, 8, device_type=1), b, c), {}, 1, "a is in the host's memory"),
        ((host, b, c), {}, 1, "a is in the host's memory"),
        (([[1.0]], b, c), {}, 1, "a is a list, which has neither __dlpack__ nor __cuda_array_interface__"),
        ((wide, b, c), {}, 3, "a is .*, this library holds bfloat16, uint16, float16: convert it"),
        ((a, array(8, 24, code=4), c), {}, 3, "a is float16, b is bfloat16: both must be of one dtype"),
        ((a, b, array(16, 24, code=4)), {}, 3, "c is bfloat16, of float16 it must be float16"),
        ((a, array(8, 24, device=1), c), {}, 9, r"several devices \(a on 0, b on 1, c on 0\): bring them to one"),
        ((a, b, array(24, 16)), {}, 1, "c is 24 x 16, the product is 16 x 24"),
        ((a, array(9, 24), c), {}, 1, r"op\(a\) is 16 x 8 and op\(b\) is 9 x 24: 8 and 9 must agree"),
        ((ByDlpack(memory(256).reshape(16, 16)[:, ::2]), b, c), {}, 1, "a has strides .* give a contiguous copy"),
        ((ByDlpack(a.view[::-1]), b, c), {}, 1, "a has strides .* give a contiguous copy"),
        ((array(16), b, c), {}, 1, "a has 1 dimensions, a matrix has 2 and a batch of them 3"),
        ((array(2, 16, 8), array(3, 8, 24), c), {}, 1, "a has 2 matrices, b has 3"),
        ((a, b, None), {}, 1, "c must be given: nothing allocates a ByDlpack"),
        ((a, b, None), {"beta": 1.0}, 1, "beta is not 0, so c must be given"),
        ((a, b, array(16, 24, flags=1)), {}, 1, "c is read-only"),
        ((ByDlpack(both[:, :8]), b, ByDlpack(both[:, 8:])), {}, 0, ""),
        ((a, b, ByDlpack(a.view.reshape(-1)[:1].repeat(1).reshape(1, 1))), {}, 1, "c is 1 x 1"),
        ((array(24, 24), array(24, 24), None), {"same": True}, 1, "c overlaps a: give an array"),
        ((ByDlpack(both[:, :8]), b, ByDlpack(both[:, 7:31])), {}, 1, "c overlaps a: give an array"),
        ((a, ByDlpack(both[:8, :24]), ByDlpack(both[:, 8:])), {}, 1, "c overlaps b: give an array"),
        ((a, b, c), {"alpha": "2"}, 1, "alpha is '2': it must be a real number"),
        ((a, b, c), {"beta": True}, 1, "beta is True: it must be a real number"),
        ((a, b, c), {"alpha": 1e39}, 1, r"alpha is 1e\+39: it must be at most 3.40282e\+38"),
        ((a, b, c), {"transpose_a": "T"}, 1, "transpose_a is 'T': it must be True or False"),
        ((a, b, c), {"stream": "main"}, 1, "stream is a str: give a stream of torch or cupy"),
        ((a, b, c), {"stream": "64"}, 1, "stream is a str: give a stream of torch or cupy"),
        ((a, b, c), {"stream": 64.5}, 1, "stream is a float: give a stream of torch or cupy"),
        ((a, b, c), {"stream": 128}, 9, "the stream belongs to another context than the handle"),
        ((a, b, c), {"workspace": ByDlpack(memory(64).reshape(8, 8)[:, :4])}, 1, "workspace has gaps"),
    ):
        words = dict(more)
        x, y, z = given
        z = x if words.pop("same", False) else z
        before = FAKE.fake_launches()
        if status == 0:
            gemm(x, y, z, **words)
            continue
        with pytest.raises((TypeError, ValueError, RuntimeError), match=said) as caught:
            gemm(x, y, z, **words)
        assert caught.value.status == status, said
        assert f"(status {status})" in str(caught.value)
        assert FAKE.fake_launches() == before


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
    assert tensorop.load(sys.argv[1]).card["operator"] == "gemm"
    sys.stdout.write("as expected\n")

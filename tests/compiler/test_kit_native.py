"""The C of a kit against the Python of the machine that plans it."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tensorop import paths
from tensorop.kits import plan
from tensorop.model.call import Access, Buffer
from tensorop.model.number import NUMBERS
from tensorop.provision.zig import zig_cc, zig_environment
from tensorop.runners import protocol

SIZE, SEED = 5000, 0x1234_5678_9ABC_DEF0


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("kit") / "plan.so"
    source = paths.native_dir() / "kit" / "kit_plan.c"
    words = [*zig_cc(), "-std=gnu11", "-O2", "-shared", "-fPIC", str(source), "-o", str(path)]
    subprocess.run(words, env=zig_environment(), check=True, capture_output=True)
    loaded = ctypes.CDLL(str(path))
    loaded.plan_content.restype = ctypes.c_void_p
    return loaded


@pytest.mark.parametrize("place", range(7))
def test_operands_are_drawn_alike(library: ctypes.CDLL, place: int, tmp_path: Path):
    name = plan._FORMATS[place]
    number = NUMBERS[name]
    wanted = plan.drawn(number, SEED, SIZE)
    assert len(np.unique(wanted)) > min(4000, 2 ** (number.precision or 8 * number.size) // 2)
    head = protocol.pack_buffer(Buffer("x", Access.IN, wanted))
    described = head + plan._BUFFER.pack(plan._DRAWN, place, SEED, 0)
    at = library.plan_content(None, ctypes.c_char_p(described))
    assert ctypes.string_at(at, wanted.nbytes) == wanted.tobytes()

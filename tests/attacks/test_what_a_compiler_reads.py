"""An object is made of the source, tensorop's headers and the compiler's own: whatever else was read, it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorop.build import compile as building
from tensorop.model.kernel import Artifact, Source
from tensorop.model.trial import Kind, Outcome
from tests.support import kernels

READS = {
    "an absolute include": '#include "{secret}"\n',
    "a way out of the folder": '#include "../../../../secret.h"\n',
    "an embedded file": 'const char text[] = {{\n#embed "{secret}"\n}};\n',
    "a system's header": "#include </usr/include/stdio.h>\n",
}


@pytest.mark.parametrize("what", READS)
def test_what_read_a_file_of_this_machine_is_refused(tmp_path: Path, what: str) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text("/* key */\n")
    text = READS[what].format(secret=secret) + "int x;\n"
    made = building.compile_object(Source((("kernel.c", text),)), kernels.platform(), work=tmp_path)
    assert isinstance(made, Outcome), made
    assert made.kind in (Kind.REFUSED, Kind.COMPILE)
    if made.kind is Kind.REFUSED:
        assert made.message.startswith("view: its C reads ")
    assert not list(tmp_path.rglob("kernel.o"))


def test_headers_of_the_compiler_and_of_tensorop_may_be_read(tmp_path: Path) -> None:
    text = "#include <immintrin.h>\n#include <stdint.h>\n#include <stddef.h>\n#include <math.h>\n"
    text += '#include "call.h"\n#include "own file.h"\nint x;\n'
    source = Source((("kernel.c", text), ("own file.h", "typedef int mine;\n")))
    made = building.compile_object(source, kernels.platform(), work=tmp_path)
    assert isinstance(made, Artifact), made

"""Reads a kit's file of results and checks it against the product. Any fault in the file is an error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tensorop.errors import JobError, SpecError, UsageError
from tensorop.kits import rows as kitrows
from tensorop.kits.product import KitProduct, KitResult
from tensorop.kits.rows import DeviceMachine, KeptKit, KitHead, KitLines
from tensorop.specs import files, jsontext
from tensorop.specs.printable import one_line

SCHEMA = 1
RUN_AGAIN = "run ./run-kit there again (it resumes) and bring the file that it names"
_FILE = "pass the result.jsonl that the kit wrote"
_MOST_VALUES = 3_000_000  # JSON values in a file


def read(path: Path, product: KitProduct) -> KitResult:
    """The results in a file.

    Raises UsageError for a file that is not a result of this product's kit. Raises JobError for a file that is cut off,
    has no time, or reports that the library is wrong there.
    """
    found = typed(path)
    _of_product(path, found.head, product.digest, product.root)
    machine = found.machines[0]
    if isinstance(machine, DeviceMachine) is not product.device:
        raise UsageError(f"{path} is damaged: its machine is of the wrong kind", hint=RUN_AGAIN)
    product.require_machine(path, machine)
    if any(product.board_of(one) != product.board_of(machine) for one in found.machines):
        raise UsageError(f"{path} contains results from several machines", hint="run the whole kit on one machine")
    _require_whole(path, found)
    product.require_judged(path, found.rows)
    timed = [product.row(path, row) for row in found.rows if row.kind == "time"]
    kept = [row for row in timed if row is not None]
    if not kept:
        raise JobError(f"{path} has no times: nothing could be measured there", hint=RUN_AGAIN)
    cases = sum(row.cases for row in found.rows if row.kind == "verify")
    own = KeptKit(kit=found.head.kit, machine=machine, date=found.rows[-1].date, rows=kept)
    return KitResult(own, len(timed) - len(kept), cases)


def _of_product(path: Path, head: KitHead, digest: str, root: Path) -> None:
    """Raises UsageError for a result of another product's kit."""
    if head.product != digest:
        raise UsageError(
            f"{path} belongs to another product (platform {one_line(head.platform, 40)}, "
            f"{head.product[:12]}; {root} is {digest[:12]})",
            hint="pass the product that the kit was exported from, or export a kit of this one",
        )


def _require_whole(path: Path, found: KitLines) -> None:
    """Raises JobError if rows are absent or the library is wrong there, UsageError for a damaged file."""
    rows, steps, board = found.rows, found.head.steps, found.machines[0].board
    if [row.step for row in rows] != list(range(len(rows))):
        raise UsageError(f"{path} is damaged: its rows are not in order", hint=RUN_AGAIN)
    wrong = next((row for row in rows if row.kind != "control" and row.outcome == "wrong-result"), None)
    wrong = wrong or next((row for row in rows if row.kind == "verify" and row.outcome != "ok"), None)
    if wrong is not None:
        of = wrong.of.model_dump(exclude_unset=True)
        raise JobError(
            f"{path}: the library failed verification on {one_line(board, 80)}: {of!s:.100}: {wrong.outcome}: "
            f"{one_line(wrong.message, 200):.200} ({one_line(wrong.case, 100):.100})",
            hint="do not use it there; run `tensorop verify` on it here, and report this as a bug",
        )
    if len(rows) != steps or found.end != steps:
        raise JobError(f"{path} is cut off after row {len(rows)} of {steps}", hint=RUN_AGAIN)
    if not any(row.kind == "control" for row in rows):
        raise UsageError(f"{path} has no controls (known-wrong kernels)", hint=RUN_AGAIN)


def typed(path: Path) -> KitLines:
    """A whole file, each line checked by its schema. Raises as `lines`."""
    try:
        return kitrows.read(lines(path), str(path))
    except SpecError as error:
        raise UsageError(error.message.split("\n")[0], hint=RUN_AGAIN) from None


def lines(path: Path) -> list[Mapping[str, object]]:
    """The lines of a whole file, with checksums and the file's schema version checked.

    Raises UsageError for another file or version, JobError for a file that is cut off.
    """
    found = [_line(path, number, text) for number, text in enumerate(_lines(path), 1)]
    if not jsontext.is_schema(found[0].get("schema"), SCHEMA):
        raise UsageError(
            f"{path} has schema {found[0].get('schema')!r:.40}, expected {SCHEMA}",
            hint="use the version of tensorop that made the kit, or make a new kit with this one",
        )
    return found


def _lines(path: Path) -> list[str]:
    try:
        text = files.plain(path, files.LINES).decode("ascii").replace("\r\n", "\n")  # mail may change line ends
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}", hint=_FILE) from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not the result of a kit", hint=_FILE) from None
    if jsontext.values(text) > _MOST_VALUES:
        raise UsageError(f"{path} is not the result of a kit: it has more than {_MOST_VALUES} values", hint=_FILE)
    lines = text.rstrip().split("\n")
    if lines == [""]:
        raise UsageError(f"{path} is not the result of a kit: it has no whole line", hint=_FILE)
    if not text.endswith("\n") and _value(lines[-1]) is None:
        raise JobError(f"{path} is cut off in line {len(lines)}", hint=RUN_AGAIN)
    return lines


def _line(path: Path, number: int, text: str) -> Mapping[str, object]:
    value = _value(text)
    if value is None:
        message = f"line {number} is not as a kit writes it"
        raise UsageError(f"{path} is damaged, or is not a result file of a kit: {message}", hint=RUN_AGAIN)
    return value


def _value(text: str) -> Mapping[str, object] | None:
    """The object in a line; None if it is no JSON object or its checksum is wrong."""
    body, mark, total = text.rpartition(',"sum":"')
    try:
        value = jsontext.loads(text)
    except ValueError:
        return None
    right = mark and isinstance(value, dict) and total == f'{_sum(body.encode()):016x}"}}'
    return value if right else None


def _sum(data: bytes) -> int:
    """The 64-bit FNV-1a hash, as in the kit's program."""
    total = 0xCBF29CE484222325
    for byte in data:
        total = (total ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return total

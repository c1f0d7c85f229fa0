"""A kit's file of results, read and held against the product: all of it, or a message that says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop.errors import JobError, SpecError, UsageError
from tensorop.kits import plan
from tensorop.kits import rows as kitrows
from tensorop.kits.held import Held
from tensorop.measure.statistics import quartiles
from tensorop.specs import files, jsontext
from tensorop.specs.printable import one_line
from tensorop.verify import controls

SCHEMA = 1
_AGAIN = "run ./run-kit there again, it goes on where it stopped, and bring the file it names"
_FILE = "give the kit's result.jsonl"
_MOST_VALUES = 3_000_000  # of all lines


@dataclass(frozen=True)
class Result:
    """kit: its id; rows: dtype, dims, options, and by variant ns or None; date: of the last row; started: how often."""

    kit: str
    machine: Mapping[str, Any]
    date: str
    rows: tuple[Mapping[str, Any], ...]
    started: int
    unmeasured: int

    @property
    def where(self) -> str:
        """A few words on the machine."""
        emulator = str(self.machine["emulator"]).split()
        board = " ".join(self.machine["board"].split()) or f"a board ({self.machine['arch']})"
        return f"{board}, under the emulator {Path(emulator[0]).name}" if emulator else board


def read(path: Path, held: Held) -> Result:
    """Raises UsageError for what is no result of this product's kit, JobError for one that is cut off or says that the
    library is wrong there."""
    head, *rest = lines(path)
    try:
        return _result(path, held, head, rest)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UsageError(f"{path} is damaged: {type(error).__name__}: {error!s:.200}", hint=_AGAIN) from None


def _result(path: Path, held: Held, head: Mapping[str, Any], rest: list[dict[str, Any]]) -> Result:
    platform, machines = held.opened.platform, [one["machine"] for one in (head, *rest) if "machine" in one]
    of_product(path, head, held.digest, held.root)
    machine = machines[0]
    if any(one["arch"] != platform.arch for one in machines):
        raise UsageError(
            f"{path} was measured on {machine['arch']}, {platform.name} is {platform.arch}",
            hint="run the kit on a board of that kind",
        )
    if any(one[name] != machine[name] for one in machines for name in ("board", "vlen", "emulator")):
        raise UsageError(f"{path} was measured on several machines", hint="run the kit on one from start to end")
    least = platform.fixed_vlen or 0
    if platform.arch == "riscv64" and int(machine["vlen"]) < least:
        raise UsageError(
            f"{path} was measured on vectors of {machine['vlen']} bits, {platform.name} has {least} or more",
            hint="run the kit on a board of that kind",
        )
    rows = whole(path, head, rest, machine["board"])
    _require_judged(path, held, rows)
    timed = [row for row in rows if row["kind"] == plan.KINDS[plan.TIME]]
    told = tuple(_row(path, held, row) for row in timed if row["outcome"] == "ok")
    if not told:
        raise JobError(f"{path} has no figure: nothing could be timed there", hint=_AGAIN)
    return Result(head["kit"], machine, rows[-1]["date"], told, len(machines), len(timed) - len(told))


def of_product(path: Path, head: Mapping[str, Any], digest: str, root: Path) -> None:
    """Raises UsageError for a result of another product's kit."""
    if head["product"] != digest:
        raise UsageError(
            f"{path} is of a kit of another product (platform {one_line(head['platform'], 40)}, "
            f"{head['product'][:12]}; {root} is {digest[:12]})",
            hint="give the product that the kit was exported from, or export a kit of this one",
        )


def whole(path: Path, head: Mapping[str, Any], rest: list[dict[str, Any]], board: str) -> list[dict[str, Any]]:
    """The rows, all of them. Raises JobError where some are absent or the library is wrong there."""
    rows = [row for row in rest if "step" in row]
    if [row["step"] for row in rows] != list(range(len(rows))):
        raise UsageError(f"{path} is damaged: its rows are not in order", hint=_AGAIN)
    wrong = next((row for row in rows if row["kind"] != "control" and row["outcome"] == "wrong-result"), None)
    wrong = wrong or next((row for row in rows if row["kind"] == "verify" and row["outcome"] != "ok"), None)
    if wrong is not None:
        raise JobError(
            f"{path}: the library is wrong on {one_line(board, 80)}: {wrong['of']!s:.100}: {wrong['outcome']}: "
            f"{one_line(wrong.get('message', ''), 200):.200} ({one_line(wrong.get('case', ''), 100):.100})",
            hint="do not use it there; `tensorop verify` judges it here, and please report it",
        )
    if len(rows) != head["steps"] or rest[-1].get("end") != head["steps"]:
        raise JobError(f"{path} is cut off: {len(rows)} of {head['steps']} rows", hint=_AGAIN)
    if not any(row["kind"] == "control" for row in rows):
        raise UsageError(f"{path} has no controls", hint=_AGAIN)
    return rows


def _require_judged(path: Path, held: Held, rows: list[dict[str, Any]]) -> None:
    """Raises UsageError unless each control ended as it must, and each variant was verified, as every kit does."""
    ends = {control.name: [kind.value for kind in control.expected] for control in controls.controls(held.operator)}
    left = {(w.dtype, number) for w in held.winners for number in range(-1, len(w.all))}
    for row in rows:
        of = row["of"]
        if row["kind"] == "control" and row["outcome"] not in (expected := ends.get(of["control"], [])):
            said = (
                f"row {row['step']}: the control {one_line(of['control'], 40)} ended as {one_line(row['outcome'], 40)}"
            )
            raise UsageError(f"{path}, {said}, expected {' or '.join(expected) or 'one of this version'}", hint=_AGAIN)
        if row["kind"] == "verify":
            left.discard((of["dtype"], of["variant"]))
    if left:
        raise UsageError(f"{path} does not verify variant {min(left)[1]} of {min(left)[0]}", hint=_AGAIN)


def _row(path: Path, held: Held, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with figures, as the product keeps it. Raises UsageError where no plan of the product's kits has it."""
    of = row["of"]

    def refuse(what: str, expected: str) -> UsageError:
        return UsageError(f"{path} is damaged: row {row['step']} has {what}; expected {expected}", hint=_AGAIN)

    winners = next((w for w in held.winners if w.dtype == of["dtype"]), None)
    if winners is None:
        raise refuse(f"dtype {of['dtype']!r:.40}", "one of " + ", ".join(w.dtype for w in held.winners))
    count = len(winners.all)
    if len(set(of["variants"])) != len(of["variants"]) or max(of["variants"]) >= count:
        raise refuse(f"variants {of['variants']!r:.80}", f"different ones, of 0 to {count - 1}")
    if len(row["ns"]) != len(of["variants"]):
        raise refuse(f"figures of {len(row['ns'])} variants", f"figures of {len(of['variants'])}")
    shapes = held.operator.reference.shapes
    if set(of["dims"]) != set(shapes.names):
        raise refuse(f"the dims {', '.join(of['dims'])!r:.80}", ", ".join(shapes.names))
    if dict(of["options"]) not in [dict(layout) for layout in held.operator.layouts]:
        raise refuse(f"the options {of['options']!r:.80}", "those of one of the operator's layouts")
    medians = {number: quartiles(rounds)[1] for number, rounds in zip(of["variants"], row["ns"], strict=True)}
    ns = [medians.get(number) for number in range(count)]
    told = {"dtype": of["dtype"], "dims": of["dims"], "options": of["options"], "ns": ns}
    return {**told, "date": row["date"], "mhz": row["mhz"]}


def lines(path: Path) -> list[dict[str, Any]]:
    """All of a file, each line by its checksum and its schema, the first of this version's. Raises as `read`."""
    found = [_line(path, number, text) for number, text in enumerate(_lines(path), 1)]
    if found[0].get("schema") != SCHEMA:
        raise UsageError(
            f"{path} is of schema {found[0].get('schema')!r:.40}, expected {SCHEMA}",
            hint="use the version of tensorop that made the kit, or make a new kit with this one",
        )
    try:
        kitrows.check(found, str(path))
    except SpecError as error:
        raise UsageError(error.message.split("\n")[0], hint=_AGAIN) from None
    return found


def _lines(path: Path) -> list[str]:
    try:
        text = files.plain(path, files.LINES).decode("ascii").replace("\r\n", "\n")  # it may have been mailed
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}", hint=_FILE) from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no result of a kit", hint=_FILE) from None
    if jsontext.values(text) > _MOST_VALUES:
        raise UsageError(f"{path} is no result of a kit: it has more than {_MOST_VALUES} values", hint=_FILE)
    lines = text.rstrip().split("\n")
    if lines == [""]:
        raise UsageError(f"{path} is no result of a kit: it has no whole line", hint=_FILE)
    if not text.endswith("\n") and _value(lines[-1]) is None:
        raise JobError(f"{path} is cut off in line {len(lines)}", hint=_AGAIN)
    return lines


def _line(path: Path, number: int, text: str) -> dict[str, Any]:
    value = _value(text)
    if value is None:
        said = f"line {number} is not as a kit writes it"
        raise UsageError(f"{path} is damaged or no result of a kit: {said}", hint=_AGAIN)
    return value


def _value(text: str) -> dict[str, Any] | None:
    """What a line says; None where its checksum is not right."""
    body, mark, total = text.rpartition(',"sum":"')
    try:
        value = jsontext.loads(text)
    except ValueError:
        return None
    right = mark and isinstance(value, dict) and total == f'{_sum(body.encode()):016x}"}}'
    return dict(value) if right else None


def _sum(data: bytes) -> int:
    """FNV-1a, as the kit has it."""
    total = 0xCBF29CE484222325
    for byte in data:
        total = (total ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return total

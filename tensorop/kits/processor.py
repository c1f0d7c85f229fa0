"""Products for CPUs: their kits, and the dispatch from the kits' results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tensorop import paths
from tensorop.author import offline
from tensorop.commands import opened as opening
from tensorop.commands import verify
from tensorop.commands.opened import Opened
from tensorop.dispatch import choice
from tensorop.dispatch.choice import Candidates
from tensorop.errors import UsageError
from tensorop.kits import plan, program, steps
from tensorop.kits.product import (
    AGAIN,
    KINDS,
    KitPlan,
    KitProduct,
    KitResult,
    Retuned,
    measured,
    read_manifest,
    unreadable,
)
from tensorop.kits.result import RUN_AGAIN
from tensorop.kits.rows import BoardMachine, KeptKit, KeptOnBoard, KeptRow, KitMachine, KitRow, TimedOnBoard
from tensorop.measure.statistics import quartiles
from tensorop.model.architecture import architecture
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.point import Point
from tensorop.model.verdict import Seed, Verdict
from tensorop.model.winner import DtypeRecord, Tree, Winners, by_operator, trees_of
from tensorop.package.product import product
from tensorop.package.publish import Staged
from tensorop.package.sources import OperatorPart
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.specs import files
from tensorop.specs.printable import one_line
from tensorop.store import journal
from tensorop.target import KitRequest
from tensorop.verify import controls

MEASURED = "measured"  # the key in a product's facts
SMALL = 4e6  # flops; larger problems are not verified again here, since an emulator is slow
FEW = 64 << 20  # bytes of operands; larger problems are not verified again here


@dataclass(frozen=True)
class ProcessorProduct(KitProduct):
    """A CPU product with its variants and trees, rebuilt from the manifest."""

    winners: tuple[Winners, ...]
    texts: Texts

    board = ("arch", "board", "vlen", "emulator")

    @property
    def archive(self) -> Path:
        return self.opened.library.with_suffix(".a")

    def plan(self, request: KitRequest) -> KitPlan:
        operator, platform = self.operator, self.platform
        wanted, dtypes = steps.wanted_controls(self), [w.dtype for w in self.winners]
        executable = program.build(operator, platform, self.archive, dtypes, wanted, request.jobs).path.read_bytes()
        found = steps.steps(self, request, Seed.draw())
        least = platform.fixed_vlen or min(platform.verify_vlens, default=0) if platform.arch == "riscv64" else 0
        head = plan.Head(platform.arch, self.digest, platform.name, dtypes, least)
        data = plan.Writer(operator.reference, head).write(found, "")
        kit = hashlib.sha256(hashlib.sha256(executable).digest() + hashlib.sha256(data).digest()).hexdigest()
        data = data[: plan.KIT_AT] + kit.encode() + data[plan.KIT_AT + len(kit) :]
        own = paths.native_dir() / "kit"
        names = dict.fromkeys(word.lower() for word in (platform.arch, *architecture(platform.arch).spellings))
        script = self.script(own, " ".join(names), "plan.bin")
        return KitPlan(
            kit,
            {"kit": executable, "plan.bin": data, "run-kit": script, "README": (own / "README").read_bytes()},
            {name: sum(KINDS[step.kind] == name for step in found) for name in KINDS},
            {
                "platform": {"name": platform.name, "arch": platform.arch, "least_vlen": least},
                "compiler": self.manifest["compiler"],
                "dtypes": dtypes,
                "times": [step.of for step in found if step.kind == plan.TIME],
            },
        )

    def require_machine(self, path: Path, machine: KitMachine) -> None:
        assert isinstance(machine, BoardMachine)
        platform, least = self.platform, self.platform.fixed_vlen or 0
        if machine.arch != platform.arch:
            wrong, needed = machine.arch, platform.arch
        elif platform.arch == "riscv64" and machine.vlen < least:
            wrong, needed = f"a core with VLEN {machine.vlen}", f"VLEN {least} or more"
        else:
            return
        raise UsageError(
            f"{path} was measured on {wrong}; platform {platform.name} needs {needed}",
            hint="run the kit on such a board",
        )

    def require_judged(self, path: Path, rows: Sequence[KitRow]) -> None:
        """Raises UsageError unless each control has an expected outcome and each variant was verified."""
        ends = {control.name: [kind.value for kind in control.expected] for control in controls.controls(self.operator)}
        left = {(w.dtype, number) for w in self.winners for number in range(-1, len(w.all))}
        for row in rows:
            if row.kind == "control" and row.outcome not in (expected := ends.get(row.of.control, [])):
                control, ended = one_line(row.of.control, 40), one_line(row.outcome, 40)
                raise UsageError(
                    f"{path}, row {row.step}: control '{control}' ended as {ended}, "
                    f"expected {' or '.join(expected) or 'one of this version'}",
                    hint=RUN_AGAIN,
                )
            if row.kind == "verify":
                left.discard((row.of.dtype, row.of.variant))
        if left:
            raise UsageError(f"{path} has no verification of variant {min(left)[1]} of {min(left)[0]}", hint=RUN_AGAIN)

    def row(self, path: Path, row: KitRow) -> KeptRow | None:
        if not isinstance(row, TimedOnBoard):
            return None
        of, winners = row.of, next((w for w in self.winners if w.dtype == row.of.dtype), None)

        def refuse(what: str, expected: str) -> UsageError:
            return UsageError(f"{path} is damaged: row {row.step} has {what}; expected {expected}", hint=RUN_AGAIN)

        if winners is None:
            raise refuse(f"dtype {of.dtype!r:.40}", "one of " + ", ".join(w.dtype for w in self.winners))
        count = len(winners.all)
        if len(set(of.variants)) != len(of.variants) or max(of.variants) >= count:
            raise refuse(f"variants {of.variants!r:.80}", f"different ones, of 0 to {count - 1}")
        if len(row.ns) != len(of.variants):
            raise refuse(f"figures of {len(row.ns)} variants", f"figures of {len(of.variants)}")
        shapes = self.operator.reference.shapes
        if set(of.dims) != set(shapes.names):
            raise refuse(f"the dims {', '.join(of.dims)!r:.80}", ", ".join(shapes.names))
        if of.options not in [dict(layout) for layout in self.operator.layouts]:
            raise refuse(f"the options {of.options!r:.80}", "those of one of the operator's layouts")
        medians = {number: quartiles(rounds)[1] for number, rounds in zip(of.variants, row.ns, strict=True)}
        ns = [medians.get(number) for number in range(count)]
        more = {"date": row.date, "mhz": row.mhz}
        return KeptOnBoard(dtype=of.dtype, dims=of.dims, options=of.options, ns=ns, **more)

    def where(self, machine: KitMachine) -> str:
        assert isinstance(machine, BoardMachine)
        emulator = machine.emulator.split()
        board = " ".join(machine.board.split()) or f"a board ({machine.arch})"
        return f"{board}, under the emulator {Path(emulator[0]).name}" if emulator else board

    def retuned(self, kits: Sequence[KeptKit], result: KitResult, jobs: int) -> Retuned:
        machine = result.kept.machine
        assert isinstance(machine, BoardMachine)
        here = [kit for kit in kits if self.board_of(kit.machine) == self.board_of(machine)]
        vlen, measured_on = machine.vlen, f"measured on {self.where(machine)} by kit"
        chosen = [_chosen(self, of_dtype, here, vlen) for of_dtype in self.winners]
        facts = {**self.of_operator["facts"], MEASURED: [_summary(kit) for kit in kits]}
        line = f"Grown on ns {measured_on}, {result.kept.date[:10]}"
        if any(len(w.trees) > 1 for w in chosen):
            line += f", where VLEN {vlen} is served; else on {facts.get('unit', 'what the product was made on')}"
        made = product(self.platform, [OperatorPart(self.operator, chosen, facts, line, self.texts)], jobs=jobs)
        regrets = {
            old.dtype: {"before": place(old, vlen).regret, "after": place(new, vlen).regret}
            for old, new in zip(self.winners, chosen, strict=True)
        }
        results = dict(self.manifest.get("results") or {})
        return Retuned(made, results, {"regret": regrets}, [_in_words(*one) for one in regrets.items()], kits)

    def verified(self, staged: Staged, result: KitResult, seed: Seed) -> tuple[Verdict, ...]:
        anew = opening.staged(staged, self.operator, self.platform, self.opened.plugins)
        return tuple(verify.quick(anew, self.opened.reach(), seed, _problems(self, result)))


def read(opened: Opened) -> ProcessorProduct:
    """The product of an opened library.

    Raises UsageError for a library outside its product's folder, and for one that lacks a part that a kit needs.
    """
    root, manifest = read_manifest(opened)
    try:
        dtypes = by_operator(manifest)[opened.operator.name]["dtypes"]
        past = journal.read(root) if journal.journal_path(root).is_file() else None
        templates = _templates(opened.operator, past.templates.values() if past else ())
        found = tuple(_winners(opened, name, of_dtype, templates) for name, of_dtype in dtypes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise unreadable(root, error) from None
    held = ProcessorProduct(opened, root, manifest, found, Texts(past.texts if past else None))
    try:
        files.require(held.archive, files.LIBRARY)
    except FileNotFoundError:
        raise UsageError(f"{held.archive} is missing, and the kit needs it", hint=AGAIN) from None
    except OSError as error:
        raise UsageError(f"{held.archive} cannot be read: {error.strerror}", hint=AGAIN) from None
    return held


def _in_words(dtype: str, regret: Mapping[str, float | None]) -> str:
    before, after = ("unknown" if of is None else f"{of:.1%}" for of in (regret["before"], regret["after"]))
    return f"{dtype}: dispatch loss on held-out shapes {after} (before this import {before})"


def _summary(kit: KeptKit) -> dict[str, object]:
    """A kit's record in the manifest and the card."""
    machine = kit.machine.model_dump(include={"board", "vlen", "emulator"})
    return {**machine, "date": kit.date, "kit": kit.kit, "rows": len(kit.rows)}


def _chosen(held: ProcessorProduct, given: Winners, kits: Sequence[KeptKit], vlen: int) -> Winners:
    """The same variants, with a new tree for cores such as this board's."""
    rows = measured(held.operator, given, kits)
    if len(given.all) < 2 or not rows:
        return given
    platform = held.platform
    at = vlen if vlen in platform.vlens else platform.vlens[0]
    found = choice.winners(Candidates.of(held.operator, platform, given), {at: rows})
    there = place(given, vlen)
    trees = tuple(_tree(tree, there, found.trees[0]) for tree in given.trees)
    unasked = found.unasked if len(trees) == 1 else min(given.unasked, found.unasked)
    return replace(given, trees=trees, unasked=unasked)


def _tree(tree: Tree, replaced: Tree, new: Tree) -> Tree:
    return replace(new, vlen=tree.vlen) if tree is replaced else tree


def _problems(held: ProcessorProduct, result: KitResult) -> Iterator[Any]:
    """The timed problems that are small enough to verify again here."""
    for row in result.kept.rows:
        assert isinstance(row, KeptOnBoard)
        problem = held.operator.reference.problem(row.dtype, row.dims, row.options)
        reference = held.operator.reference
        if reference.work(problem) <= SMALL and reference.traffic(problem) <= FEW:
            yield problem


# --- rebuilt from the manifest ---------------------------------------------------------------------------------------


def _templates(operator: Operator, others: Any) -> dict[str, KernelTemplate]:
    direct = offline.direct(operator.folder, operator.name)
    own = [*offline.templates(operator.folder, operator.name, operator.added), *([direct] if direct else [])]
    return {template.digest: template for template in (*others, *own)}


def _winners(opened: Opened, dtype: str, record: DtypeRecord, templates: Mapping[str, KernelTemplate]) -> Winners:
    variants = []
    for one in record["variants"]:
        if one["digest"] not in templates:
            raise UsageError(
                f"the source of template '{one['template']}' ({one['digest']}) in {opened.library.name} is missing: "
                "it is "
                "neither shipped with this version nor in the product's journal",
                hint=AGAIN,
            )
        variant = instantiate.variant(opened.operator, templates[one["digest"]], dtype, Point.of(one["point"]))
        if variant.id != one["id"]:
            raise UsageError(
                f"{opened.library} was built by an incompatible version of tensorop: variant {one['id']} of {dtype} "
                "differs",
                hint=AGAIN,
            )
        variants.append(replace(variant, specialisations=tuple(map(int, one.get("specialisations", ())))))
    direct = variants.pop() if variants[-1].template.name == offline.DIRECT else None
    most = int(record["direct"]["most_flops"]) if "direct" in record else 0
    return Winners(dtype, tuple(variants), trees_of(record), direct, most)


def place(winners: Winners, vlen: int) -> Tree:
    """The tree for cores of this VLEN."""
    shorter = [tree for tree in winners.trees if tree.vlen <= vlen]
    return shorter[-1] if shorter else winners.trees[0]

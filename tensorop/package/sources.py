"""Renders the C files of a library from the winners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tensorop import __version__
from tensorop.author import offline
from tensorop.errors import JobError, SpecError
from tensorop.model.expression import parse
from tensorop.model.kernel import KernelTemplate, Source, Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.winner import Leaf, Split, Tree, Winners
from tensorop.package import card, routines
from tensorop.render import instantiate, render, words
from tensorop.render.texts import Texts
from tensorop.specs import products
from tensorop.toolchain import needs
from tensorop.toolchain.needs import Needs


@dataclass(frozen=True)
class OperatorPart:
    """The part of a product for one operator."""

    operator: Operator
    winners: Sequence[Winners]
    facts: Mapping[str, object] = field(default_factory=dict)  # see manifest.provenance
    measured: str = ""  # the measurements behind the trees, one line for the dispatch's comment
    texts: Texts = field(default_factory=Texts)  # the job's kernels, the only source of templates that are not shipped


@dataclass(frozen=True)
class Unit:
    """One C file to compile."""

    name: str
    text: str
    tuned: bool = False  # compiled for the platform's ISA, else for the architecture's baseline
    entries: tuple[str, ...] = ()  # global symbols that it may define (see gate.check_object)
    needs: Needs = needs.KERNEL  # allowed besides code and constants
    flags: tuple[str, ...] = ()  # those of its template's author


@dataclass(frozen=True)
class ProductLibrary:
    """The files that are linked to one library."""

    name: str
    description: str
    units: tuple[Unit, ...]
    exports: tuple[str, ...]  # public symbols
    over: tuple[str, ...] = ()  # names of the libraries that it needs


@dataclass(frozen=True)
class Sources:
    """All C of a product.

    If there are several operators, each has a folder with its units and private headers.
    """

    headers: tuple[tuple[str, str], ...]  # public, in a folder `tensorop`
    private: tuple[tuple[str, str], ...]  # beside the units
    libraries: tuple[ProductLibrary, ...]

    def seen_by(self, unit: Unit) -> Source:
        """A unit with all files that it may include."""
        folder = Path(unit.name).parent
        private = ((name, text) for name, text in self.private if Path(name).parent == folder)
        files = ((unit.name, unit.text), *((f"tensorop/{name}", text) for name, text in self.headers), *private)
        return Source(files, flags=unit.flags)


@dataclass(frozen=True)
class _Kernel:
    """A kernel of a template, written for one VLEN."""

    template: KernelTemplate
    vlen: int  # bits; 0: any
    uses: tuple[tuple[int, Variant], ...]  # (number, variant) of the variants that use it


def together(parts: Mapping[str, Sources]) -> Sources:
    """The C of one product of several operators. parts: the C of each operator, by its name

    If several operators have a library of one name, such as libtensorop_cblas, the product has one library with the
    functions of all. Raises JobError if two operators have a public header with the same name and different texts.
    """
    if len(parts) == 1:
        return next(iter(parts.values()))
    headers: dict[str, str] = {}
    private: list[tuple[str, str]] = []
    libraries: dict[str, ProductLibrary] = {}
    for folder, part in parts.items():
        for name, text in part.headers:
            if headers.setdefault(name, text) != text:
                raise JobError(f"two operators of a product both have a file {name}", hint="rename it in one of them")
        private += [(f"{folder}/{name}", text) for name, text in part.private]
        for library in part.libraries:
            units = tuple(replace(unit, name=f"{folder}/{unit.name}") for unit in library.units)
            before = libraries.get(library.name, replace(library, units=(), exports=(), over=()))
            libraries[library.name] = replace(
                before,
                units=(*before.units, *units),
                exports=tuple(dict.fromkeys((*before.exports, *library.exports))),
                over=(*before.over, *library.over),
            )
    # libraries that need others come last, which is the order of linking
    ordered = sorted(libraries.values(), key=lambda library: bool(library.over))
    return Sources(tuple(headers.items()), tuple(private), tuple(ordered))


def sources(part: OperatorPart, platform: Platform, provenance: str) -> Sources:
    """The C of a library with the winners of each dtype. provenance: the card's JSON.

    Raises render.RenderError if a template is wrong, JobError for a kernel that was not judged.
    """
    operator, winners = part.operator, part.winners
    spec = products.load(operator)
    epilogue = bool(part.facts.get("epilogue"))
    work = _Work(operator, platform, spec, part.texts, epilogue)
    entries = {w.dtype: _entries(operator, w) for w in winners}
    shared: dict[str, Any] = {
        "operator": operator.name,
        "interface": operator.interface.names,
        "seen": operator.seen,
        "dtypes": [w.dtype for w in winners],
        "types": {w.dtype: {**spec.types.get(w.dtype, {}), "compute": work.compute(w)} for w in winners},
        "statuses": spec.statuses,
        "routines": routines.described(spec.routines),
        "platform_name": platform.name,
        "arch": platform.arch,
        "tool_version": __version__,
        "variants": [entry for of_dtype in entries.values() for entry in of_dtype.values()],
        "by_vlen": any(len(w.trees) > 1 for w in winners),
        "card_literal": card.literal(provenance),
        "card_marker_length": len(card.MARKER),
        "epilogue": epilogue,
        **spec.settings,
    }
    units = []
    for w in winners:
        kernels, drivers = work.kernels(w, entries[w.dtype], shared)
        units += kernels
        work.private += drivers
        numbers = {name: w.of_routines.get(name, one.values[0]) for name, one in spec.tunables.items()}
        names = {**shared, **numbers, "dtype": w.dtype, "direct": _direct(w), **_serving(w, entries[w.dtype])}
        names["trees"] = [_tree(operator, tree, part.measured) for tree in w.trees]
        more = spec.epilogue if epilogue else ()
        for n, tuned in (*((n, False) for n in (*spec.dtype, *more)), *((n, True) for n in (*spec.tuned, *more))):
            vectors = instantiate.vectors(platform, w.dtype) if tuned else {}
            text = work.product(n, {**names, **vectors, "tuned": tuned})
            name = f"{Path(n).stem}_{w.dtype}{'_tuned' if tuned else ''}.c"
            units.append(Unit(name, text, tuned=tuned, needs=_needs(spec, n)))
    libraries: list[ProductLibrary] = []
    for name, library in spec.libraries.items():
        first = not libraries
        kinds = ["all", *shared["dtypes"], *(f"epilogue {dtype}" for dtype in shared["dtypes"] if epilogue)]
        exports = [symbol for kind in kinds for symbol in library.names.get(kind, ())]
        own = [
            Unit(f, work.product(f, shared), entries=tuple(exports), needs=_needs(spec, f))
            for f in (*library.sources, *(products.SOURCES if first else ()))
        ]
        libraries.append(
            ProductLibrary(
                name,
                library.description,
                tuple([*units, *own] if first else own),
                tuple([*exports, *products.NAMES] if first else exports),
                () if first else (libraries[0].name,),
            )
        )
    headers = [(name, work.product(name, shared)) for name in (products.HEADER, *spec.headers)]
    private = [*((n, work.product(n, shared)) for n in (*products.PRIVATE, *spec.private)), *work.private]
    return _formatted(headers, private, libraries)


def text_ids(part: OperatorPart, platform: Platform) -> dict[tuple[str, int, int], str]:
    """The id of each packaged text, which is the text of its trials.

    Keys are the dtype, the number of the variant, and the VLEN that the text is written for (0: any). Errors as
    `sources`.
    """
    return {
        (w.dtype, number, vlen): part.texts.judged(part.operator, platform, v.at(vlen)).id
        for w in part.winners
        for number, v, vlen in _written(w)
    }


def _needs(spec: products.ProductSpec, file: str) -> Needs:
    """The needs of a file's object.

    Files of the core have fixed needs; files of the operator may also call the names in its product.yaml.
    """
    return needs.OF_FILE[file] if file in products.SOURCES else needs.OPERATOR.with_calls(spec.calls.get(file, ()))


_Entries = dict[tuple[int, int], dict[str, Any]]  # (number of the variant, VLEN or 0) -> names for templates


class _Work:
    """Renders the texts of one product."""

    def __init__(
        self, operator: Operator, platform: Platform, spec: products.ProductSpec, texts: Texts, epilogue: bool
    ) -> None:
        self.operator, self.platform, self.spec, self.texts, self.epilogue = operator, platform, spec, texts, epilogue
        self.private: list[tuple[str, str]] = []
        self._env = render.environment(products.folders(operator))

    def product(self, name: str, names: Mapping[str, object]) -> str:
        template = products.template(self.operator, name) or f"{products.FOLDER}/{name}.j2"
        return render.c_text(self._env, template, names)

    def compute(self, winners: Winners) -> str:
        """The C type of packed operands, the same for all variants of a dtype."""
        return self.platform.primitives_of(winners.dtype, winners.variants[0].point).compute

    def kernels(
        self, winners: Winners, entries: _Entries, shared: Mapping[str, object]
    ) -> tuple[list[Unit], list[tuple[str, str]]]:
        """One file per kernel, and the drivers: kernels whose drivers have the same text share one file."""
        units: list[Unit] = []
        drivers: dict[str, str] = {}
        for kernel in self._group(winners):
            template, dtype, first = kernel.template, winners.dtype, kernel.uses[0][1]
            names = self._names(first, kernel.vlen)
            isa = str(names["primitive_sets"]).split(", ")[0]
            stem = f"{isa}_{dtype}_{template.name}_{self._tile(names, first)}"
            stem = words.identifier(f"{stem}_vlen{kernel.vlen}" if kernel.vlen else stem)
            taken = sum(unit.name == f"{stem}.c" or unit.name.startswith(f"{stem}_") for unit in units)
            name = stem if not taken else f"{stem}_{taken + 1}"
            driver = render.c_text(self._env, f"{self.spec.driver}.j2", names)
            file = drivers.get(driver, f"driver_{dtype}{f'_{len(drivers) + 1}' if drivers else ''}.h")
            if template.name != offline.DIRECT:
                drivers[driver] = file
            uses = [{**self._names(v, kernel.vlen), **entries[number, kernel.vlen]} for number, v in kernel.uses]
            text = self.product(self.spec.kernel, {**shared, **names, "driver_file": file, "uses": uses})
            symbols = tuple(str(use["symbol"]) for use in uses)
            units.append(Unit(f"{name}.c", text, tuned=True, entries=symbols, flags=template.flags))
        return units, [(name, text) for text, name in drivers.items()]

    def _tile(self, names: dict[str, Any], variant: Variant) -> str:
        tile = self.spec.tile or "_".join(f"{name}{{{name}}}" for name in variant.kernel.configuration)
        try:
            return tile.format(**names)
        except (KeyError, IndexError, ValueError, AttributeError):
            file = self.operator.folder / products.FOLDER / "product.yaml"
            expected = "expected a text with names of tunables in braces"
            raise SpecError(f"{file}: key 'tile': {expected}, got '{self.spec.tile}'") from None

    def _names(self, variant: Variant, vlen: int) -> dict[str, Any]:
        """The names that templates use around the variant's kernel."""
        variant = variant.at(vlen)
        text = self.texts.judged(self.operator, self.platform, variant)
        names = instantiate.around(self.operator, self.platform, variant, text)
        return {**names, "written_for": vlen, "epilogue": self.epilogue}

    def _group(self, winners: Winners) -> list[_Kernel]:
        """Groups variants whose kernels have the same text: a blocking tunable may or may not change the kernel."""
        groups: dict[tuple[int, str], _Kernel] = {}
        for number, variant, vlen in _written(winners):
            same = vlen, self.texts.judged(self.operator, self.platform, variant.at(vlen)).id
            uses = groups[same].uses if same in groups else ()
            groups[same] = _Kernel(variant.template, vlen, (*uses, (number, variant)))
        return list(groups.values())


def _written(winners: Winners) -> list[tuple[int, Variant, int]]:
    """(number, variant, VLEN or 0) of everything with C of its own: variants for any VLEN, then specialisations."""
    numbered = list(enumerate(winners.all))
    specialisations = [
        (i, v, vlen) for tree in winners.trees for i, v in numbered for vlen in v.specialisations if vlen == tree.vlen
    ]
    return [(i, v, 0) for i, v in numbered] + specialisations


def _entries(operator: Operator, winners: Winners) -> _Entries:
    return {(i, vlen): _entry(operator, winners.dtype, i, v, vlen) for i, v, vlen in _written(winners)}


def _entry(operator: Operator, dtype: str, number: int, variant: Variant, vlen: int) -> dict[str, Any]:
    return {
        "dtype": dtype,
        "number": number,
        "label": str(variant.at(vlen)),
        "symbol": f"tensorop_{operator.name}_{dtype}_variant_{number}{f'_vlen{vlen}' if vlen else ''}",
    }


def _serving(winners: Winners, entries: _Entries) -> dict[str, Any]:
    """Names for the dispatch's template: `entries` by number, and `specialisations` by VLEN.

    For a VLEN, its specialisations replace the entries of their variants.
    """
    numbers = range(len(winners.all))
    vlens = sorted({vlen for _, vlen in entries if vlen})
    return {
        "entries": [entries[i, 0] for i in numbers],
        "specialisations": {vlen: [entries.get((i, vlen), entries[i, 0]) for i in numbers] for vlen in vlens},
    }


def _direct(winners: Winners) -> dict[str, int] | None:
    """Names for the dispatch's template: the direct variant's number, and the most flops it serves without a tree."""
    if winners.direct is None or not winners.unasked:
        return None
    return {"variant": len(winners.variants), "unasked": winners.unasked}


def _tree(operator: Operator, tree: Tree, measured: str) -> dict[str, Any]:
    """Names for the dispatch's template: a tree as C, with its features and a comment on its accuracy."""
    used: set[str] = set()
    text = "\n".join(_branch(operator, tree.root, used))
    features = {
        name: parse(text, dict.fromkeys(operator.seen, int)).in_c()
        for name, text in operator.derived.items()
        if name in used
    }
    where = f"{measured}{f' at VLEN {tree.vlen}' if tree.vlen else ''}" if measured else ""
    regret = (
        "the cost of this choice on other shapes was not measured"
        if tree.regret is None
        else f"on shapes that were not used for the tree, its choice is {tree.regret:.1%} slower than the best variant"
        " (geometric mean)"
    )
    return {
        "vlen": tree.vlen,
        "text": text,
        "features": features,
        "measured": f"{where}{'; ' if where else ''}{regret}.",
    }


def _branch(operator: Operator, node: Leaf | Split, used: set[str]) -> list[str]:
    """The tree as nested ifs: the branch below the threshold returns, the other follows."""
    if isinstance(node, Leaf):
        return [f"return {node.variant};"]
    used.add(node.feature)
    named = node.feature in operator.features
    value = node.feature if named else parse(node.feature, dict.fromkeys(operator.seen, int)).in_c()
    return [
        f"if ({value} <= {node.threshold}) {{",
        *_branch(operator, node.low, used),
        "}",
        *_branch(operator, node.high, used),
    ]


def _formatted(
    headers: list[tuple[str, str]], private: list[tuple[str, str]], libraries: list[ProductLibrary]
) -> Sources:
    texts = [text for _, text in (*headers, *private)] + [u.text for lib in libraries for u in lib.units]
    with ThreadPoolExecutor(2) as pool:
        laid_out = dict(zip(texts, pool.map(render.formatted, texts), strict=True))
    return Sources(
        tuple((name, laid_out[text]) for name, text in headers),
        tuple((name, laid_out[text]) for name, text in private),
        tuple(replace(lib, units=tuple(replace(u, text=laid_out[u.text]) for u in lib.units)) for lib in libraries),
    )

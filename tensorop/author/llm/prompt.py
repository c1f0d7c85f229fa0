"""Makes prompts: the operator's contract, the platform's primitives and facts, rules, hints, an example, and failures.

The prose is in the operator's folder, `templates/<op>/prompts/{system,template,repair}.md.j2`, with the example
`example.c.j2` and `hints/*.md.j2`. Those files may include the pages of `author/llm/prompts/`, which serve every
operator. This module fills them in. The same brief gives the same messages.

A line `<!-- priority 3 -->` begins a section, up to the next such line; `<!-- priority 4 if in_order -->` begins one
that only platforms with this fact get. A prompt that has more tokens than the limit loses sections: the largest
priority first, then the last. Priority 1 always stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2

from tensorop.author import grammar, rules
from tensorop.author.llm import machine
from tensorop.author.llm.messages import Message
from tensorop.author.plans import Counted
from tensorop.errors import SpecError, UsageError
from tensorop.model import expression
from tensorop.model.hot_loop import HotLoop
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Value
from tensorop.model.primitive import ARGUMENTS, Primitives
from tensorop.model.steering import ACTIONS, CONFIGURE, IMPROVE, Choice
from tensorop.model.trial import Finished, Kind, Outcome
from tensorop.settings import Settings
from tensorop.specs import files

LOG_TAIL = 4096
MAX_FAILURES = 5
MAX_DIAGNOSTICS = 12
MAX_DIAGNOSTIC = 300  # characters of one diagnostic
MAX_TOKENS = 16_000  # of the question for a new template
MIN_TOKENS = 1_000

_DIAGNOSTIC = re.compile(r"^(?:.*?[:\s])?(?:fatal )?(error|warning|note): (.*)$", re.MULTILINE)
_PATH = re.compile(r"(?<![\w.)\]])(?:~|\.{1,2})?/[\w.+~-]+(?:/[\w.+~-]+)*/?|\b[A-Za-z]:\\\\\S+")
_SECTION = re.compile(r"^<!-- priority ([1-9])(?: if (.+?))? -->\n", re.MULTILINE)
_NAME = re.compile(r"\b(?!(?:and|or|not|in|min|max)\b)[a-z_]\w*")  # in a section's condition
_PAGES = Path(__file__).parent / "prompts"  # for all operators
_PLAN = re.compile(r"^plan:.*\n(?:[ \n].*\n|\n)*?(?=\S)", re.MULTILINE)  # of a head
_SEED = re.compile(r",? ?\bseed -?\d+:[0-9a-f]{32}\b")


@dataclass(frozen=True)
class Brief:
    """Everything that a prompt is made of. Mappings are of the first dtype."""

    operator: Operator
    platform: Platform
    primitives: Primitives
    dtypes: tuple[str, ...]
    shapes: tuple[str, ...]  # in the operator's notation
    facts: Mapping[str, int]  # names that constraints may use
    differing: Mapping[str, Mapping[str, int]]  # further dtype -> those of them that differ
    known: Mapping[str, Value]  # names for the conditions of sections; others are 0
    names: Mapping[str, object]  # names of a kernel's text besides facts and tunables, with their values
    bounds: Mapping[str, float]  # dtype -> cost of 1000 flops of multiply-adds alone; empty if a clock measures it
    example: str  # a whole template that works
    left_out: str = ""  # a part of questions, as `Job.leave_out`; empty: nothing is

    @property
    def folders(self) -> tuple[Path, ...]:
        return self.operator.prompts

    @property
    def more(self) -> dict[str, object]:
        used = {argument for one in self.primitives.with_aliases.values() for argument in one.args}
        arguments: dict[str, list[str]] = {}
        for argument in (argument for argument in ARGUMENTS if argument in used):
            arguments.setdefault(ARGUMENTS[argument], []).append(argument)
        return {
            "arguments": arguments,
            "machine": None if self.left_out == "facts" else machine.machine(self.platform, self.dtypes[0]),
            "rules": rules.rules(),
            "language": grammar.language(),
            "types": {dtype: self.platform.primitives_of(dtype) for dtype in self.dtypes},
            **({"hints": ()} if self.left_out == "hints" else {}),
            "example": example(self.example, self.left_out),
        }


@dataclass(frozen=True)
class DeviceBrief:
    """The same of a prompt for kernels of a GPU; the backend's own names are in `more`."""

    operator: Operator
    platform: Platform
    dtypes: tuple[str, ...]
    shapes: tuple[str, ...]  # in the operator's notation
    known: Mapping[str, Value]  # names for the conditions of sections; others are 0
    example: str  # a whole template that works
    folders: tuple[Path, ...]  # of the prose; a file of the first that has it is used
    more: Mapping[str, object]
    left_out: str = ""  # as in Brief


AnyBrief = Brief | DeviceBrief


@dataclass(frozen=True)
class Lessons:
    """The results of earlier rounds."""

    strategies: tuple[str, ...] = ()  # of templates that passed
    failures: tuple[str, ...] = ()  # newest last


@dataclass(frozen=True)
class MeasuredTemplate:
    """A template of the search with the costs of its best configuration."""

    name: str
    by: str  # `you`, or `tensorop`
    parent: str  # name of the template that it was made from; empty: none
    cost: float  # alone
    shapes: Mapping[str, float]  # shape -> cost of whole problems with usual block sizes; empty: not measured
    strategy: str


@dataclass(frozen=True)
class Standing:
    """What a search has measured so far of one dtype: the facts of the question for a better template."""

    dtype: str
    trials: int
    unit: str  # of costs, as text
    bound: float | None  # no kernel costs less; None if unknown
    templates: tuple[MeasuredTemplate, ...]  # the cheapest first
    name: str  # of the model's best template, then its text, configuration and cost
    text: str
    point: str
    cost: float
    low: float  # the cost under the kindest assumed constants, or the lower quartile of a clock
    high: float
    loop: HotLoop | None
    counters: Mapping[str, float]  # name -> number in one call
    by: str = "you"  # who wrote it, as in MeasuredTemplate
    parts: Sequence[tuple[str, str]] = ()  # name and lines of each of its regions
    planned: Counted | None = None  # by its plan; None without one

    @property
    def shapes(self) -> tuple[str, ...]:
        """The shapes of whole problems that were measured."""
        return tuple(dict.fromkeys(shape for one in self.templates for shape in one.shapes))

    def shared(self, group: str) -> dict[str, float]:
        """The counters of a group, e.g. `stalls`, the largest first."""
        found = {name.partition(".")[2]: count for name, count in self.counters.items() if name.startswith(f"{group}.")}
        return dict(sorted(((name, count) for name, count in found.items() if count), key=lambda one: -one[1]))


def improvement(
    brief: AnyBrief, standing: Standing, lessons: Lessons, limit: int = MAX_TOKENS, choice: Choice | None = None
) -> tuple[Message, ...]:
    """The question for a better template than the one that `standing` shows. limit: tokens, by `tokens`"""
    match brief.left_out:
        case "feedback":
            return opening(brief, lessons, limit)
        case "counters":
            standing = replace(standing, loop=None, counters={})
        case "facts":
            standing = replace(standing, bound=None, planned=None)
        case "plan":
            standing = replace(standing, text=example(standing.text, "plan"), planned=None)
    recent = Lessons(lessons.strategies, lessons.failures[-MAX_FAILURES:])
    asked = Message(
        "user",
        _fill(brief, "improve.md.j2", told=recent, standing=standing, choice=choice or Choice(), actions=ACTIONS),
    )
    return Message("system", _fitted(_fill(brief, "system.md.j2"), limit - tokens(asked))), asked


def example(text: str, left_out: str) -> str:
    """A template's text as a question shows it."""
    return _PLAN.sub("", text, count=1) if left_out == "plan" else text


def opening(
    brief: AnyBrief, lessons: Lessons, limit: int = MAX_TOKENS, choice: Choice | None = None
) -> tuple[Message, ...]:
    """The question for a new template, or on a device for a change of the best. limit: tokens, by `tokens`"""
    recent = Lessons(lessons.strategies, lessons.failures[-MAX_FAILURES:])
    asked = Message("user", _fill(brief, "template.md.j2", told=recent, choice=choice or Choice(), actions=ACTIONS))
    return Message("system", _fitted(_fill(brief, "system.md.j2"), limit - tokens(asked))), asked


def configurations(
    brief: AnyBrief, standing: Standing, tried: Sequence[Finished], most: int, limit: int = MAX_TOKENS
) -> tuple[Message, ...]:
    """The question for configurations of the template that `standing` shows. tried: its trials; limit: tokens"""
    costs = sorted((one.score.cost, str(one.trial.point)) for one in tried if one.score.cost is not None)
    failed = [(one.outcome.kind.value, str(one.trial.point)) for one in tried if not one.outcome.ok]
    if brief.left_out == "facts":
        standing = replace(standing, bound=None)
    asked = Message(
        "user",
        _fill(brief, "configure.md.j2", standing=standing, costs=costs, failed=failed[-MAX_FAILURES:], most=most),
    )
    return Message("system", _fitted(_fill(brief, "configurations.md.j2"), limit - tokens(asked))), asked


def token_limit(settings: Settings) -> int:
    """The environment's limit on the tokens of a question, or MAX_TOKENS. Raises UsageError for one that is none."""
    text = settings.llm_prompt_tokens
    if not text:
        return MAX_TOKENS
    if not text.isascii() or not text.isdigit() or int(text[:9]) < MIN_TOKENS:
        raise UsageError(
            f"TENSOROP_LLM_PROMPT_TOKENS must be an integer from {MIN_TOKENS}; got {text!r:.40}",
            hint="e.g. TENSOROP_LLM_PROMPT_TOKENS=8000",
        )
    return int(text[:9])


def tokens(*messages: Message) -> int:
    """An estimate: a token has four characters on average, in English and in C. Models differ by a third."""
    return sum(_tokens(message.text) for message in messages)


def _tokens(text: str) -> int:
    return -(-len(text) // 4)


def _fitted(text: str, limit: int) -> str:
    """The text without the marks of its sections, and without the least important ones if it is too long."""
    first, *rest = _SECTION.split(re.sub(r"\n{3,}", "\n\n", text))
    sections = [(1, first), *zip(map(int, rest[::3]), rest[2::3], strict=True)]
    while True:
        made = "\n".join(body.rstrip() + "\n" for _, body in sections)
        least, last = max((priority, number) for number, (priority, _) in enumerate(sections))
        if _tokens(made) <= limit or least == 1:
            return made
        del sections[last]


def _source(brief: AnyBrief, name: str) -> tuple[str, str, None] | None:
    """A file of prompts without the sections that are for other platforms, and its path; None if there is none."""
    path = next((path for folder in (*brief.folders, _PAGES) if (path := folder / name).is_file()), None)
    if path is None:
        return None
    kept, *rest = _SECTION.split(files.text(path, files.TEXT))
    for priority, condition, body in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        names = dict.fromkeys(_NAME.findall(condition or ""), 0)
        if condition is None or expression.evaluate(condition, {**names, **brief.known}):
            kept += f"<!-- priority {priority} -->\n{body}"
    return kept, str(path), None


def repair(
    brief: AnyBrief, asked: tuple[Message, ...], answer: str, outcome: Outcome, action: str = IMPROVE
) -> tuple[Message, ...]:
    """The question for a repair of the same template: the conversation so far and the error."""
    page = "reconfigure.md.j2" if action == CONFIGURE else "repair.md.j2"
    question = _fill(brief, page, outcome=outcome, log=outcome.log[-LOG_TAIL:])
    return (*asked, Message("assistant", answer), Message("user", question))


def repeatable(outcome: Outcome) -> Outcome:
    """The outcome as it may be sent to a model on another machine.

    Compilers quote files and name them, and a process can print anything. So a compiler's diagnostics are reduced to
    their texts, and a process's output is left out: only the outcome's own message stays. Paths are replaced. The run's
    seed is removed, since the operands of later calls follow from it.
    """
    if outcome.kind is not Kind.COMPILE or not outcome.log:
        return replace(outcome, message=_without_paths(outcome.message), log="")
    texts = [f"{kind}: {_without_paths(text)[:MAX_DIAGNOSTIC]}" for kind, text in _DIAGNOSTIC.findall(outcome.log)]
    diagnostics = list(dict.fromkeys(texts))[:MAX_DIAGNOSTICS]
    first = next((text for text in diagnostics if text.startswith("error")), "the compiler refused it")
    return replace(outcome, message=first, log="\n".join(diagnostics))


def _without_paths(text: str) -> str:
    return _PATH.sub("[path]", _SEED.sub("", text))


def _fill(brief: AnyBrief, name: str, **more: object) -> str:
    folder = brief.folders[0]
    env = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _source(brief, name)), undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    of_hints = brief.folders if isinstance(brief, Brief) else brief.folders[:1]
    context = {
        **vars(brief),
        "brief": brief,
        "hints": sorted({f"hints/{file.name}" for one in of_hints for file in one.glob("hints/*.md.j2")}),
        **brief.more,
    }
    try:
        return env.get_template(name).render({**context, **more})
    except jinja2.TemplateError as error:
        raise SpecError(f"{folder / name}: {error.message or type(error).__name__}") from error

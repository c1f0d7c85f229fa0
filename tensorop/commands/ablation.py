"""What the parts of questions to a language model are worth: the same job with one part after another left out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorop.author import offline
from tensorop.author.llm import accounting, transcript
from tensorop.errors import UsageError
from tensorop.model.job import MOST_CONFIGURATIONS, Job
from tensorop.model.trial import Finished, Stage
from tensorop.report import searches
from tensorop.store import journal

EVERYTHING, CONFIGURATIONS = "everything", "configurations"
ARMS = (*(f"no-{part}" for part in Job.options()["leave_out"][1].choices), CONFIGURATIONS, EVERYTHING)


@dataclass(frozen=True)
class AblatedRun:
    """The results of a job. Costs are those of micro-kernels alone, for its first dtype."""

    name: str
    model: str
    calls: int
    accepted: int  # answers whose template was accepted
    tokens: int
    cost: float | None  # of the calls; None without a price file
    trials: int  # of micro-kernels
    best: float | None  # of the model's templates; None if none was accepted
    shipped: float | None  # of the shipped templates

    @property
    def over_shipped(self) -> float | None:
        """Cost of the best shipped kernel / that of the model's best - 1."""
        return self.shipped / self.best - 1 if self.shipped and self.best else None


def job(whole: Job, arm: str) -> Job:
    """The job of an arm, in a folder of its own. Raises UsageError for an unknown arm, or nothing to replay."""
    if arm not in ARMS:
        raise UsageError(f"--arm must be one of {', '.join(ARMS)}; got {arm!r}", hint=f"e.g. --arm {ARMS[0]}")
    if whole.author == "replay" and whole.transcript is None:
        raise UsageError("--author replay needs recorded arms", hint="add --transcript DIR, the --out of an ablation")
    part = arm.removeprefix("no-") if arm.startswith("no-") else None
    configurations = MOST_CONFIGURATIONS if arm == CONFIGURATIONS else 0
    recorded = None if whole.transcript is None else whole.transcript / arm
    # a replay asks what its transcript asked
    given = {"transcript": recorded, "out": whole.out / arm}
    return replace(
        whole, **given if recorded else {**given, "leave_out": part, "author_configurations": configurations}
    )


def results(job: Job, name: str) -> AblatedRun:
    """The results of the job of an arm.

    Raises UsageError if it has no recorded calls, or those of another arm: its transcript counts in one arm alone.
    """
    folder = job.transcript or job.out
    head = transcript.head(transcript.place(folder))
    recorded = f"no-{head.left_out}" if head.left_out else CONFIGURATIONS if head.configurations else EVERYTHING
    if recorded != name:
        raise UsageError(
            f"the calls in {folder} were recorded in the arm '{recorded}', and count there alone",
            hint=f"name the folder {recorded}, or record '{name}' anew",
        )
    account, history = accounting.account(folder), journal.read(job.out)
    ended = [end for end in history.replay() if isinstance(end, Finished) and end.trial.stage is Stage.MICRO]
    dtype = ended[0].trial.dtype if ended else ""
    of_model: list[float] = []
    of_shipped: list[float] = []
    for use in searches.templates(history, ended):
        costs = of_shipped if use.author in offline.AUTHORS else of_model
        costs += [use.best[dtype]] if dtype in use.best else []
    return AblatedRun(
        name=name,
        model=account.model,
        calls=len(account.calls),
        accepted=account.accepted,
        tokens=account.prompt_tokens + account.completion_tokens,
        cost=account.cost,
        trials=len(ended),
        best=min(of_model, default=None),
        shipped=min(of_shipped, default=None),
    )

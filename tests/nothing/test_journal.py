"""The journal on a real disk: what it keeps, what it refuses."""

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorop.errors import JobError, UsageError
from tensorop.model.kernel import Constraint, Kernel, KernelTemplate, KernelText, Variant
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Finished, Kind, Outcome, Samples, Score, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.store import journal as store
from tensorop.store import key
from tensorop.store.history import Started
from tensorop.store.journal import Journal, journal_path
from tensorop.store.key import trial_key
from tensorop.store.records import finished_of, finished_record

TEMPLATE = KernelTemplate("op", "d", "llm", "an idea", "x = {{ mr }};\n", {"a": "packed"}, ("fma",), {"mr": (1, 2)},
              (Constraint("mr < 3", "room"),))  # fmt: skip
FACTS = {"tool": "0.1.0", "operator": "op", "platform": "here", "settings": {"seed": 0}}


def trial(number, round_=0):
    return Trial(f"key{number}", round_, Stage.MICRO, Variant(Kernel(TEMPLATE, "f32", Point.of(mr=number, order="ab"))))


def end(number, cost=1.5):
    samples = Samples(
        "ns", 12.25, 12.0, 13.0, 7, {"instructions": 1e9 / 3}, {128: 12.0, 256: 12.5}, (12.25, 11.5), {"other": 13.5}
    )
    score = Score(cost, {"16x16x16": samples} if cost else {})
    outcome = Outcome(Kind.OK) if cost else Outcome(Kind.WRONG, "verify", "at [0, 1]", "got 1, want 2")
    return Finished(trial(number), outcome, score, {"build": 0.5, "measure": 0.25})


def test_what_is_written_is_read(tmp_path):
    with Journal.open(tmp_path, FACTS) as journal:
        journal.template(TEMPLATE)
        journal.template(TEMPLATE)
        journal.note("baseline", {"version": "1.2"})
        for number in (1, 2):
            assert journal.start(trial(number)) == 1
            journal.finish(end(number, None if number == 2 else 1.5))
        journal.start(trial(3))
    history = store.read(tmp_path)
    assert history.facts == FACTS
    assert history.templates == {TEMPLATE.digest: TEMPLATE}
    assert history.notes == [("baseline", {"version": "1.2"})]
    assert history.replay() == [end(1), end(2, None), Started(trial(3), 1)]
    lines = [json.loads(line) for line in journal_path(tmp_path).read_text().splitlines()]
    assert {line["schema"] for line in lines} == {5}
    assert [line["event"] for line in lines] == [
        "run", "template", "note", "started", "finished", "started", "finished", "started"]  # fmt: skip


@given(
    value=st.floats(min_value=0, exclude_min=True, allow_nan=False, allow_infinity=False),
    message=st.text(st.characters(codec="utf-8")),
    kind=st.sampled_from(Kind),
)
def test_ends_survive_json_to_the_bit(value, message, kind):
    one = Finished(trial(1), Outcome(kind, "build", message), Score(value, {"p": Samples("ns", value, value, value)}))
    record = json.loads(json.dumps(finished_record(one)))
    assert finished_of(record, trial(1)) == one


def test_long_logs_keep_their_tail(tmp_path):
    with Journal.open(tmp_path, FACTS) as journal:
        journal.start(trial(1))
        journal.finish(Finished(trial(1), Outcome(Kind.COMPILE, "build", "m", "x" * 9000 + "error"), Score(None)))
    (finished,) = store.read(tmp_path).replay()
    assert len(finished.outcome.log) == 4096
    assert finished.outcome.log.endswith("error")


def test_trials_that_begin_together_are_written_together(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(store, "_write", lambda descriptor, data: written.append(data))
    with Journal.open(tmp_path, FACTS) as journal:
        journal.template(TEMPLATE)
        assert journal.start_all([trial(1), trial(2)]) == [1, 1]
        assert journal.history.replay() == [Started(trial(1), 1), Started(trial(2), 1)]
    assert written[-1].count(b'"event":"started"') == 2


def test_a_round_ends_once(tmp_path):
    with Journal.open(tmp_path, FACTS) as journal:
        journal.start(trial(1))
        journal.finish(end(1))
        with pytest.raises(ValueError, match="has ended before"):
            journal.start(trial(1))
        with pytest.raises(ValueError, match="without having begun"):
            journal.finish(end(2))
        assert journal.start(trial(1, round_=1)) == 1


def test_attempts_are_counted_and_set_back(tmp_path):
    for attempt in (1, 2):
        with Journal.open(tmp_path, FACTS) as journal:
            assert journal.start(trial(1)) == attempt
    with Journal.open(tmp_path, FACTS) as journal:
        assert journal.start(trial(1)) == 3
        journal.abandon(trial(1), Outcome(Kind.LOST, "measure", "the board went away"))
        assert journal.history.replay() == [Started(trial(1), 2)]
        journal.start(trial(2))
        journal.abandon(trial(2), Outcome(Kind.LOST))
        assert journal.history.replay() == [Started(trial(1), 2)]


def test_time_adds_up_over_processes(tmp_path):
    group = (Stage.MICRO, "f32", 0)
    path = journal_path(tmp_path)
    with Journal.open(tmp_path, FACTS) as journal:
        journal.start(trial(1))
        journal.text(KernelText("variant", "its text", ""))  # between start and end: time of the trial
        journal.finish(end(1))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line, t in zip(lines, (5.0, 5.0, 7.0, 60.0, 100.0), strict=True):
        line["t"] = t
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Journal.open(tmp_path, FACTS) as journal:
        assert journal.history.seconds == pytest.approx(100.0, abs=5)
        assert journal.history.spent(group) == 95.0
        assert journal.history.sessions == 2


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_a_torn_last_line_is_put_aside(tmp_path, cut):
    path = journal_path(tmp_path)
    with Journal.open(tmp_path, FACTS) as journal:
        journal.start(trial(1))
        journal.finish(end(1))
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    torn = whole[:-cut].split(b"\n")[-1]
    with Journal.open(tmp_path, FACTS) as journal:
        assert "torn" in journal.remarks[0]
        assert journal.history.replay() == [Started(trial(1), 1)]
        assert journal.start(trial(1)) == 2
        journal.finish(end(1))
    assert (tmp_path / "work" / "torn").read_bytes() == torn + b"\n"
    assert store.read(tmp_path).replay() == [end(1)]


def test_a_block_of_zeros_at_the_end_is_torn_too(tmp_path):
    with Journal.open(tmp_path, FACTS) as journal:
        journal.start(trial(1))
    with journal_path(tmp_path).open("ab") as file:
        file.write(b"\0" * 100 + b"\n")
    with Journal.open(tmp_path, FACTS) as journal:
        assert journal.history.replay() == [Started(trial(1), 1)]


def test_a_torn_first_line_is_a_new_run(tmp_path):
    path = journal_path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"schema":5,"ev')
    with Journal.open(tmp_path, FACTS) as journal:
        assert journal.history.sessions == 1
    assert store.read(tmp_path).facts == FACTS


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("rubbish", "damaged in line 2: JSONDecodeError"),
        ('{"schema":5,"event":"paused","t":0}', "damaged in line 2: ValueError: unknown event 'paused'"),
        ('{"schema":5,"event":"finished","t":0,"key":"k","round":0}', "damaged in line 2: KeyError"),
        ('{"schema":5,"event":"run","t":0,"facts":{}}', "damaged in line 2: ValueError: the first line"),
        ("[]", "damaged in line 2: TypeError"),
        ('{"schema":2,"event":"run","t":0}', "has schema 2 in line 2; this version reads schema 5"),
    ],
)
def test_damage_is_refused_with_its_line(tmp_path, line, complaint):
    with Journal.open(tmp_path, FACTS) as journal:
        journal.start(trial(1))
    path = journal_path(tmp_path)
    first, *others = path.read_text().splitlines()
    path.write_text("\n".join([first, line, *others, ""]))
    before = path.read_bytes()
    with pytest.raises(JobError, match=complaint) as caught:
        Journal.open(tmp_path, FACTS)
    assert "--fresh" in str(caught.value)
    assert path.read_bytes() == before
    Journal.open(tmp_path, FACTS, fresh=True).close()
    assert store.read(tmp_path).replay() == []


def test_other_settings_are_named(tmp_path):
    Journal.open(tmp_path, FACTS).close()
    with pytest.raises(UsageError, match=r"tool was 0\.1\.0, is absent, platform was here, is there") as caught:
        Journal.open(tmp_path, {"platform": "there", "operator": "op", "settings": {"seed": 0}})
    assert "--fresh" in caught.value.hint
    assert "--out" in caught.value.hint
    Journal.open(tmp_path, FACTS).close()  # the refused run left no lock behind


HOLD = """
import sys, time
from pathlib import Path
from tensorop.store.journal import Journal
journal = Journal.open(Path(sys.argv[1]), {})
print("held", flush=True)
time.sleep(60)
"""


def test_two_runs_on_one_folder(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout.readline() == "held\n"
            for _ in range(2):
                with pytest.raises(JobError, match=rf"another run uses {tmp_path} \(process {other.pid} on ") as caught:
                    Journal.open(tmp_path, {})
            assert "--out" in caught.value.hint
        finally:
            other.kill()
    Journal.open(tmp_path, {}).close()  # the kernel let go of a dead process's lock


def test_a_full_disk(tmp_path):
    """/dev/full is the kernel's own full disk."""
    with Journal.open(tmp_path, FACTS) as journal:
        full = os.open("/dev/full", os.O_WRONLY)
        journal._descriptor, disk = full, journal._descriptor
        with pytest.raises(JobError, match=r"the disk is full: .*journal\.jsonl cannot grow") as caught:
            journal.start_all([trial(1), trial(3)])
        assert "run the same command again" in caught.value.hint
        journal._descriptor = disk
        os.close(full)
        with pytest.raises(JobError, match="could not be written earlier"):
            journal.start(trial(2))
    assert store.read(tmp_path).replay() == []


def test_a_line_half_written_is_cut_back(tmp_path):
    """A file-size limit lets part of a line through, as a disk does when it runs full."""
    code = """
import resource, signal, sys
from pathlib import Path
from tensorop.errors import JobError
from tensorop.store.journal import Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Journal.open(Path(sys.argv[1]), {}) as journal:
    size = journal.path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, size + 20))
    try:
        journal.note("long", "x" * 100)
    except JobError as error:
        print(error.message, journal.path.stat().st_size == size)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert "the disk is full" in done.stdout
    assert os.strerror(errno.EFBIG) in done.stdout
    assert done.stdout.endswith("True\n")
    assert store.read(tmp_path).notes == []


@pytest.mark.parametrize("out", ["file/below", "/proc/no/such"])
def test_a_folder_that_cannot_be_written(tmp_path, out):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write to") as caught:
        Journal.open(tmp_path / out, FACTS)
    assert "--out" in caught.value.hint


def test_no_run_to_read(tmp_path):
    with pytest.raises(UsageError, match="contains no run"):
        store.read(tmp_path)


def test_keys_change_with_everything_a_result_depends_on(monkeypatch):
    run = StageRun("f32", Stage.MICRO, (Problem.of("op", "f32", {"m": 16}),), Seed(0, 0))
    base = {
        "variant": Variant(Kernel(TEMPLATE, "f32", Point.of(mr=1))), "run": run,
        "platform": "p", "vlens": (128,), "compiler": ("cc 1", "-O3")}  # fmt: skip
    runs = [
        replace(run, stage=Stage.FINALISTS),
        replace(run, problems=(Problem.of("op", "f32", {"m": 16}, {"beta": 0}),)),
    ]
    other = {"platform": "q", "vlens": (256,), "compiler": ("cc 1", "-O2")}
    kernel = base["variant"].kernel
    kernels = [
        replace(kernel, template=replace(TEMPLATE, text="y")), replace(kernel, dtype="f64"),
        replace(kernel, template=replace(TEMPLATE, author="offline")),  # whose C is compiled with other flags
        replace(kernel, configuration=Point.of(mr=2)), kernel.at(128)]  # fmt: skip
    variants = [Variant(kernel, Point.of(mc=2)), *map(Variant, kernels)]
    keys = {trial_key(**base)} | {trial_key(**{**base, name: value}) for name, value in other.items()}
    keys |= {trial_key(**{**base, "variant": variant}) for variant in variants}
    keys |= {trial_key(**{**base, "run": other_run}) for other_run in runs}
    assert len(keys) == 1 + len(other) + len(variants) + len(runs)
    assert trial_key(**base) == trial_key(**base)
    monkeypatch.setattr(key, "__version__", "0.0")
    assert trial_key(**base) not in keys

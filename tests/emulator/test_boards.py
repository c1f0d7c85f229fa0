"""A board over ssh: a real sshd on this machine, whose programs run under QEMU."""

import dataclasses
import threading
import time

import pytest

from tensorop import errors
from tensorop.errors import BoardError
from tensorop.measure import boards, clock
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.model.trial import Kind
from tensorop.runners import session
from tensorop.runners.protocol import Check
from tensorop.runners.ssh import Ssh
from tensorop.specs import platforms
from tests.support import board as boards_here
from tests.support import kernels

K1 = platforms.load("spacemit-k1")


@pytest.fixture
def board(tmp_path):
    with boards_here.board(tmp_path / "board") as running:
        yield running


@pytest.fixture
def runner(board):
    return Ssh("127.0.0.1", board.options)


def test_the_declared_core_is_met(board, runner):
    platform, met, core = boards.meet(K1, runner)
    assert platform.vlens == (256,)
    assert (met.processor, core.label, core.caches["l2"]["shared_by"]) == (0, "Spacemit(R) X60", 4)


@pytest.mark.extended
def test_a_platform_for_many_lengths_takes_the_boards_own(board, runner):
    board.is_a(vlen=512)
    platform, _, _ = boards.meet(platforms.load("rvv"), runner)
    assert platform.vlens == platform.verify_vlens == (512,)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({"vlen": 128}, "VLEN 128, not 256"),
        ({"machine": "aarch64"}, "it is aarch64, not riscv64"),
        ({"cpuinfo": boards_here.CPUINFO.replace("_zba", "")}, "lacks zba"),
        ({"cpuinfo": boards_here.CPUINFO.replace("x60", "x100")}, "none of its cores matches"),
    ],
)
def test_another_core_is_refused(board, runner, claim, said):
    board.is_a(**claim)
    with pytest.raises(BoardError, match=said):
        boards.meet(K1, runner)


def test_a_core_of_a_platform_that_counts_on_no_length_must_have_its_own(board, runner):
    with pytest.raises(BoardError, match="VLEN 256, not 128"):
        boards.meet(dataclasses.replace(K1, vlens=(128,), verify_vlens=(128, 256), fixed_vlen=None), runner)


@pytest.mark.extended
def test_it_measures_on_the_processor_that_is_the_core(board, runner):
    other = boards_here.CPUINFO.replace("x60", "x100").replace("X60", "X100").replace("0x710", "0x5b7")
    board.is_a(cpuinfo=boards_here.CPUINFO + "\n" + other.replace("processor\t: 0", "processor\t: 1"))
    _, met, _ = boards.meet(K1, runner)
    assert met.processor == 0


def test_calls_and_times(board, runner, tmp_path):
    program = kernels.program(kernels.AXPY, tmp_path, arch="riscv64")
    call = kernels.axpy_call(100)
    (reply,) = session.run(runner, program, [Check(call)])
    assert reply.outcome.ok
    pace = clock.Pace(rounds=3, warm_ns=1000, min_ns=1000)
    (timed,) = clock.measure(runner, MeasureRequest(program, [call], purpose=Purpose.CHOICE), pace)
    assert timed.samples.value > 0


def test_a_crash_is_the_kernels(board, runner, tmp_path):
    program = kernels.program("*(volatile int *)8 = 1;(void)c;", tmp_path, arch="riscv64")
    (reply,) = session.run(runner, program, [Check(kernels.axpy_call())])
    assert reply.outcome.kind is Kind.CRASH


@pytest.mark.extended
def test_a_slow_board_has_its_time(board, runner, tmp_path):
    program = kernels.program(SLOW.replace("300000000", "2000000000"), tmp_path, arch="riscv64")
    call = Check(kernels.axpy_call())
    assert session.run(runner, program, [call], timeout_s=0.6)[0].outcome.kind is Kind.TIMEOUT
    patient = dataclasses.replace(runner, patience=100.0)
    assert session.run(patient, program, [call], timeout_s=0.6)[0].outcome.ok


def test_nothing_runs_on_after_a_deadline(board, runner, tmp_path):
    program = kernels.program("(void)c;for (volatile int i = 0;;) i++;", tmp_path, arch="riscv64")
    (reply,) = session.run(runner, program, [Check(kernels.axpy_call())], timeout_s=1.0)
    assert reply.outcome.kind is Kind.TIMEOUT
    deadline = time.monotonic() + 10
    while (left := boards_here.programs(board)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left


def _lose(board, runner, program, again_s):
    """Takes the board away in the middle of a call and, where so said, brings it back."""

    def power() -> None:
        while not boards_here.programs(board):
            time.sleep(0.05)
        time.sleep(0.3)
        board.stop()
        if again_s is not None:
            time.sleep(again_s)
            board.start()

    gone = threading.Thread(target=power)
    gone.start()
    try:
        return session.run(runner, program, [Check(kernels.axpy_call(seed=i)) for i in range(2)], timeout_s=60)
    finally:
        gone.join()


SLOW = "if (c->buffer[0]) for (volatile int64_t i = 0; i < 300000000; i++);" + kernels.AXPY


def test_a_board_that_comes_back_is_asked_again(board, runner, tmp_path):
    program = kernels.program(SLOW, tmp_path, arch="riscv64")
    runner.place(program)
    replies = _lose(board, runner, program, 0.5)
    assert [reply.outcome.kind for reply in replies] == [Kind.OK, Kind.OK]


def test_a_board_that_stays_away_is_an_error_and_no_kernels_fault(board, runner, tmp_path, monkeypatch):
    monkeypatch.setattr("tensorop.runners.ssh._BACK_S", 0.5)
    program = kernels.program(SLOW, tmp_path, arch="riscv64")
    runner.place(program)
    with pytest.raises(BoardError, match=r"connection to 127\.0\.0\.1 was lost"):
        _lose(board, runner, program, None)


def test_a_full_disk_is_said_and_leaves_nothing(board, runner, tmp_path):
    (board.root / "full").touch()
    with pytest.raises(BoardError, match="No space left on device") as caught:
        runner.place(kernels.program(kernels.AXPY, tmp_path, arch="riscv64"))
    assert "free disk space" in caught.value.hint
    assert not list((board.root / "home").rglob("candidate*"))


def test_a_key_it_does_not_take(board, runner):
    (board.root / "authorized").write_text("")
    with pytest.raises(BoardError, match="Permission denied") as caught:
        boards.meet(K1, runner)
    assert "ssh-copy-id" in caught.value.hint


def test_nobody_there(board, runner):
    board.stop()
    with pytest.raises(BoardError, match="refused"):
        boards.meet(K1, runner)


@pytest.mark.extended
def test_patience_grows_with_slowness(board, runner):
    _, _, core = boards.meet(K1, runner)
    assert boards.patience(dataclasses.replace(core, clock_mhz=500.0)) == pytest.approx(4)
    assert boards.patience(dataclasses.replace(core, clock_mhz=2500.0, link=1e6)) == pytest.approx(10)
    assert issubclass(BoardError, errors.JobError)

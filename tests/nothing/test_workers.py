"""Trials on the workers of a real Dask scheduler: whatever comes and goes, the search is the one without them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import distributed
import psutil
import pytest
from distributed import KilledWorker, Security

from tensorop import pipeline
from tensorop.cluster import crew as workers
from tensorop.cluster.worker import fingerprint as papers_of
from tensorop.errors import JobError, MissingTool, Stopped, UsageError
from tensorop.events import Done, Note, Trying
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.search_events import TrialEnded
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Kind, Limit, Outcome, Stage, Trial, TrialResult
from tensorop.model.verdict import Seed
from tensorop.process import children, scratch
from tensorop.process.stopping import StopRequest
from tests.support.commands import ROOT, environment, events

# Pretends, and while there is a file `hold` stays in the middle of its trial; who is there is told by files.
HELD = """
import os, time
from dataclasses import dataclass
from pathlib import Path
from tensorop.backends import null

@dataclass(frozen=True)
class Backend(null.Backend):
    name = "null"

    def simulate(self, point, problem, work=1.0):
        folder = Path(__file__).parent
        if (folder / "hold").exists():
            (folder / f"held-{os.getpid()}-{time.monotonic_ns()}").touch()
        while (folder / "hold").exists():
            time.sleep(0.01)
        return super().simulate(point, problem, work * float(os.environ.get("COSTS", "1")))
"""


def started(*words: str, **more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
    return subprocess.Popen(
        command, env=environment(more), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


class Cluster:
    """A scheduler at a port, and workers of one thread, each in a process that nobody starts again."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def scheduler(self) -> subprocess.Popen[bytes]:
        words = ("scheduler", "--host", "127.0.0.1", "--port", str(self.port))
        return self._keep(started(*words))

    def worker(self, **more: str) -> subprocess.Popen[bytes]:
        return self._keep(started("worker", self.address, "--nthreads", "1", "--no-nanny", **more))

    def _keep(self, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with contextlib.closing(Cluster()) as found:
        yield found


def job(folder: Path, **more: Any) -> Job:
    shapes = ((64, 64, 64),)
    return Job("gemm", "generic", ("f32",), shapes, trials=14, budget_s=None, batch=2, seed=3, out=folder, **more)


def path_of(folder: Path) -> list[Any]:
    """What was tried in which order, and what came of it."""
    return [(r["key"], r["outcome"]["kind"], r["score"]) for r in events(folder, "finished")]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    folder = tmp_path_factory.mktemp("plain")
    assert isinstance(list(pipeline.run(job(folder, runner="null")))[-1], Done)
    assert len(path_of(folder)) == 14
    return path_of(folder)


def in_the_middle(plugin: Path, then: Callable[[set[int]], None]) -> threading.Thread:
    """The next trials are held; `then` is told the processes that are in the middle of one, and they go on after it."""
    before = set(plugin.glob("held-*"))  # first: a trial may be held at once
    (plugin / "hold").touch()

    def run() -> None:
        while not (held := set(plugin.glob("held-*")) - before):
            time.sleep(0.01)
        then({int(file.name.split("-")[1]) for file in held})
        (plugin / "hold").unlink()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.extended
def test_a_worker_killed_a_scheduler_that_comes_back_and_one_that_does_not(
    tmp_path: Path, cluster: Cluster, plain: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = tmp_path / "plugins" / "backends"
    plugin.mkdir(parents=True)
    (plugin / "null.py").write_text(HELD)
    scheduler = cluster.scheduler()
    there = [cluster.worker(), cluster.worker(), cluster.worker(COSTS="1.0000001")]
    monkeypatch.setattr(workers, "ANSWER_S", 60.0)
    wish = job(tmp_path / "out", runner="null", plugins=(tmp_path / "plugins",), workers=cluster.address)
    threads: list[threading.Thread] = []

    def worker_dies(held: set[int]) -> None:
        os.kill(min(held), signal.SIGKILL)

    def scheduler_dies(held: set[int]) -> None:
        scheduler.kill()
        scheduler.wait()

    def scheduler_bounces(held: set[int]) -> None:
        nonlocal scheduler
        scheduler_dies(held)
        scheduler = cluster.scheduler()
        cluster.worker()

    acts = {3: worker_dies, 7: scheduler_bounces, 11: scheduler_dies}
    said: list[str] = []
    ended: list[TrialEnded] = []

    def follow() -> None:
        for event in pipeline.run(wish):
            if isinstance(event, Note):
                said.append(event.text)
            if isinstance(event, Trying) and isinstance(event.event, TrialEnded):
                ended.append(event.event)
                if (act := acts.get(len(ended))) is not None:
                    threads.append(in_the_middle(plugin, act))
                if act is scheduler_dies:
                    monkeypatch.setattr(workers, "PATIENCE_S", 0.0)
                    monkeypatch.setattr(workers, "ANSWER_S", 0.5)

    with pytest.raises(JobError, match="no Dask scheduler answers") as lost:
        follow()
    for thread in threads:
        thread.join()
    assert "run the same command again to resume" in (lost.value.hint or "")
    assert [process.poll() for process in there].count(-signal.SIGKILL) == 1
    assert any("is rejected: a fixed kernel costs" in text for text in said)
    assert path_of(tmp_path / "out") == plain[: len(ended)]
    list(pipeline.run(job(tmp_path / "out", runner="null", plugins=(tmp_path / "plugins",))))
    assert path_of(tmp_path / "out") == plain


@pytest.mark.parametrize(
    ("wish", "runner", "said"),
    [
        ("0", "null", "--workers 0: expected 1 to 256 processes"),
        ("257", "null", "expected 1 to 256 processes"),
        ("-1", "null", "expected a number of processes, or the address of a Dask scheduler"),
        ("board", "null", "expected a number of processes, or the address of a Dask scheduler"),
        ("tcp://board", "null", "expected a number of processes, or the address of a Dask scheduler"),
        ("2", "native", "--workers does not work with platform 'generic': its kernels are timed on one machine"),
    ],
)
def test_a_wish_that_cannot_be(tmp_path: Path, wish: str, runner: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        list(pipeline.run(job(tmp_path / "out", runner=runner, workers=wish)))
    assert not (tmp_path / "out").exists()


@contextlib.contextmanager
def serving(serve: Callable[[socket.socket], object]) -> Iterator[str]:
    """The address of a server, as a scheduler's; `serve` has each connection on a thread of its own."""
    kept = []

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                kept.append(server.accept()[0])
                threading.Thread(target=quietly, args=(kept[-1],), daemon=True).start()

    def quietly(way: socket.socket) -> None:
        with contextlib.suppress(OSError):
            serve(way)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    for way in kept:
        way.close()


def nothing(way: socket.socket) -> None:
    """Says nothing, for ever."""


def http(way: socket.socket) -> None:
    """Waits for the end of a request."""
    with way.makefile("rb") as words:
        while words.readline().strip():
            pass
    way.sendall(b"HTTP/1.0 404 Not Found\r\n\r\n")


def ssh(way: socket.socket) -> None:
    way.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")


def half_a_greeting(way: socket.socket) -> None:
    way.sendall((1).to_bytes(8, "little") + (1 << 20).to_bytes(8, "little"))


def drops(way: socket.socket) -> None:
    way.shutdown(socket.SHUT_RDWR)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("serve", "said"),
    [
        (nothing, "accepts the connection but does not answer"),
        (http, "an HTTP server answers; a scheduler listens on port 8786 by default, and 8787 is its web page"),
        (ssh, "another program answers there: b'SSH-2.0-OpenSSH_9.2"),
        (half_a_greeting, "another program answers there"),
        (drops, "accepts the connection but does not answer"),
    ],
)
def test_who_answers_is_no_scheduler(
    tmp_path: Path, serve: Callable[[socket.socket], object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "ANSWER_S", 0.5)
    monkeypatch.setattr(workers, "PROBE_S", 0.5)
    with serving(serve) as address, pytest.raises(JobError, match=f"no Dask scheduler answers: .*{said}"):
        list(pipeline.run(job(tmp_path / "out", runner="null", workers=address)))
    assert not (tmp_path / "out").exists()


def test_a_host_that_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"no Dask scheduler answers: .*(not known|resolution)"):
        list(pipeline.run(job(tmp_path / "out", runner="null", workers="tcp://no.such.host.invalid:8786")))


def test_a_scheduler_with_tls_and_one_without(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Security.temporary()
    (tmp_path / "all.pem").write_text(f"{files.tls_scheduler_key}{files.tls_scheduler_cert}{files.tls_ca_file}")
    one = str(tmp_path / "all.pem")
    secret = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secret.load_cert_chain(one)
    monkeypatch.setattr(workers, "ANSWER_S", 5.0)

    def said(address: str) -> str:
        with pytest.raises(JobError) as refused:
            list(pipeline.run(job(tmp_path / "out", runner="null", workers=address)))
        return refused.value.message.partition("answers: ")[2]

    cluster.scheduler()
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", cluster.port)).close()
            break
        time.sleep(0.05)
    by_tls = cluster.address.replace("tcp", "tls")
    with serving(lambda way: secret.wrap_socket(way, server_side=True).recv(1)) as address:
        assert said(address) == "the program there uses TLS, so the address must begin with tls://"
        keys = dict.fromkeys(("ca-file", "client.cert", "client.key"), one)
        with dask.config.set({f"distributed.comm.tls.{key}": value for key, value in keys.items()}):
            assert said(by_tls) == "it does not use TLS, so its address must begin with tcp://"
        assert "TLS expects a `ssl_context`" in said(address.replace("tcp", "tls"))


@pytest.mark.parametrize("before", [False, True])
def test_ctrl_c_while_a_scheduler_is_looked_for(tmp_path: Path, before: bool) -> None:
    """Where an earlier run has found something, that is packaged."""
    out, stop = tmp_path / "out", StopRequest()
    if before:
        list(pipeline.run(job(out, runner="null")))
    told: list[str] = []

    def press(way: socket.socket) -> None:
        told.append(stop.ask())

    with serving(press) as address:
        run = pipeline.run(job(out, runner="null", workers=address), stop)
        if before:
            done = list(run)[-1]
            assert isinstance(done, Done)
            assert done.early
        else:
            with pytest.raises(Stopped):
                list(run)
    assert told[0] == "stopping: no further search; kernels that passed in earlier runs are packaged"


@pytest.mark.extended
def test_a_worker_that_hangs_and_a_scheduler_that_does(
    tmp_path: Path,
    cluster: Cluster,
    plain: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    plugin = tmp_path / "plugins" / "backends"
    plugin.mkdir(parents=True)
    (plugin / "null.py").write_text(HELD)
    scheduler = cluster.scheduler()
    cluster.worker()
    cluster.worker()
    monkeypatch.setattr(workers, "ANSWER_S", 60.0)
    wish = job(tmp_path / "out", runner="null", plugins=(tmp_path / "plugins",), workers=cluster.address)
    ended = 0
    threads = []

    def worker_hangs(held: set[int]) -> None:
        os.kill(min(held), signal.SIGSTOP)

    def follow() -> None:
        nonlocal ended
        for event in pipeline.run(wish):
            if isinstance(event, Trying) and isinstance(event.event, TrialEnded):
                ended += 1
                if ended == 2:
                    monkeypatch.setattr(workers, "OVERDUE_S", -15.0)  # a trial has 10 s
                    threads.append(in_the_middle(plugin, worker_hangs))
                if ended == 8:
                    monkeypatch.setattr(workers, "PATIENCE_S", 0.0)
                    monkeypatch.setattr(workers, "ANSWER_S", 0.5)
                    monkeypatch.setattr(workers, "PROBE_S", 0.5)
                    scheduler.send_signal(signal.SIGSTOP)

    with pytest.raises(JobError, match=r"no Dask scheduler answers: .*does not answer"):
        follow()
    for thread in threads:
        thread.join()
    assert ended >= 8
    assert "gets no more trials: it ended no trial within" in caplog.text
    assert path_of(tmp_path / "out") == plain[:ended]


def listening(pids: set[int]) -> set[tuple[str, int]]:
    """The addresses on which these processes listen."""
    return {one.laddr[:2] for one in psutil.net_connections("inet") if one.status == "LISTEN" and one.pid in pids}


def said_to_http(addresses: set[tuple[str, int]]) -> dict[tuple[str, int], bytes]:
    """What each address answers to a request for one of Dask's pages."""
    said: dict[tuple[str, int], bytes] = {}
    for address in addresses:
        for page in ("health", "info/main/workers.html", "metrics", "json/counts.json", "proxy/1/h/"):
            said.setdefault(address, b"")
            with socket.create_connection(address, 5.0) as way, contextlib.suppress(OSError):
                way.settimeout(5.0)
                way.sendall(f"GET /{page} HTTP/1.0\r\n\r\n".encode())
                said[address] += way.recv(64)
    return said


def test_processes_that_are_started_here_have_no_pages_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    here = psutil.Process()
    before = listening({here.pid})  # the HTTP server of another test may live in this process
    with workers._started(job(tmp_path / "out", workers="1"), 1) as connect:
        with connect() as client:
            client.wait_for_workers(1, 60)
            pids = {here.pid, *(child.pid for child in here.children(recursive=True))}
            said = said_to_http(listening(pids) - before)
        assert len(said) >= 2  # of the scheduler and the worker, which speak TLS
        assert not any(b"HTTP/" in answer for answer in said.values()), said
    scratch.clear()
    assert list(tmp_path.iterdir()) == []


def test_the_documented_commands_take_tls_alone_serve_no_http_and_leave_nothing(
    tmp_path: Path, cluster: Cluster
) -> None:
    lines = (ROOT / "docs" / "how-to" / "distribute-trials.md").read_text().splitlines()
    out = subprocess.DEVNULL
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    for folder in (here, temporary):
        folder.mkdir()
    subprocess.run(next(line for line in lines if "openssl req" in line).split(), cwd=here, check=True, stderr=out)
    begin = lines.index("```yaml") + 1
    (here / "tensorop.yaml").write_text("\n".join(lines[begin : lines.index("```", begin)]))
    more = environment({"DASK_CONFIG": str(here), "TMPDIR": str(temporary)})
    processes = []
    for name in ("scheduler", "worker"):
        line = next(line for line in lines if f"dask {name}" in line).partition("#")[0]
        argv = [sys.executable, "-m", *line.replace("HOST", "127.0.0.1").replace("8786", str(cluster.port)).split()]
        process = subprocess.Popen(argv, env=more, cwd=here, stdout=out, stderr=out, start_new_session=True)
        processes.append(cluster._keep(process))
    keys = {"ca-file": "cert.pem", "client.cert": "cert.pem", "client.key": "key.pem"}
    with (
        dask.config.set({f"distributed.comm.tls.{key}": str(here / value) for key, value in keys.items()}),
        distributed.Client(f"tls://127.0.0.1:{cluster.port}", timeout=60) as client,
    ):
        client.wait_for_workers(1, 60)
        restarted = psutil.Process(processes[1].pid).children(recursive=True)
        said = said_to_http(listening({one.pid for one in (*processes, *restarted)}))
    with pytest.raises(ConnectionError, match="uses TLS"):
        workers._meet(cluster.address)
    assert len(said) >= 3  # of the scheduler, the worker and what starts it again
    assert not any(b"HTTP/" in answer for answer in said.values()), said
    for process in reversed(processes):
        process.terminate()
        process.wait(60)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(("by", "said"), [("tcp", "Connection refused"), ("tls", "Connection refused")])
def test_nobody_answers(tmp_path: Path, cluster: Cluster, by: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "ANSWER_S", 0.1)
    address = cluster.address.replace("tcp", by)
    with pytest.raises(JobError, match=f"--workers {address}: no Dask scheduler answers: {said}") as refused:
        list(pipeline.run(job(tmp_path / "out", runner="null", workers=address)))
    assert "docs/how-to/distribute-trials.md shows how" in (refused.value.hint or "")
    assert not (tmp_path / "out" / "share").exists()


def test_without_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingTool) as refused:
        list(pipeline.run(job(tmp_path / "out", runner="null", workers="2")))
    assert refused.value.hint == "pip install distributed cryptography"


NEVER = object()


class Answer:
    """A future that is done, but for NEVER."""

    def __init__(self, value: object) -> None:
        self.value = value

    def done(self) -> bool:
        return self.value is not NEVER

    def result(self, timeout: float = 0.0) -> object:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


class Client:
    """A scheduler whose workers show these papers; every trial comes to `outcome`."""

    def __init__(self, papers: dict[str, object], outcome: object = None) -> None:
        self.papers, self.outcome = papers, outcome
        self.sent: list[set[str]] = []
        self.leave: tuple[str, ...] = ()

    def nthreads(self) -> dict[str, int]:
        for address in self.leave:
            self.papers.pop(address)
        self.leave = ()
        return dict.fromkeys(self.papers, 3)

    def submit(self, call: Callable[..., object], *given: object, workers: list[str], **how: bool) -> Answer:
        assert how == {"allow_other_workers": False, "pure": False}
        if call is papers_of:
            return Answer(self.papers[workers[0]])
        self.sent.append(set(workers))
        return Answer([self.outcome] if isinstance(self.outcome, TrialResult) else self.outcome)


def crew(client: Client, **more: Any) -> tuple[workers.Workers, list[str]]:
    wish = replace(job(Path("out"), runner="null", workers="tcp://there:1"), **more)
    found = workers.Workers(wish, lambda: client)
    return found, list(found.admit(StopRequest()))


def trial(author: str) -> Trial:
    return Trial("key", 0, Stage.MICRO, Variant(Kernel(KernelTemplate("gemm", "t", author, "", ""), "f32")))


OURS = papers_of(job(Path("out"), runner="null"))
LOOSE = replace(OURS, lacks=("its kernel filters no system calls",))
LIMIT = Limit(1.0, "a test")
RUN = StageRun("f32", Stage.MICRO, (), Seed(0, 0))
PASSED = TrialResult(Outcome(Kind.OK))


def test_who_is_admitted() -> None:
    older = replace(OURS, versions={**OURS.versions, "tensorop": "0.0.1 (abc)"})
    client = Client({"a": OURS, "b": older, "c": ModuleNotFoundError("No module named 'tensorop'"), "d": OURS}, PASSED)
    found, said = crew(client, batch=None)
    assert list(found(RUN, [trial("offline")], LIMIT)) == [PASSED]
    assert client.sent == [{"a", "d"}]
    assert found.batch == 6
    assert said == [
        f"worker b is rejected: its tensorop is 0.0.1 (abc), here it is {OURS.versions['tensorop']}",
        "worker c is rejected: it cannot describe itself: ModuleNotFoundError: No module named 'tensorop'",
        "workers accepted: 2; candidates per round (--batch): 6",
    ]


@pytest.mark.parametrize(
    ("author", "unsafe", "to"),
    [("offline", False, {"a", "b"}), ("plug-in", False, {"a", "b"}), ("llm", False, {"a"}), ("llm", True, {"a", "b"})],
)
def test_a_strangers_kernels_go_where_the_jail_holds(author: str, unsafe: bool, to: set[str]) -> None:
    client = Client({"a": OURS, "b": LOOSE}, PASSED)
    found, _ = crew(client, unsafe=unsafe)
    assert list(found(RUN, [trial(author)], LIMIT)) == [PASSED]
    assert client.sent == [to]


def test_where_nobody_is_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JobError, match=r"no worker is usable: a: a fixed kernel costs \(1.0,\) there, .* here"):
        crew(Client({"a": replace(OURS, costs=(1.0,))}))
    with pytest.raises(JobError, match="no worker is usable for a model's kernels: a: its kernel filters no"):
        crew(Client({"a": LOOSE}), author="llm")
    monkeypatch.setattr(workers, "PATIENCE_S", -1.0)
    with pytest.raises(JobError, match="no worker is usable: none connected within"):
        crew(Client({}))


def test_a_worker_that_never_shows_its_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LOOK_S", 0.01)
    monkeypatch.setattr(workers, "PATIENCE_S", 0.1)
    _, said = crew(Client({"a": OURS, "b": NEVER}))
    assert said[0] == "worker b has not described itself within 0.1 s; the search starts without it"
    monkeypatch.setattr(workers, "PAPERS_S", 0.1)
    with pytest.raises(JobError, match=r"no worker is usable: b: it has not described itself within 0\.1 s"):
        crew(Client({"b": NEVER}))


def test_once_nobody_is_left_a_trial_goes_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client({"a": OURS, "b": replace(OURS, costs=(1.0,))}, PASSED)
    found, _ = crew(client)
    client.leave = ("a",)
    monkeypatch.setattr(workers, "LOOK_S", 0.01)
    monkeypatch.setattr(workers, "PATIENCE_S", 0.1)
    with pytest.raises(JobError, match="no worker is usable: b: a fixed kernel costs"):
        list(found(RUN, [trial("offline")], LIMIT))
    assert client.sent == []


def test_a_trial_that_every_worker_dies_of_is_skipped() -> None:
    died = KilledWorker("trial-1", None, 3)
    found, _ = crew(Client({"a": OURS}, died))
    (measured,) = found(RUN, [trial("offline")], LIMIT)
    assert measured.outcome.kind is Kind.CRASH
    assert measured.outcome.message == "4 workers ended during this trial; it is skipped"


def test_what_ends_a_trial_ends_the_job() -> None:
    found, _ = crew(Client({"a": OURS}, JobError("the worker a: its disk is full")))
    with pytest.raises(JobError, match="its disk is full"):
        list(found(RUN, [trial("offline")], LIMIT))


def test_whoever_waits_for_a_worker_is_cut_short() -> None:
    found, _ = crew(Client({"a": OURS}, TimeoutError()))
    children.end()
    try:
        with pytest.raises(children.Cancelled):
            list(found(RUN, [trial("offline")], LIMIT))
    finally:
        children.allow()


def test_shipped_micro_kernels_are_sent_in_parts_that_share_a_program() -> None:
    def several(author: str, count: int) -> list[Trial]:
        kernel = Kernel(KernelTemplate("gemm", "d", author, "", "d"), "f32")
        return [Trial(f"{author}{number}", 0, Stage.MICRO, Variant(kernel)) for number in range(count)]

    run = StageRun("f32", Stage.MICRO, (), Seed(0, 0))
    trials = [*several("offline", 9), *several("model-x", 2), *several("offline", 1)]
    parts = workers._units(run, trials, 4)
    assert [trial for part, _ in parts for trial in part] == trials
    assert [(len(part), untrusted) for part, untrusted in parts] == [
        (3, False), (3, False), (3, False), (1, True), (1, True), (1, False),
    ]  # fmt: skip
    assert all(len(part) == 1 for part, _ in workers._units(run, trials, 0))
    assert all(len(part) == 1 for part, _ in workers._units(replace(run, stage=Stage.BLOCKING), trials, 4))

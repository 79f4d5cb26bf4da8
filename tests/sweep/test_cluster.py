"""The same sweep on a real Dask cluster: a scheduler and two workers of this machine, started from the command line."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from distributed import Client

from airloom.cli import call
from airloom.errors import RunError
from airloom.scenario import Scenario
from tests.sweep.test_killed import parts
from tests.sweep.test_sweep import octets

LOSS = "links.wire.loss"


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Address and scheduler file of a scheduler with two workers of one thread each."""
    folder = tmp_path_factory.mktemp("cluster")
    port = free_port()
    scheduler_file = folder / "scheduler.json"
    here = ["--host", "127.0.0.1", "--no-dashboard"]
    log = (folder / "log").open("wb")
    scheduler = [*["-m", "distributed.cli.dask_scheduler", "--port"], str(port), *here]
    worker = [*["-m", "distributed.cli.dask_worker", "--nthreads", "1", "--nworkers", "1"], *here]
    worker += ["--local-directory", str(folder)]
    words = [
        [*scheduler, "--scheduler-file", str(scheduler_file)],
        *[[*worker, f"tcp://127.0.0.1:{port}"] for _ in range(2)],
    ]
    processes = [subprocess.Popen([sys.executable, *w], stdout=log, stderr=log, cwd=folder) for w in words]
    try:
        yield f"dask://127.0.0.1:{port}", scheduler_file
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(120)
        log.close()


def wait_for_workers(address: str, count: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            with Client(address.replace("dask", "tcp"), timeout=60) as client:  # type: ignore[no-untyped-call]
                client.wait_for_workers(count, timeout=100)
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the cluster did not come up")


def test_a_cluster_makes_the_same_octets_by_address_and_by_file(
    cluster: tuple[str, Path], fetch: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    address, scheduler_file = cluster
    wait_for_workers(address, 2)
    sweep = fetch.sweep({LOSS: [0, 0.05, 0.1]}, seeds="1..60")
    expected = octets(sweep.run(out="here").folder)
    done = sweep.run(on=address, out="there")
    assert octets(done.folder) == expected
    session = json.loads((done.folder / "sessions.json").read_text())[-1]
    assert session["workers"] == 2
    assert session["on"] == address

    Path("fetch.toml").write_bytes(fetch.text)
    words = ["sweep", "fetch.toml", "--vary", f"{LOSS}=0,0.05,0.1", "--seeds", "1..60", "--out", "by-file"]
    assert call([*words, "--on", f"scheduler-file:{scheduler_file}"]) == 0
    assert f"on scheduler-file:{scheduler_file}" in capsys.readouterr().err
    assert octets(Path("by-file")) == expected


def test_a_worker_killed_in_the_middle_loses_nothing_and_changes_no_octet(
    cluster: tuple[str, Path], fetch: Scenario
) -> None:
    address = cluster[0]
    wait_for_workers(address, 2)
    # Long enough to meet a worker at work.
    sweep = fetch.with_keys({"hosts.mobile.app.http-client.pages": "[['/500kB']]"}).sweep(
        {LOSS: [0, 0.02, 0.05, 0.1]}, seeds="1..700"
    )
    expected = octets(sweep.run(out="here").folder)
    # What is killed is one of three: the fixture's two stay for the other tests.
    with another_worker(address) as extra, ThreadPoolExecutor(1) as aside, watcher(address) as client:
        wait_for_workers(address, 3)
        killed = aside.submit(kill_at_work, client, extra.pid, where_is(client, extra.pid), Path("there"))
        done = sweep.run(on=address, out="there")
        killed.result()
        assert extra.wait(60) == -signal.SIGKILL
    assert octets(done.folder) == expected


@contextmanager
def another_worker(address: str) -> Iterator[subprocess.Popen[bytes]]:
    words = ["-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--name", "extra"]
    words += ["--host", "127.0.0.1", "--no-dashboard", address.replace("dask", "tcp")]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, *words], stdout=quiet, stderr=quiet)
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


def watcher(address: str) -> Client:
    return Client(address.replace("dask", "tcp"), timeout=60, set_as_default=False)  # type: ignore[no-untyped-call]


def where_is(client: Client, pid: int) -> str:
    """The address of the worker with this process number."""
    found: dict[str, int] = client.run(os.getpid)
    (where,) = [name for name, of_worker in found.items() if of_worker == pid]
    return where


def kill_at_work(client: Client, pid: int, where: str, out: Path) -> None:
    """Kills the worker while it has a task, and something is finished in `out`."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if client.processing()[where] and parts(out):  # type: ignore[no-untyped-call]
            os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.01)
    raise AssertionError("the worker never had a task")


def test_a_worker_of_another_version_is_refused(
    cluster: tuple[str, Path], fetch: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_workers(cluster[0], 2)
    monkeypatch.setattr("airloom.sweep.runner.__version__", "99.0")
    with pytest.raises(RunError, match=r"^a worker has airloom \S+, this is 99.0: install the same version there$"):
        fetch.sweep(seeds=[1]).run(on=cluster[0])


def test_a_dead_address_is_one_line_and_makes_no_folder(capsys: pytest.CaptureFixture[str]) -> None:
    address = f"dask://127.0.0.1:{free_port()}"
    assert call(["sweep", "umts-page", "--on", address]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith(f"airloom: --on {address}: no Dask scheduler answers there (")
    assert list(Path().iterdir()) == []

"""The study `umts-proxies`: its shares of variance, and the reading of rows that were measured in real time."""

import importlib.util
import json
import shutil
import socket
import struct
import subprocess
import sys
import threading
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from airloom.errors import UsageError
from airloom.study import NotSwept, open_study
from airloom.study.data import Data
from airloom.study.outcome import evaluate
from airloom.study.rules import Result
from tests.study.conftest import QuickRun


@pytest.fixture(scope="module", autouse=True)
def package() -> None:
    """What lies beside `study.py` can be imported once that is."""
    assert open_study("umts-proxies").module


@pytest.fixture(scope="module")
def place(quick_run: QuickRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("umts-proxies")
    quick_run("umts-proxies", made)
    return made / "quick"


@pytest.fixture(scope="module")
def before(place: Path) -> dict[str, Result]:
    """The results without measurements."""
    return evaluate(open_study("umts-proxies"), place, "quick").results


STUDY = Path(str(resources.files("airloom"))) / "studies" / "umts-proxies"


def module(name: str) -> Any:
    """A program of the study, read as a module."""
    spec = importlib.util.spec_from_file_location(name, STUDY / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


def rows(place: Path, shift: float, seeds: tuple[int, ...] = (1,)) -> list[list[Any]]:
    """Rows as a measurement would have them: the virtual times, `shift` of each more, and a little with each seed."""
    from umts_proxies.clocks import simulated
    from umts_proxies.ways import WAYS

    data = Data(place)
    found = []
    for way in WAYS:
        of = simulated(data, way).group_by("page").agg(pl.col("virtual_s").mean()).sort("page")
        found += [[*way, page, seed, t * (1 + shift + seed / 1e3)] for page, t in of.rows() for seed in seeds]
    return found


def judged(place: Path, to: Path, real: Any) -> dict[str, Result]:
    """The results of the quick run in `place`, beside these measurements."""
    shutil.copytree(place, to, dirs_exist_ok=True)
    (to / "real.json").write_text(json.dumps(real))
    return evaluate(open_study("umts-proxies"), to, "quick").results


@pytest.mark.parametrize(("shift", "verdict"), [(-0.001, "holds"), (0.04, "holds"), (0.2, "differs")])
def test_rows_of_real_time_are_held_against_virtual_time(
    place: Path, before: dict[str, Result], tmp_path: Path, shift: float, verdict: str
) -> None:
    assert {before[claim].verdict for claim in ("N13.means", "N13.internet", "N06.real-loss")} == {"not-covered"}
    made = rows(place, shift)
    found = judged(place, tmp_path, {"rows": made})
    assert found["N13.means"].verdict == found["N13.internet"].verdict == verdict
    assert found["N13.means"].ours == pytest.approx(1.001 + shift)
    assert found["N13.ranks"].verdict == "holds"
    alike = {proxy: [r[6] for r in made if r[:4] == [proxy, "keep-alive", 20, 0.0]] for proxy in ("TCP", "none")}
    assert found["N18.by-hand"].ours == pytest.approx(np.mean(alike["TCP"]) - np.mean(alike["none"]))
    # One seed has no interval over seeds.
    assert found["N20.real-proxy"].verdict == "unclear"


def test_every_part_of_real_time_has_the_statistic_of_its_twin(place: Path, tmp_path: Path) -> None:
    made = rows(place, 0.0, (1, 2, 3))
    ways = {tuple(row[:4]): [r[6] for r in made if r[:4] == row[:4]] for row in made}
    runs = [[*way, seed, 9.0 + seed + 50 * (way[0] == "HTTP"), 0.01 * seed] for way in ways for seed in (1, 2, 3)]
    # The way of a packet takes what its size says; one seed lacks a size.
    pings = [
        [size, seed, 9.0, 0.1 + size / 1e4, 0.2 + size / 1e4 + seed / 100]
        for size in (52, 1500)
        for seed in (1, 2, 3)
        if (size, seed) != (1500, 3)
    ]
    real = {"rows": made, "runs": runs, "pings": pings}
    found = judged(place, tmp_path, real)
    study = open_study("umts-proxies")
    ids = [claim.id for claim in study.claims.leaves() if ".real" in claim.id]
    assert len(ids) == 34
    assert {claim for claim in ids if found[claim].verdict == "not-covered"} == set()
    mean = {way: np.mean(times) for way, times in ways.items()}

    def at(proxy: str, t: int = 20, loss: float = 0.0, http: str = "keep-alive") -> Any:
        return mean[proxy, http, t, loss]

    from umts_proxies.round_trips import sent

    # What is smaller than the smallest packet that was measured takes as long as that.
    octets = sum(np.maximum(sent(Data(tmp_path), of), 52).mean() for of in ("downlink", "uplink"))
    assert found["N01.real-most"].ours == pytest.approx(0.3 + octets / 1e4 + 0.015)
    assert found["N01.real-most"].seeds == 2
    assert found["N02.real-without"].ours == pytest.approx(
        at("none", http="pipelining") - at("none", http="no keep-alive")
    )
    assert found["N04.real-requests"].ours == pytest.approx(50)
    assert found["N25.real-requests"].ours == pytest.approx(61 / 11)
    assert found["N06.real-delay"].ours == pytest.approx(at("TCP", t=400) - at("none", t=400))
    assert found["N23.real-loss"].ours == pytest.approx(at("TCP", loss=0.05) - at("none", loss=0.05))
    assert found["N18.rule"].ours == pytest.approx(at("TCP, RFC 896") - at("none"))
    assert found["N25.real-no-cache"].ours == pytest.approx(at("HTTP, no cache") - at("none"))
    assert found["N25.real-hits"].ours == pytest.approx(0.02)
    over = (20, 100, 200, 400)
    slopes = [np.polyfit(over, [at(proxy, t=t) for t in over], 1)[0] * 1e3 for proxy in ("TCP", "none")]
    assert found["N11.real-delay"].ours == pytest.approx(slopes[0] - slopes[1])
    over_loss = (0, 2, 5)
    slopes = [np.polyfit(over_loss, [at(proxy, loss=x / 100) for x in over_loss], 1)[0] for proxy in ("TCP", "none")]
    assert found["N11.real-loss"].ours == pytest.approx(slopes[0] - slopes[1])
    # Three seeds of the same pages: one number each, and always the same. The next share of fifteen pages is near, and
    # so is the next correlation of six points.
    share = 1 - 0.025 ** (1 / 3)
    for claim, step in (("N10.real", 0), ("N20.real-proxy", 1 / 15), ("N22.real-delay", 12 / 210), ("N24.real", 0)):
        assert found[claim].ours > 0
        assert found[claim].low == pytest.approx(found[claim].ours - step * share)
        assert found[claim].high == pytest.approx(min(found[claim].ours + step * share, 1))
        assert found[claim].seeds == 3
    assert found["N22.real-delay"].ours > 0.9

    outcome = evaluate(study, tmp_path, "quick")
    data = Data(tmp_path)
    head, cells = study.module.TABLES["clocks-internet"].make(data)
    assert len(cells) == len(ways) - 9
    assert {len(row) for row in cells} == {len(head)}
    assert outcome.results["N13.internet"].seeds == 16
    head, cells = study.module.TABLES["clocks-tcp-proxy"].make(data)
    assert [row[:2] for row in cells] == [
        ["20", "0"],
        ["100", "0"],
        ["200", "0"],
        ["400", "0"],
        ["20", "2"],
        ["20", "5"],
    ]
    # The rows are those of virtual time, a little more with each seed.
    more = 1.002
    for row in cells:
        simulated, measured = (float(cell.split()[0]) for cell in row[3:])
        assert measured == pytest.approx(more * simulated, abs=0.011)
    for name in ("clocks", "clocks-internet"):
        assert study.module.FIGURES[name].draw(data).axes


def test_what_was_not_in_time_is_left_out(place: Path, tmp_path: Path) -> None:
    made = rows(place, 0.0, (1, 2, 3))
    gone = [["none", "keep-alive", 400, 0.0], ["TCP", "keep-alive", 20, 0.05]]
    kept = [row for row in made if row[:4] != gone[0] or row[5] != 2]
    found = judged(place, tmp_path, {"rows": [row for row in kept if row[:4] != gone[1]]})
    # Two of three seeds, and no seed at all. A pair for each page, whatever the seeds.
    direct, split = (
        np.mean([r[6] for r in made if r[:4] == [p, "keep-alive", 400, 0.0] and r[5] != 2]) for p in ("none", "TCP")
    )
    assert found["N06.real-delay"].ours == pytest.approx(split - direct)
    assert found["N06.real-delay"].seeds == 15
    assert found["N22.real-delay"].seeds == 2
    assert found["N06.real-loss"].verdict == "not-covered"
    assert found["N06.real-loss"].why == "TCP, keep-alive, T = 20 ms, loss 0.05: not measured, or not in time"
    assert found["N04.real-requests"].verdict == "not-covered"
    assert found["N01.real-most"].verdict == "not-covered"


def test_where_every_list_was_late_round_trips_are_judged_all_the_same(place: Path, tmp_path: Path) -> None:
    pings = [[size, seed, 9.0, 0.1, 0.2 + seed / 100] for size in (52, 1500) for seed in (1, 2, 3)]
    late = [["surf", "none", "keep-alive", "20", "0.0", "1"]]
    found = judged(place, tmp_path, {"rows": [], "runs": [], "pings": pings, "chromium": [], "late": late})
    assert found["N13.means"].verdict == found["N04.real-requests"].verdict == "not-covered"
    assert found["N13.means"].why == "no list of pages was measured in time"
    assert found["N01.real-most"].ours == pytest.approx(0.32)
    assert found["N01.real-most"].seeds == 3


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"rows": []}',
        '{"rows": [["none", "keep-alive", 6, 1, 9.1]]}',
        '{"rows": [["none", "keep-alive", 20, 0, 6, 1, -1.0]]}',
        '{"rows": [["none", "keep-alive", 20, 0, 6, null, 1.0]]}',
        '{"rows": [["x", "keep-alive", 20, 0, 1, 1, 1.0]]}',
        '{"rows": [["none", "y", 20, 0, 1, 1, 1.0]]}',
    ],
)
def test_what_are_no_rows_is_said_in_one_line(place: Path, tmp_path: Path, text: str) -> None:
    from umts_proxies.measured import measured

    copy = tmp_path / "quick"
    shutil.copytree(place, copy)
    with pytest.raises(NotSwept):
        measured(Data(copy))
    (copy / "real.json").write_text(text)
    with pytest.raises(UsageError, match=r"real\.json") as error:
        measured(Data(copy))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("runs", [["none", "keep-alive", 20, 0, 1, 0, None]]),
        ("runs", [["none", "keep-alive", 20, 0, 1, 2.0, -1]]),
        ("pings", [[1500, 1, None, 0.4, 0.6]]),
        ("pings", [[1500, 1, 1.0, 0.0, 0.6]]),
        ("pings", [[1500, "one", 1.0, 0.4, 0.6]]),
        ("pings", 3),
    ],
)
def test_what_are_no_runs_or_pings_is_said_too(place: Path, name: str, given: Any) -> None:
    from umts_proxies.measured import checked

    with pytest.raises(UsageError, match=rf"real\.json: {name}"):
        checked({"rows": [], name: given}, name)


def test_the_program_tries_once_more_what_was_late(monkeypatch: pytest.MonkeyPatch) -> None:
    program = module("measure_surf")
    tries: list[tuple[str, ...]] = []

    def apart(job: tuple[str, ...], _keep: object) -> dict[str, Any]:
        tries.append(job)
        if job == ("fails",) and tries.count(job) == 1:
            raise subprocess.CalledProcessError(1, "surf")
        return {"rows": [list(job)], "valid": job != ("never",) and (job != ("late",) or tries.count(job) == 2)}

    monkeypatch.setattr(program, "apart", apart)
    late: list[Any] = []
    found = program.all_of([("good",), ("late",), ("fails",), ("never",)], 2, None, late)
    assert [result["rows"] for result in found] == [[["good"]], [["late"]], [["fails"]]]
    assert late == [("never",)]
    assert len(tries) == 7


def made_up(job: tuple[str, ...]) -> dict[str, Any]:
    """What a measurement would print; nothing under seed 3 is in time."""
    kind, *words = job
    if kind == "ping":
        size, seed, _ = map(int, words)
        return {"pings": [[size, seed, 1.1, 0.5, 0.6]], "valid": True}
    if kind == "chromium":
        return {"chromium": [[words[0], "keep-alive", int(words[1]), int(words[2]), 7.0]], "valid": True}
    way: list[Any] = [words[0], words[1], int(words[2]), float(words[3])]
    seed = int(words[4])
    return {"rows": [[*way, 6, seed, 9.0]], "runs": [[*way, seed, 10.0, None]], "valid": seed != 3}


def test_the_program_prints_what_all_its_jobs_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from umts_proxies.measured import COLUMNS, checked
    from umts_proxies.ways import FEW_WAYS, WAYS

    assert len(set(WAYS)) == len(WAYS)
    assert set(FEW_WAYS) <= set(WAYS)
    program = module("measure_surf")
    monkeypatch.setattr(program, "apart", lambda job, _keep: made_up(job))
    monkeypatch.setattr(program, "can_emulate", lambda: True)
    monkeypatch.setattr(sys, "argv", ["measure_surf.py"])
    program.main()
    found = json.loads(capsys.readouterr().out)
    heights = {name: checked(found, name).height for name in COLUMNS}
    sizes = len(program.SIZES)
    assert heights == {"rows": 2 * len(WAYS), "runs": 2 * len(WAYS), "pings": 3 * sizes}
    assert len(found["late"]) == len(WAYS)
    assert len(found["chromium"]) in (0, 45)
    monkeypatch.setattr(sys, "argv", ["measure_surf.py", "--depth", "quick"])
    program.main()
    heights = {name: len(rows) for name, rows in json.loads(capsys.readouterr().out).items()}
    assert heights == {"rows": len(FEW_WAYS), "runs": len(FEW_WAYS), "pings": sizes, "chromium": 0, "late": 0}
    monkeypatch.setattr(program, "can_emulate", lambda: False)
    program.main()
    assert set(map(len, json.loads(capsys.readouterr().out).values())) == {0}


def test_what_was_measured_in_time_is_not_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = module("measure_surf")
    measured: list[tuple[str, ...]] = []

    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        job = tuple(words[words.index(str(STUDY / "measure_surf.py")) + 1 :])
        measured.append(job)
        return subprocess.CompletedProcess(words, 0, json.dumps(made_up(job)))

    monkeypatch.setattr(program.subprocess, "run", run)
    jobs = [("surf", "none", "keep-alive", "20", "0", seed) for seed in ("1", "3")]
    first = [program.apart(job, tmp_path) for job in jobs]
    assert [program.apart(job, tmp_path) for job in jobs] == first
    # The one that was late is tried again.
    assert measured == [*jobs, jobs[1]]


def test_one_list_of_some_pages_can_be_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = module("measure_surf")
    asked: list[tuple[Any, ...]] = []

    def surf(*words: Any) -> dict[str, Any]:
        asked.append(words)
        return {"valid": True}

    monkeypatch.setattr(program.laboratories, "surf", surf)
    monkeypatch.setattr(
        sys, "argv", ["measure_surf.py", "surf", "TCP", "keep-alive", "400", "0.05", "2", "--pages", "9,35"]
    )
    program.main()
    assert asked == [(("TCP", "keep-alive", 400, 0.05), 2, [9, 35])]
    assert json.loads(capsys.readouterr().out) == {"valid": True}


class Recorder:
    """A socket that says how long its segments are, and keeps what is sent."""

    def __init__(self, segment: int) -> None:
        self.segment = segment
        self.sent: list[bytes] = []

    def getsockopt(self, *_: int) -> int:
        return self.segment

    def sendall(self, octets: bytes) -> None:
        if octets:
            self.sent.append(bytes(octets))


def test_the_rule_of_rfc_896_holds_short_segments_back_until_all_is_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forwarder = module("forwarder")
    # What is not acknowledged yet, each time it is asked.
    waiting = iter([0, 2_000, 700, 0, 0])
    after = {700: b"y" * 5, 0: b""}
    ours, theirs = socket.socketpair()
    to = Recorder(1_000)

    def ioctl(*_: object) -> bytes:
        now = next(waiting)
        if now == 700:
            theirs.sendall(after[700])
        return struct.pack("i", now)

    monkeypatch.setattr(forwarder.fcntl, "ioctl", ioctl)
    theirs.sendall(b"x" * 2_500)
    with ours, theirs:
        copying = threading.Thread(target=forwarder.by_rfc_896, args=(ours, to))
        copying.start()
        while copying.is_alive() and sum(map(len, to.sent)) < 2_505:
            copying.join(0.01)
        theirs.sendall(b"z" * 10)
        theirs.shutdown(socket.SHUT_WR)
        copying.join()
    # Two whole ones at once; the rest, and what came meanwhile, when nothing was outstanding.
    assert to.sent[0] == b"x" * 2_000
    assert to.sent[1] == b"x" * 500 + b"y" * 5
    assert b"".join(to.sent) == b"x" * 2_500 + b"y" * 5 + b"z" * 10


@pytest.mark.parametrize("words", [[], ["--no-nagle"], ["--rfc-896"]])
def test_the_forwarder_passes_everything_on_and_the_end(words: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as free:
        at, port = server.getsockname()[1], free.getsockname()[1]
        free.close()
        command = [sys.executable, str(STUDY / "forwarder.py"), *words, f"{port}=127.0.0.1:{at}"]
        program = subprocess.Popen(command)
        try:
            client = connected(port)
            server.settimeout(60)
            onward, _ = server.accept()
            with client, onward:
                request, answer = b"request" * 3_001, b"answer" * 50_001
                client.sendall(request)
                client.shutdown(socket.SHUT_WR)
                assert everything(onward) == request
                onward.sendall(answer)
                onward.shutdown(socket.SHUT_WR)
                assert everything(client) == answer
        finally:
            program.kill()
            program.wait()


def connected(port: int) -> socket.socket:
    """A connection, as soon as somebody listens."""
    for _ in range(600):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=60)
        except ConnectionRefusedError:
            threading.Event().wait(0.1)
    raise AssertionError("nobody listens")


def everything(of: socket.socket) -> bytes:
    """All that comes until the end."""
    return b"".join(iter(lambda: of.recv(65_536), b""))


def test_shares_of_variance_are_those_that_were_put_in() -> None:
    from umts_proxies.observations import explained

    pages = np.exp(np.array([0.0, 1.0, 3.0, 0.5]))
    # Logarithms: 2 a + b, where a and b are -1 or 1: variances 4 and 1.
    made = {(a, b): pages * np.exp(2 * a + b) for a in (-1, 1) for b in (-1, 1)}
    both, single = explained(made)
    assert both == pytest.approx(1.0)
    assert single[0] == pytest.approx(0.8)
    assert single[1] == pytest.approx(0.2)
    # What differs from page to page alone is explained by no factor.
    turned = {(a,): np.exp(a * np.array([1.0, -1.0, 1.0, -1.0])) for a in (-1, 1)}
    assert explained(turned)[0] == pytest.approx(0.0, abs=1e-12)


def test_the_radio_luck_of_a_seed_does_not_hide_what_pages_gain() -> None:
    from umts_proxies.observations import correlation

    objects = np.arange(15)
    draws = np.random.default_rng(1).normal(0, 20, (400, 15))
    luck = draws - draws.mean(axis=0)
    found = correlation(objects + luck, objects).samples
    assert len(found) == 400
    # The mean over seeds is what pages gain, in their order; one seed alone says little.
    assert found.mean() == pytest.approx(1.0)
    assert abs(correlation((objects + luck)[:1], objects).samples[0]) < 0.9
    # Of two groups of pages in the other order nothing is left.
    assert correlation(-objects + luck, objects).samples.mean() == pytest.approx(-1.0)


def test_a_round_trip_is_that_of_the_sizes_that_pages_send(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from umts_proxies import round_trips

    sizes = {"downlink": np.array([1500.0, 1500.0, 52.0]), "uplink": np.array([52.0, 402.0])}
    monkeypatch.setattr(round_trips, "sent", lambda _data, direction: sizes[direction])
    # Downlink 1 ms an octet, uplink none; between the measured sizes it is a line.
    ways = {"downlink": np.array([[0.052, 1.5], [0.052, 1.5]]), "uplink": np.array([[0.1, 0.1], [0.2, 0.2]])}
    found = round_trips.as_sent(Data(place), ways, (52, 1500))
    assert found == pytest.approx([3.052 / 3 + 0.1, 3.052 / 3 + 0.2])

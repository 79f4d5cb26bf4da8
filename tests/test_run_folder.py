import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pytest

import airloom as al
from airloom import folder, places
from airloom.cli import call
from airloom.errors import CannotWrite, UsageError
from airloom.folder import Folder
from tests import wireshark
from tests.cli.shell import airloom, inside
from tests.conftest import needs

TRANSFER = """\
title = "A transfer over a lossy wire"
path = ["mobile", "wire", "origin"]

[hosts]
mobile = { app = { bulk = { size = "200kB" } } }
origin = { app = "bulk-server" }

[links]
wire = { bearer = "wireline", rate = "1Mbit/s", delay = "20ms", queue = "30 packets", loss = 0.02 }

[run]
record = ["packets", "pcapng", "congestion"]
"""


@pytest.fixture
def transfer(tmp_path: Path) -> Path:
    path = tmp_path / "transfer.toml"
    path.write_text(TRANSFER)
    return path


def hashes(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir() if p.name != "run.json"}


def test_every_file_but_the_manifest_is_the_same_for_the_same_seed(transfer: Path) -> None:
    first = inside("run", transfer, "--plot", "--seed", "7", "--out", "first")
    second = airloom("run", transfer, "--plot", "--seed", "7", "--out", "second", PYTHONHASHSEED="5", TZ="Asia/Tokyo")
    assert first.code == second.code == 0
    assert hashes(Path("first")) == hashes(Path("second"))
    assert set(hashes(Path("first"))) == {
        "summary.json",
        "packets.parquet",
        "flows.parquet",
        "pages.parquet",
        "states.parquet",
        "congestion.parquet",
        "trace.pcapng",
        "time-sequence.svg",
    }


def test_another_seed_gives_another_run(transfer: Path) -> None:
    scenario = al.load(transfer)
    first, second = scenario.run(1), scenario.run(2)
    assert first.folder != second.folder
    assert first.manifest["run_id"] != second.manifest["run_id"]
    assert hashes(first.folder)["packets.parquet"] != hashes(second.folder)["packets.parquet"]


def test_the_manifest_says_how_to_repeat_the_run(transfer: Path) -> None:
    run = al.load(transfer, {"links.wire.loss": 0.1}).run(3)
    manifest = json.loads((run.folder / "run.json").read_text())
    assert manifest["status"] == "ok"
    assert manifest["clock"] == "virtual"
    assert manifest["seed"] == 3
    assert manifest["version"] == al.__version__
    assert {"schema", "command", "host", "start_utc", "scenario", "run_id", "overrides"} <= set(manifest)
    again = Path("again.json")
    again.write_text(json.dumps(manifest["scenario"]))
    repeated = al.load(again).run()
    assert repeated.manifest["run_id"] == run.manifest["run_id"]
    assert repeated.summary == run.summary


def test_the_folder_is_named_after_date_scenario_and_run(transfer: Path) -> None:
    run = al.load(transfer).run()
    date, name, identity = run.folder.name[:10], run.folder.name[11:-11], run.folder.name[-10:]
    assert run.folder.parent == Path("runs")
    assert time.strptime(date, "%Y-%m-%d")
    assert name == "transfer"
    assert identity == run.manifest["run_id"]
    assert len(identity) == 10
    assert int(identity, 16) >= 0


def test_tables_are_sorted_by_time_and_carry_what_made_them(transfer: Path) -> None:
    run = al.load(transfer).run()
    packets = run.packets
    columns = "t_ns point dir event pkt_id flow proto len seq ack attempt reason q_bytes"
    assert packets.columns == columns.split()
    assert packets["t_ns"].dtype == pl.Int64
    assert packets["t_ns"].is_sorted()
    assert packets.height > 500
    metadata = pl.read_parquet_metadata(run.folder / "packets.parquet")
    assert metadata["airloom.seed"] == "1"
    assert metadata["airloom.version"] == al.__version__
    assert json.loads(metadata["airloom.scenario"]) == run.manifest["scenario"]
    assert metadata["airloom.schema"]


def test_tables_agree_with_the_summary(transfer: Path) -> None:
    # Of this seed's losses some hit data, so that something is sent again.
    run = al.load(transfer).run(2)
    assert run.flows["app_bytes_down"].to_list() == [200_000]
    assert run.flows["resent"].sum() == run.summary["resent"]
    dropped = run.packets.filter(pl.col("event").cast(pl.String) == "drop")
    assert dropped["pkt_id"].n_unique() == run.summary["lost"] + run.summary.get("queue_drops", 0)
    assert run.summary["resent"] > 0
    assert run.congestion["cwnd"].min() < run.congestion["cwnd"].max()  # type: ignore[operator]


def test_tables_that_were_not_asked_for_are_not_there(transfer: Path) -> None:
    run = al.load(transfer, {"run.record": []}).run()
    assert not (run.folder / "packets.parquet").exists()
    assert run.capture is None
    with pytest.raises(UsageError, match='add "packets" to `record`'):
        _ = run.packets


def test_the_capture_is_read_without_a_complaint(transfer: Path) -> None:
    run = al.load(transfer).run()

    def count(shown: str = "") -> int:
        checked = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
        return len(wireshark.frames(run.capture, shown, *checked))

    assert count() > 200
    assert count("_ws.malformed") == 0
    assert count("tcp.checksum.status == 1 && ip.checksum.status == 1") == count()
    # Each flow is seen once, at the client's end; lost packets show where they were seen last.
    assert count('frame.interface_name == "mobile.wire.ip"') > 200
    dropped = run.summary["lost"] + run.summary.get("queue_drops", 0)
    assert count('frame.comment contains "dropped"') == dropped


@pytest.mark.parametrize("options", [[], ["--enable-heuristic", "rlc_udp", "-o", "tcp.reassemble_out_of_order:TRUE"]])
def test_wireshark_reads_datagrams_and_the_radio_link_layer(options: list[str]) -> None:
    run = al.load("umts-page", {"hosts.mobile.app.http-client.pages": [["/20kB", "/10kB"]]}).run()

    def frames(display_filter: str) -> int:
        return len(wireshark.frames(run.capture, display_filter, *options))

    assert frames(wireshark.BROKEN) == 0
    blocks = frames('frame.interface_name contains ".rlc."')
    assert blocks > 500
    assert frames("rlc") == (blocks if options else 0)
    lost = run.summary["downlink.blocks_lost"] + run.summary["uplink.blocks_lost"]
    assert frames('frame.comment contains "block error"') >= lost > 0


def test_a_run_that_is_not_done_in_time_is_an_error_and_leaves_nothing(transfer: Path, tmp_path: Path) -> None:
    done = inside("run", transfer, "--set", "run.limit=1s")
    assert done.code == 4
    assert "not done within run.limit = 1s" in done.err
    assert list(tmp_path.iterdir()) == [transfer]


def test_a_folder_that_is_no_run_is_left_alone(transfer: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    done = inside("run", transfer, "--out", mine)
    assert done.code == 2
    assert "is not a result folder" in done.err
    assert inside("run", transfer, "--out", mine, "--force").code == 2, "what is not ours is never replaced"
    assert [p.name for p in mine.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("name", ["parts/gear.step", "thesis.zip.part"])
def test_a_folder_that_has_something_called_as_a_part_is_left_alone(transfer: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / "mine" / name
    file.parent.mkdir(parents=True)
    file.write_text("years of work")
    for words in (("run", transfer), ("sweep", transfer, "--seeds", "1")):
        done = inside(*words, "--out", tmp_path / "mine")
        assert (done.code, "is not a result folder" in done.err) == (2, True), done.err
    assert file.read_text() == "years of work"


def test_a_sweep_that_was_killed_before_its_manifest_was_whole_is_begun_again(transfer: Path, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / ".lock").touch()
    (tmp_path / "s" / "sweep.json.part").write_text("{")
    assert al.load(transfer).sweep(seeds="1..2", tables=[]).run(out=tmp_path / "s").runs.height == 2


def test_the_same_run_may_take_its_place_again_and_another_one_only_by_force(transfer: Path, tmp_path: Path) -> None:
    words = ["run", str(transfer), "--out", "result"]
    for _ in range(2):
        assert call([*words, "--seed", "1"]) == 0
    with pytest.raises(UsageError) as refused:
        al.load(transfer).run(2, out="result")
    identity = al.Run("result").manifest["run_id"]
    assert str(refused.value) == (
        f"result holds another run (transfer, {identity}): choose another --out, or replace it with --force"
    )
    assert call([*words, "--seed", "2"]) == 2
    assert al.Run("result").manifest["seed"] == 1
    assert call([*words, "--seed", "2", "--force"]) == 0
    assert al.Run("result").manifest["seed"] == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["result", "transfer.toml"]


def test_what_lies_beside_the_same_results_stays(transfer: Path) -> None:
    words = ["run", str(transfer), "--out", "result", "--seed"]
    assert call([*words, "1"]) == 0
    assert call(["export", "result", "--qlog", "draft"]) == 0
    Path("result/notes.txt").write_text("look at second 3")
    assert call([*words, "1"]) == 0
    assert Path("result/notes.txt").read_text() == "look at second 3"
    assert list(Path("result/qlog-draft").iterdir())
    # Other results have other notes.
    assert call([*words, "2", "--force"]) == 0
    assert {path.suffix for path in Path("result").iterdir()} == {".parquet", ".json", ".pcapng"}


def test_a_name_of_a_folder_is_no_pattern(transfer: Path) -> None:
    one = al.load(transfer).run(1, out=Path("r1"))
    other = al.load(transfer, {"hosts.mobile.app.bulk.size": "10kB"}).run(1, out=Path("r[1]"))
    assert al.Run(other.folder).flows["app_bytes_down"].to_list() == [10_000]
    assert al.Run(one.folder).flows["app_bytes_down"].to_list() == [200_000]
    sweep = al.load(transfer).sweep(seeds=range(3)).run(out=Path("s[*?]"))
    assert sweep.runs.height == 3


def test_tables_of_runs_can_be_joined_and_put_together() -> None:
    tables = []
    for name in ("umts-page", "http3-page"):
        run = al.load(name, {"run.record": ["objects"]}).run(1)
        joined = run.objects.join(run.pages, on=["page", "client"])
        assert joined.height == run.objects.height > 0
        tables.append(run.flows)
    assert set(pl.concat(tables)["proto"]) == {"tcp", "quic"}


def test_a_manifest_is_read_as_its_scenario_with_its_seed(transfer: Path) -> None:
    run = al.load(transfer).run(7, out=Path("first"))
    again = al.load(run.folder / "run.json").run(out=Path("again"))
    assert again.manifest["seed"] == 7
    assert hashes(run.folder) == hashes(again.folder)
    done = inside("check", run.folder / "run.json", "--set", "links.wire.lss=1")
    assert (done.code, "links.wire.lss" in done.err) == (2, True)


def test_a_sweep_and_a_run_take_each_others_place_only_by_force(transfer: Path) -> None:
    sweep, run = (
        ["sweep", str(transfer), "--seeds", "1..2", "--out", "result"],
        ["run", str(transfer), "--out", "result"],
    )
    assert [call(sweep), call(run)] == [0, 2]
    assert [call([*run, "--force"]), call(sweep)] == [0, 2]
    assert call([*sweep, "--force"]) == 0
    assert not Path("result/run.json").exists()
    assert al.SweepResults("result").runs.height == 2


def test_a_result_that_somebody_is_at_work_on_is_not_replaced(transfer: Path) -> None:
    assert call(["sweep", str(transfer), "--seeds", "1..2", "--out", "result"]) == 0
    with places.alone_in(Path("result")), pytest.raises(UsageError, match=r"^result: another process is at work there"):
        al.load(transfer).sweep(seeds="1..3", tables=[]).run(out="result", force=True)
    assert al.SweepResults("result").runs.height == 2


def test_what_was_measured_keeps_its_place_and_the_next_one_has_a_number(tmp_path: Path) -> None:
    place = tmp_path / "measured"
    for who in ("first", "second", "third"):
        with Folder(place, "1", keeps=True) as folder:
            folder.finish({"run_id": "1", "who": who})
    found = {path.name: json.loads((path / "run.json").read_text())["who"] for path in tmp_path.iterdir()}
    assert found == {"measured": "first", "measured-2": "second", "measured-3": "third"}


def test_what_came_there_while_a_run_was_under_way_stays(tmp_path: Path) -> None:
    place = tmp_path / "m"
    second = Folder(place, "2")
    # Both are of this process: their hidden folders would have one name.
    second._partial = tmp_path / ".m.second.partial"
    with Folder(place, "1") as first, second:
        assert second.finish({"run_id": "2"}) == place
        assert first.finish({"run_id": "1"}) == tmp_path / "m-2"
    assert [al.Run(tmp_path / name).manifest["run_id"] for name in ("m", "m-2")] == ["2", "1"]
    # What is no result stays even with force, which is for results.
    with Folder(tmp_path / "n", "1", force=True) as folder:
        (tmp_path / "n").mkdir()
        (tmp_path / "n" / "thesis.txt").write_text("years of work")
        assert folder.finish({"run_id": "1"}) == tmp_path / "n-2"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "m-2", "n", "n-2"]
    assert [path.name for path in (tmp_path / "n").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("out", [".", "{here}", "../empty"])
def test_the_current_folder_is_no_place_for_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str) -> None:
    here = tmp_path / "empty"
    here.mkdir()
    monkeypatch.chdir(here)
    done = inside("run", "umts-page", "--out", out.format(here=here))
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "is the current folder, or one around it" in done.err
    assert [*here.iterdir()] == []


def test_a_mount_point_is_no_place_for_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place := tmp_path / "disk").mkdir()
    monkeypatch.setattr("os.path.ismount", lambda path: Path(path) == place)
    done = inside("run", "umts-page", "--out", place)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "disk is where a file system begins" in done.err
    assert [*tmp_path.iterdir()] == [place]


def test_new_places_have_the_time_and_a_number_where_they_are_taken() -> None:
    names = []
    for _ in range(3):
        place = places.new_place("page", "7f3c02ab91")
        place.mkdir(parents=True)
        names.append(place.name)
    assert len(set(names)) == 3
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d{6}-page-7f3c02ab91(-[23])?", name) for name in names), names


def test_words_that_are_no_utf_8_are_one_line_and_do_not_lose_a_run(
    transfer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = os.fsencode(tmp_path) + b"/caf\xe9"
    odd_file = odd + b".toml"
    Path(os.fsdecode(odd_file)).write_bytes(transfer.read_bytes())
    begin = [sys.executable, "-m", "airloom"]
    for words in (
        ["run", transfer, "--out", odd],
        ["sweep", transfer, "--seeds", "1", "--out", odd],
        ["check", odd_file],
        ["run", transfer, "--set", b"title=caf\xe9"],
    ):
        done = subprocess.run([*begin, *words], capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1), done.stderr.decode()
        assert b"no UTF-8" in done.stderr
    monkeypatch.setattr(sys, "argv", ["airloom", os.fsdecode(b"caf\xe9")])
    assert al.load(transfer).run(out=tmp_path / "run").manifest["command"] == ["airloom", "caf\ufffd"]


def test_a_run_with_a_picture_has_the_seed_that_it_was_given(tmp_path: Path) -> None:
    scenario = al.load("wwp-transfer").with_seed(7)
    assert scenario.run(plot=True, out=tmp_path / "drawn").manifest["seed"] == 7


@pytest.mark.parametrize("words", [["run"], ["sweep", "--seeds", "1"]])
def test_a_place_that_the_system_refuses_is_said_with_what_to_do(transfer: Path, words: list[str]) -> None:
    verb, *more = words
    done = inside(verb, transfer, *more, "--out", "/proc/nope")
    assert done.code == 4
    assert done.err == (
        "airloom: cannot create /proc/nope/: no such file or directory; choose another place with --out\n"
    )


def test_a_failure_while_writing_leaves_nothing(tmp_path: Path) -> None:
    def write() -> None:
        with Folder(tmp_path / "runs" / "one", "1") as folder:
            folder.write_json("summary.json", {})
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_line_and_leaves_nothing(transfer: Path, tmp_path: Path) -> None:
    limited = "import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
    limited += "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limited += f"from airloom.cli import main\nmain(['run', {str(transfer)!r}, '--out', 'result'])"
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 4
    assert done.stderr.startswith("airloom: ")
    assert "File too large" in done.stderr
    assert list(tmp_path.iterdir()) == [transfer]


@pytest.mark.parametrize("size", ["4k", "12k", "60k", "200k", "300k"])
def test_a_disk_that_is_full_at_any_file_is_one_line_and_leaves_nothing(transfer: Path, size: str) -> None:
    unshare = needs("unshare")
    words = [sys.executable, "-m", "airloom", "run", str(transfer), "--plot", "--out", "disk/result"]
    script = (
        f"mkdir disk && mount -t tmpfs -o size={size} none disk && {{ {shlex.join(words)}; echo $?; ls -A disk/*; }}"
    )
    done = subprocess.run([unshare, "--map-root-user", "--mount", "sh", "-c", script], capture_output=True, text=True)
    # The picture is drawn when all else is there: then that stays.
    code, *files = done.stdout.split()
    assert code == "4"
    assert not files or ("run.json" in files and not any("time-sequence" in name for name in files))
    line = done.stderr.splitlines()[0]
    assert line.startswith("airloom: ")
    assert "No space left on device" in line


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing(transfer: Path, tmp_path: Path, number: int, code: int) -> None:
    long = (
        transfer.read_text().replace('"200kB"', '"100GB"').replace('record = ["packets", "pcapng", "congestion"]', "")
    )
    transfer.write_text(long + 'record = ["pcapng"]\nlimit = "1000000h"\n')
    command = [sys.executable, "-m", "airloom", "run", str(transfer)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.glob("runs/.*/trace.pcapng.part")):
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert out == ""
    assert err == f"airloom: {'interrupted' if number == signal.SIGINT else 'stopped'}, nothing was written\n"
    assert list(tmp_path.iterdir()) == [transfer]


def test_a_folder_without_status_is_unfinished(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UsageError, match="never finished"):
        al.Run(tmp_path)


def test_a_verdict_that_is_none_is_as_if_there_were_none(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"status": "ok"}')
    (tmp_path / "summary.json").write_text('{"verdict": ["valid"], "verdict_reasons": null}')
    run = al.Run(tmp_path)
    assert (run.verdict, run.verdict_reasons) == (None, [])


def test_under_sudo_files_belong_to_the_caller(transfer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        with pytest.raises(PermissionError):
            os.chown(transfer, 1, 1)
        return
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "4321")
    run = al.load(transfer).run()
    for path in (run.folder.parent, run.folder, *run.folder.iterdir()):
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


def test_the_folder_above_may_be_made_by_two_runs_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Path.mkdir
    raced: list[Path] = []

    def overtaken(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        # Another run makes the common folder in the moment after this one saw that it was missing.
        if path.name == "sweep" and not raced:
            raced.append(path)
            make(path)
        make(path, mode, parents, exist_ok)

    monkeypatch.setattr(Path, "mkdir", overtaken)
    with Folder(tmp_path / "sweep" / "one", "1") as folder:
        folder.finish({})
    assert raced
    assert (tmp_path / "sweep" / "one" / "run.json").exists()
    # What another made is not removed with a run that fails.
    raced.clear()
    (tmp_path / "sweep" / "one").rename(tmp_path / "one")
    (tmp_path / "sweep").rmdir()
    with pytest.raises(KeyError), Folder(tmp_path / "sweep" / "two", "2"):
        raise KeyError("a run that fails")
    assert (tmp_path / "sweep").is_dir()


def test_a_common_folder_that_a_failed_run_takes_away_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Path.mkdir
    raced: list[Path] = []

    def undone(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        # Another run fails in the moment after this one saw that the common folder was there.
        if path.name.endswith(".partial") and not raced:
            raced.append(path)
            path.parent.rmdir()
        make(path, mode, parents, exist_ok)

    (tmp_path / "runs").mkdir()
    monkeypatch.setattr(Path, "mkdir", undone)
    with Folder(tmp_path / "runs" / "one", "1") as folder:
        folder.finish({})
    assert raced
    assert (tmp_path / "runs" / "one" / "run.json").exists()


@pytest.mark.parametrize("there", [False, True])
def test_the_same_run_finished_at_the_same_moment_is_an_earlier_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    place = tmp_path / "run"
    if there:
        with Folder(place, "1") as folder:
            folder.finish({"run_id": "1", "who": "long before"})
    rename = Path.rename
    raced: list[Path] = []

    def overtaken(path: Path, target: Path) -> Path:
        # The other one gets the name in the moment after this one saw that it was free, or freed it.
        if path.name.endswith(".partial") and not raced:
            raced.append(path)
            make_other()
        return rename(path, target)

    def make_other() -> None:
        place.mkdir()
        (place / "run.json").write_text('{"run_id": "1"}')

    monkeypatch.setattr(Path, "rename", overtaken)
    with Folder(place, "1") as folder:
        folder.finish({"run_id": "1", "who": "this"})
    assert raced
    assert json.loads((place / "run.json").read_text())["who"] == "this"
    assert [path.name for path in tmp_path.iterdir()] == ["run"], "nothing is left beside it"


def test_a_file_where_a_folder_above_should_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = r"^cannot create .*/file/: not a directory; choose another place with --out$"
    with pytest.raises(CannotWrite, match=said), Folder(tmp_path / "file" / "run", "1"):
        pass


def test_what_a_killed_run_left_is_removed_by_the_next_one_and_what_is_held_stays(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    old = time.time() - 3600

    here = os.uname().nodename

    def hidden(name: str, number: int, *, host: str = here, held: bool = False, young: bool = False) -> Path:
        made = tmp_path / f".{name}.{host}-{number}.partial"
        made.mkdir()
        (made / "flows.parquet").write_bytes(b"half")
        if held:
            stack.callback(os.close, folder._hold(made) or -1)
        if not young:
            os.utime(made, (old, old))
        return made

    with ExitStack() as stack:
        abandoned = [hidden("page", gone.pid), tmp_path / f".page.{here}-{gone.pid}.0.old"]
        abandoned[1].mkdir()
        os.utime(abandoned[1], (old, old))
        kept = [
            hidden("young", gone.pid, young=True),
            # In another container: there is no such process here, and yet somebody holds it.
            hidden("held", gone.pid, held=True),
            hidden("elsewhere", gone.pid, host=f"not-{here}"),
            hidden("alive", os.getpid()),
            tmp_path / f".page.{here}-{gone.pid}.part",
        ]
        kept[-1].mkdir()
        os.utime(kept[-1], (old, old))
        (tmp_path / f".link.{here}-{gone.pid}.partial").symlink_to(kept[-1])
        with Folder(tmp_path / "page", "1") as made:
            made.finish({"run_id": "1"})
        assert not any(path.exists() for path in abandoned)
        assert all(path.is_dir() for path in kept)
        assert (tmp_path / f".link.{here}-{gone.pid}.partial").is_symlink()
    assert Folder(tmp_path / "page", "1").place.is_dir()


def test_no_file_of_a_result_and_nothing_that_is_read_is_written_over(tmp_path: Path) -> None:
    page = al.load("umts-page").run(out=tmp_path / "page")
    deck, summary = tmp_path / "deck.wml", page.folder / "summary.json"
    deck.write_text("<wml><card><p>Hello</p></card></wml>")
    scenario = tmp_path / "own.toml"
    scenario.write_text("[hosts]\n")
    capture = tmp_path / "own.pcapng"
    capture.write_bytes((page.folder / "trace.pcapng").read_bytes())
    table = page.folder / "packets.parquet"
    kept = (deck, summary, scenario, capture, table)
    before = [file.read_bytes() for file in kept]
    commands: list[list[str | Path]] = [
        ["wap", "compile", deck, "-o", deck],
        ["report", page.folder, "--out", summary],
        ["compare", page.folder, page.folder, "--html", page.folder / "pages.parquet"],
        ["compare", page.folder / "trace.pcapng", capture, "--html", capture],
        ["shrink", scenario, "--unless", "pages == 1", "--out", scenario],
        ["analyze", page.folder / "trace.pcapng", "--trace", table],
    ]
    for words in commands:
        done = inside(*words)
        assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert [file.read_bytes() for file in kept] == before

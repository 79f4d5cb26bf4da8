"""What an emulation records goes to the disk while it runs: no memory, nobody waits, and a full disk is the end."""

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import airloom as al
from airloom.emulation import emulate, find
from tests.conftest import needs
from tests.emulate.conftest import ALL_CLOSED
from tests.emulate.rights import ourselves

pytestmark = [pytest.mark.emulate, pytest.mark.usefixtures("laboratory")]

#: Sends so many datagrams whenever it reads a line, and says so.
FLOOD = """
import socket, sys
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for line in sys.stdin:
    for _ in range(int(line)):
        out.sendto(bytes(64), ("10.77.0.1", 9))
    print("sent", flush=True)
"""

#: So much the process may grow by while more than a million rows are made after the first million; one million took
#: 168 MB when they were kept.
MOST_GROWTH_KB = 100_000

#: What is freed goes back to the system at once (mallopt(3)). Where processors are busy up to a million rows wait for
#: one, and by itself glibc keeps what those took: a run stayed at 204 MB, with this it came to 98 MB and ended at 71.
GIVES_BACK = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}


def _resident_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def test_memory_does_not_grow_with_what_is_recorded(tmp_path: Path) -> None:
    user = ourselves(tmp_path)
    words = [
        *user.prefix,
        "-m",
        "airloom",
        "emulate",
        "wireline",
        "--set",
        "rate=100Mbit/s",
        "--set",
        "queue=100packets",
    ]
    words += ["--out", "result", "--", sys.executable, "-c", FLOOD]
    pipe, environment = subprocess.PIPE, {**user.environment, **GIVES_BACK}
    with subprocess.Popen(words, cwd=user.folder, env=environment, stdin=pipe, stdout=pipe, text=True) as process:

        def size_after(count: int) -> int:
            assert process.stdin
            assert process.stdout
            process.stdin.write(f"{count}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "sent\n"
            return _resident_kb(process.pid)

        before = size_after(400_000)
        size_after(400_000)
        after = size_after(400_000)
        # Rows that wait for a processor now are not kept either: they are gone when they are written.
        end = time.monotonic() + 60
        while after - before > MOST_GROWTH_KB and time.monotonic() < end:
            time.sleep(0.1)
            after = _resident_kb(process.pid)
        process.communicate(timeout=60)
    rows = pl.scan_parquet(tmp_path / "result" / "packets.parquet").select(pl.len()).collect().item()
    assert rows > 2_500_000
    assert after - before < MOST_GROWTH_KB, (before, after)


def test_somebody_who_is_busy_for_seconds_misses_nothing_and_holds_nobody_up(tmp_path: Path) -> None:
    needs("curl")
    pauses = iter([0.0] * 3 + [2.0] + [0.0] * 100_000)
    command = ["sh", "-c", f"curl -sS -o /dev/null -w '%{{size_download}}' http://origin/5MB; {ALL_CLOSED}"]
    run, code = emulate(
        find("wireline", {"rate": "20Mbit/s", "delay": "5ms"}),
        command,
        out=tmp_path / "result",
        # In the thread that writes, as a disk that takes its time.
        progress=lambda _: time.sleep(next(pauses)),
    )
    assert code == 0
    assert run.summary["records_lost"] == 0
    hosts = run.packets.filter(pl.col("point").str.ends_with(".ip"))
    assert hosts.filter(pl.col("event") == "tx").height == run.summary["packets"]
    assert run.flows["app_bytes_down"].sum() >= 5_000_000
    assert run.flows["resent"].sum() == 0, "the link went on"


def test_tables_have_the_columns_of_a_simulation_and_say_what_made_them(tmp_path: Path) -> None:
    scenario = find("wireline", {"rate": "1Mbit/s", "delay": "1ms"})
    run, _ = emulate(scenario, ["true"], out=tmp_path / "real")
    simulated = scenario.run(out=tmp_path / "virtual")
    for name in ("packets", "flows", "pages", "states"):
        found, expected = (getattr(of, name) for of in (run, simulated))
        assert found.columns == expected.columns, name
        texts = {column for column, kind in expected.schema.items() if kind in (pl.Enum, pl.Categorical, pl.String)}
        kinds = {column: pl.String if column in texts else kind for column, kind in expected.schema.items()}
        assert dict(found.schema) == kinds, name
        metadata = pl.read_parquet_metadata(run.folder / f"{name}.parquet")
        assert json.loads(metadata["airloom.scenario"]) == run.manifest["scenario"]
        assert (metadata["airloom.seed"], metadata["airloom.version"]) == ("1", al.__version__)
    assert not (run.folder / "congestion.parquet").exists()


def test_rows_are_read_in_the_order_of_time(tmp_path: Path) -> None:
    needs("curl")
    # The first connection is over last.
    fetch = "curl -sS -o /dev/null http://origin/"
    command = ["sh", "-c", f"{fetch}400kB & sleep 0.3; {fetch}1kB; wait; {ALL_CLOSED}"]
    run, code = emulate(find("umts-dch"), command, out=tmp_path / "result")
    assert code == 0
    for name, column in (("packets", "t_ns"), ("flows", "open_ns"), ("states", "t_ns")):
        rows = getattr(run, name)
        assert rows.height > 1, name
        assert rows[column].is_sorted(), name
    assert pl.read_parquet(run.folder / "packets.parquet")["t_ns"].is_sorted(), "in the file as well"


@pytest.mark.parametrize("full", ["while it runs", "at its end"])
def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, full: str) -> None:
    unshare, _ = needs("unshare"), needs("curl")
    fetch = "curl -sS -o /dev/null http://origin/20MB"
    # A capture is written at once, the table of a short run when that is over.
    options, command = (["--record", "pcapng"], f"{fetch}; sleep 1000") if full == "while it runs" else ([], fetch)
    words = [sys.executable, "-m", "airloom", "emulate", "wireline", "--set", "delay=1ms", *options]
    words += ["--out", "disk/result", "--", "sh", "-c", command]
    script = f"mkdir disk && mount -t tmpfs -o size=100k none disk && {{ {shlex.join(words)}; echo $?; ls -A disk; }}"
    done = subprocess.run(
        [unshare, "--map-root-user", "--mount", "sh", "-c", script], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout == "4\n", done.stderr
    (line,) = (line for line in done.stderr.splitlines() if not line.startswith("curl: "))
    assert line.startswith("airloom: ")
    assert "No space left on device" in line

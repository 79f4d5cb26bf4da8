"""`make nightly`: which parts run when, in which class, and what is said of them."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from airloom import interpreter
from tools import nightly, run_tests

ROOT = Path(__file__).parent.parent

#: Stands for make: writes down when each part began, in which class (proc_pid_stat (5), policy and nice) and when it
#: ended; `nightly-rust` fails. A shell is up at once even in the class SCHED_IDLE on a busy machine.
MAKE = """\
part=${1#nightly-}; ready=$2; fuzz=$3
set -- $(cat /proc/$$/stat)
case ${41}/${19} in 5/*) how=idle ;; */10) how=nicer ;; *) how="as others" ;; esac
echo "$part begins $how" >> "$NOTES"
[ "$ready" = READY= ] || exit 2
echo "$fuzz"
[ $part != study-umts-proxies ] || sleep 0.3
echo "$part ends" >> "$NOTES"
[ $part != rust ]
"""


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    monkeypatch.setattr(nightly, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(nightly, "ROOT", tmp_path)
    (tmp_path / "make.sh").write_text(MAKE)
    return ["sh", str(tmp_path / "make.sh")]


def test_what_computes_runs_behind_what_looks_at_the_clock(
    make: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nightly.main(["--minutes", "600"], make) == 1
    notes = (tmp_path / "notes").read_text().splitlines()
    began = {part: how for part, _, how in (note.partition(" begins ") for note in notes) if how}
    assert began == {
        **dict.fromkeys(nightly.FRONT, "as others"),
        **dict.fromkeys(nightly.BEHIND, "idle"),
        **dict.fromkeys(nightly.BETWEEN, "nicer"),
    }
    simulated = notes.index("study-umts-proxies ends")
    assert notes.index("python begins as others") < simulated < notes.index("real-umts-proxies begins as others")
    assert notes[-1] in [f"{lane[-1]} ends" for lane in (nightly.FRONT, nightly.BEHIND, nightly.BETWEEN)]
    assert notes.index("clocks ends") < notes.index("peers begins nicer")
    assert notes.index("package ends") < notes.index("study-umts-proxies begins idle")
    assert 35_000 < int((tmp_path / "logs" / "fuzz.log").read_text().removeprefix("FUZZ=")) <= 36_000
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(nightly.PARTS) + 1
    (failed,) = [line for line in lines if "FAILED" in line]
    assert failed.startswith("nightly-rust ")
    assert failed.endswith(os.path.join("logs", "rust.log"))
    assert lines[-1].endswith("; failed: rust")


def test_nobody_waits_for_parts_behind_one_that_cannot_be_begun(make: list[str], tmp_path: Path) -> None:
    night = nightly.Night(600, make)
    (tmp_path / "logs" / f"{nightly.BEHIND[1]}.log").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        night.lane(nightly.BEHIND, run_tests.idle)
    assert [row.part for row in night.rows] == [nightly.BEHIND[0]]
    assert all(night.ended[part].is_set() for part in nightly.BEHIND)


@pytest.mark.parametrize("ended", [signal.SIGTERM, signal.SIGHUP])
def test_a_night_that_is_ended_takes_its_parts_with_it(tmp_path: Path, ended: signal.Signals) -> None:
    part = tmp_path / "make.sh"
    part.write_text('echo $$ > "$(dirname "$0")/$1"; exec sleep 600\n')
    script = f"""
import pathlib, sys
sys.path.insert(0, {str(ROOT)!r})
from tools import nightly
nightly.ROOT = nightly.LOGS = pathlib.Path({str(tmp_path)!r})
nightly.FRONT, nightly.BETWEEN = ("python",), ()
nightly.on_end()
nightly.main([], ["sh", {str(part)!r}])
"""
    with subprocess.Popen(interpreter.python("-c", script), stderr=subprocess.DEVNULL) as process:
        begun = [tmp_path / "nightly-python", tmp_path / f"nightly-{nightly.BEHIND[0]}"]
        while not all(file.exists() and file.read_text() for file in begun):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(ended)
        assert process.wait() == 128 + ended
    assert sorted(tmp_path.glob("nightly-*")) == sorted(begun)
    for file in begun:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)


def test_every_test_program_that_draws_cases_draws_many_at_night() -> None:
    draws = re.compile(r"\bcases\(\d+\)|AIRLOOM_(EPISODES|FUZZ_CASES|TRANSFER)\b")
    files = [*ROOT.glob("crates/*/tests/*.rs"), *ROOT.glob("fuzz/bodies/tests/*.rs")]
    (listed,) = re.findall(r"^RANDOM_TESTS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed.split() == sorted(file.stem for file in files if draws.search(file.read_text()))


def test_every_part_is_a_target_of_the_makefile() -> None:
    read = subprocess.run(["make", "-pn", "menu"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    (listed,) = re.findall(r"^NIGHTLY := (.*)$", read, re.MULTILINE)
    assert sorted(listed.split()) == sorted(f"nightly-{part}" for part in nightly.PARTS)


def test_parts_install_nothing_into_the_environment_that_others_run_in() -> None:
    rules = re.split(r"\n(?=\S)", (ROOT / "Makefile").read_text())
    parts = [rule for rule in rules if re.match(r"(nightly-[a-z]+|\$\((SIMULATED|MEASURED)\)|site):", rule)]
    assert len(parts) > 8
    assert [part for part in parts if "pip install" in part] == []

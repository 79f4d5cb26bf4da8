"""The fuzz targets in Python on their corpora, and on random octets, as many as `AIRLOOM_FUZZ_CASES` says."""

import os
import random
import sys
from pathlib import Path

import pytest

from airloom.study import claims
from airloom.wwp.receiver import Received, Receiver

FUZZ = Path(__file__).parent.parent / "fuzz"
sys.path.insert(0, str(FUZZ / "python"))

import targets  # noqa: E402


@pytest.mark.parametrize("name", targets.TARGETS)
def test_no_target_fails_on_its_corpus_or_on_random_octets(name: str) -> None:
    target = targets.TARGETS[name]
    inputs = [file.read_bytes() for file in (FUZZ / "corpus" / f"py_{name}").iterdir()]
    assert 1 <= sum(map(len, inputs)) <= 100_000
    drawn = random.Random(1)
    cases = int(os.environ.get("AIRLOOM_FUZZ_CASES", "200"))
    for octets in [*inputs, *(drawn.randbytes(drawn.randrange(300)) for _ in range(cases))]:
        target(octets)


def test_files_of_the_corpus_are_taken_by_a_receiver_of_wwp_at_once_or_later(monkeypatch: pytest.MonkeyPatch) -> None:
    resumed_at: set[int] = set()
    receive = Receiver.receive

    def noted(receiver: Receiver) -> Received:
        received = receive(receiver)
        assert received is not None
        resumed_at.add(received.resumed_at)
        return received

    monkeypatch.setattr(Receiver, "receive", noted)
    for file in (FUZZ / "corpus" / "py_wwp_receiver").iterdir():
        targets.wwp_receiver(file.read_bytes())
    assert len(resumed_at) > 1
    assert 0 in resumed_at


def test_a_study_that_begins_with_a_table_is_read_as_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    monkeypatch.setattr(claims, "read", read.append)
    targets.study(b"[paper]\n")
    assert read == [targets.FOLDER / "a.toml"]

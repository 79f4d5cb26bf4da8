"""The fuzz targets in Python on their corpora, and on random octets, as many as `AIRLOOM_FUZZ_CASES` says."""

import os
import random
import sys
from pathlib import Path

import pytest

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

"""Whom tests of several workers go to (`conftest.py`)."""

from conftest import LONGEST
from tests.documents import ROOT


def test_what_takes_longest_is_there() -> None:
    assert [file for file in LONGEST if not (ROOT / file).exists()] == []

"""Whom tests of several workers go to, and who of them stands back (`conftest.py`)."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

import conftest
from tests.documents import ROOT


def test_what_takes_longest_is_there() -> None:
    assert [file for file in conftest.LONGEST if not (ROOT / file).exists()] == []


def test_who_may_not_come_forward_again_does_not_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def refused(_which: int, _who: int, nice: int) -> None:
        asked.append(nice)
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refused)
    worker = SimpleNamespace(workerinput={})
    item: Any = SimpleNamespace(config=worker, nodeid="tests/test_it.py::test_it", get_closest_marker=lambda _: None)
    conftest.pytest_runtest_setup(item)
    assert asked == [conftest._OURS - 1]

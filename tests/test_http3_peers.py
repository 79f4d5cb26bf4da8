"""The runner of other people's HTTP/3."""

import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.documents import ROOT


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(sys, "path", sys.path[:])
    return runpy.run_path(str(ROOT / "conformance" / "http3"))


def test_a_peer_that_cannot_be_built_has_failed_and_is_not_missing(
    runner: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    bench = SimpleNamespace(folder=tmp_path, **dict.fromkeys(("www", "certificate", "key", "authority"), tmp_path))

    def rows() -> tuple[list[list[str]], list[str]]:
        out: list[str] = []
        go = runner["programs"].quic_go(tmp_path)
        found = [*runner["of_clients"](bench, [], go, out), *runner["of_servers"](bench, [], go, out)]
        return [row for row in found if "quic-go" in f"{row[0]} {row[1]}".replace("caddy (quic-go)", "")], out

    found, out = rows()
    assert found == []
    assert {"quic-go as client", "quic-go as server"} <= set(out)
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho 'go: errors parsing go.mod' >&2\nexit 1\n")
    go.chmod(0o755)
    found, out = rows()
    assert [row[2:] for row in found] == [["FAILED: go build: go: errors parsing go.mod", "", "", ""]] * 2
    assert not {"quic-go as client", "quic-go as server"} & set(out)
    assert "errors parsing" in capsys.readouterr().err


@pytest.mark.parametrize(("octets", "says"), [(168, "FAILED: it says nothing"), (450_000, "does not go along")])
def test_a_server_that_says_nothing_is_not_one_that_stays_behind(
    runner: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, octets: int, says: str
) -> None:
    summary = {"first.downlink.bytes": octets, "second.downlink.packets": 0, "mobile.bytes": 0, "mobile.connections": 1}
    emulates = tmp_path / "emulates"
    emulates.write_text(f"mkdir $4\necho '{json.dumps(summary)}' >$4/summary.json\n: >$4/mobile_client.sqlog\n")
    moving = runner["moving"]
    monkeypatch.setattr(moving, "AIRLOOM", ["sh", str(emulates)])
    monkeypatch.setattr(moving, "_has", lambda *_: False)
    server = SimpleNamespace(command=lambda *_: ["server"], env=None, moves=False)
    assert moving.moving(server, 1_000_000)[0] == says

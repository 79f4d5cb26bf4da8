"""The study `streams-today`: when objects were complete, as its captures say, and what equal means."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from airloom.scenario import load
from airloom.study import open_study

STUDY = Path(str(resources.files("airloom"))) / "studies" / "streams-today"
CAPTURE = {"run.record": ["objects", "pcapng"], "run.points": ["mobile.radio.ip"]}


@pytest.fixture(scope="module", autouse=True)
def package() -> None:
    """What lies beside `study.py` can be imported once that is."""
    assert open_study("streams-today").module


def waited(name: str, settings: dict[str, Any], folder: Path) -> list[float]:
    from streams_today.waits import waited as of

    return of(load(STUDY / "scenarios" / f"{name}.toml", {**CAPTURE, **settings}).run(out=folder))


@pytest.mark.parametrize("name", ["http-2", "http-3", "sctp"])
def test_nothing_waits_where_nothing_is_lost_and_a_lost_packet_holds_others_up_in_http_2_alone(
    name: str, tmp_path: Path
) -> None:
    clean = waited(name, {}, tmp_path / "clean")
    assert len(clean) == 8
    assert all(0 <= wait < 1e-6 for wait in clean)
    lossy = waited(name, {"links.internet.loss": 0.05, "run.seed": 3}, tmp_path / "lossy")
    assert (max(lossy) > 0.02) == (name == "http-2"), lossy


def test_frames_of_quic_are_told_apart_by_their_lengths() -> None:
    from streams_today.arrived import stream_frames

    long = bytes([0xC0, 0, 0, 0, 1, 1, 7, 0, 0, 3]) + b"abc"
    frames = bytes([0x02, 5, 0, 1, 5, 0, 2])  # ACK of three ranges' worth of numbers
    frames += bytes([0x06, 0, 2]) + b"hi"  # CRYPTO
    frames += bytes([0x0E, 8, 0x40, 100, 3]) + b"abc"  # STREAM 8 at 100, with a length
    frames += bytes([0x18, 1, 0, 8]) + bytes(8 + 16)  # NEW_CONNECTION_ID
    frames += bytes([0x1F, 0x0B, 4, 1]) + b"x"  # IMMEDIATE_ACK; STREAM 4 at 0, with its end
    frames += bytes([0x08, 12]) + b"to the end"
    short = bytes([0x41]) + bytes(8) + bytes(2) + frames + bytes(16)
    assert list(stream_frames(long + short)) == [(8, 100, 3), (4, 0, 1), (12, 0, 10)]
    assert list(stream_frames(long)) == []


def test_all_scenarios_have_one_page_and_links_that_are_alike() -> None:
    read = {file.stem: load(file).understood for file in (STUDY / "scenarios").glob("*.toml")}
    assert sorted(read) == ["http-1", "http-2", "http-3", "sctp"]
    clients = [next(iter(one["hosts"]["mobile"]["app"]))["http-client"] for one in read.values()]
    assert len({json.dumps(client["pages"]) for client in clients}) == 1
    assert len({json.dumps(one["links"]) for one in read.values()}) == 1

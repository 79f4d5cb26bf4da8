"""What becomes of toxics, without a laboratory."""

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

import airloom as al
from airloom.control import Control
from airloom.toxics import link as links
from airloom.toxics import proxies, relay
from airloom.toxics.link import LinkToxics
from airloom.toxics.toxic import Refused, Toxic, Toxics
from tests.conftest import until


@pytest.mark.parametrize(
    ("kilobytes", "rate"), [(16, "128000bit/s"), (125_000, "1000000000bit/s"), (123.4567, "987654bit/s")]
)
def test_a_bandwidth_of_any_size_is_a_rate_that_links_know(kilobytes: float, rate: str) -> None:
    made: list[dict[str, Any]] = []
    control = SimpleNamespace(set=lambda _target, changes, **_: made.append(changes))
    understood = {"links": {"radio": {"delay": "20ms", "rate": "384kbit/s", "loss": 0}}}
    link = LinkToxics(cast(Control, control), "radio", understood, 1)
    link.add({"type": "bandwidth", "attributes": {"rate": kilobytes}})
    assert made == [{"rate": {"downlink": rate}}]
    al.load("umts-page", {"links.internet.rate": rate})


def test_what_jitter_draws_anew_is_written_down_nowhere_and_goes_on_after_a_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(links, "_REDRAW_S", 0.001)
    kept: list[dict[str, Any]] = []
    drawn: list[dict[str, Any]] = []
    refuses = threading.Event()

    def change(_target: str, changes: dict[str, Any], *, keep: bool) -> None:
        if refuses.is_set():
            raise al.ScenarioError("change: not now")
        (kept if keep else drawn).append(changes)

    understood = {"links": {"radio": {"delay": "20ms", "rate": None, "loss": 0}}}
    link = LinkToxics(cast(Control, SimpleNamespace(set=change)), "radio", understood, 1)
    link.add({"type": "latency", "attributes": {"latency": 100, "jitter": 50}})
    until(lambda: len(drawn) > 100)
    refuses.set()
    with pytest.raises(Refused, match="not now"):
        link.add({"type": "bandwidth", "attributes": {"rate": 10}})
    time.sleep(0.01)
    refuses.clear()
    before = len(drawn)
    until(lambda: len(drawn) > before + 100)
    link.remove("latency_downstream")
    assert len(kept) == 2
    assert kept[1] == {"delay": {"downlink": "20000000ns"}}
    link.close()


def test_delays_that_were_recorded_are_not_taken_away_by_a_toxic() -> None:
    control = SimpleNamespace(set=lambda *_, **__: pytest.fail("it would not come back"))
    understood = {"links": {"radio": {"delay": [[0.0, 20.0], [1.0, 50.0]], "loss": 0}}}
    link = LinkToxics(cast(Control, control), "radio", understood, 1)
    with pytest.raises(Refused, match="delays of its own, which would not come back"):
        link.add({"type": "latency", "attributes": {"latency": 100}})
    assert link.toxics.all() == []


def test_a_toxic_that_is_added_again_begins_anew_on_connections_that_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    toxics = Toxics()
    ends = socket.socketpair()
    pump = relay._Pump(*ends, "downstream", toxics, random.Random(0), threading.Event())
    now = 0.0
    monkeypatch.setattr(relay, "time", SimpleNamespace(monotonic=lambda: now))
    due = []
    for at in (0.0, 9.0, 11.0, 20.0):
        now = at
        if at in (0.0, 11.0):
            toxics.clear()
            toxics.put(Toxic.read({"type": "reset_peer", "attributes": {"timeout": 10_000}}), is_new=True)
        (found,) = pump._now("reset_peer")
        due.append(pump._is_due(found))
    now = 21.0
    assert [*due, pump._is_due(found)] == [False, False, False, False, True]
    for end in ends:
        end.close()


@pytest.mark.parametrize("number", [pytest.param(10**400, id="10**400"), -1, float("inf"), float("nan"), True, "1"])
def test_attributes_are_numbers_that_make_sense(number: object) -> None:
    with pytest.raises(Refused, match="latency is a number") as refused:
        Toxic.read({"type": "latency", "attributes": {"latency": number}})
    assert refused.value.status == 400


@pytest.mark.parametrize("address", ["a..b:80", "\udcff:80", "a:65536", "a:b", "80"])
def test_what_cannot_be_an_address_is_refused(address: str) -> None:
    with pytest.raises(Refused, match="expected HOST:PORT") as refused:
        proxies._address(address, "listen")
    assert refused.value.status == 400


def _connected() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    return near, far


def test_a_client_that_breaks_off_is_not_sent_the_rest_in_slices() -> None:
    toxics = Toxics()
    slices = {"average_size": 1, "delay": 1_000_000}
    toxics.put(Toxic.read({"type": "slicer", "attributes": slices}), is_new=True)
    (client, of_client), (of_upstream, upstream) = _connected(), _connected()
    relayed = (of_client, of_upstream, toxics, random.Random(0))
    relaying = threading.Thread(target=relay._both_ways, args=relayed, daemon=True)
    relaying.start()
    upstream.sendall(bytes(1000))
    assert client.recv(1) == b"\0"
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    relaying.join(60)
    assert not relaying.is_alive()
    for end in (of_client, of_upstream, upstream):
        end.close()


@contextmanager
def _pump() -> Iterator[tuple[relay._Pump, socket.socket, socket.socket]]:
    """One direction of a connection, where it comes from, and who hears what passes."""
    (source, there), (here, sink) = _connected(), _connected()
    yield relay._Pump(there, here, "downstream", Toxics(), random.Random(0), threading.Event()), source, sink
    for end in (source, there, here, sink):
        end.close()


def _add(pump: relay._Pump, kind: str, **attributes: float) -> None:
    pump._toxics.put(Toxic.read({"type": kind, "attributes": attributes}), is_new=True)


@pytest.mark.parametrize("kind", ["timeout", "reset_peer"])
def test_a_connection_on_which_no_data_passes_ends_when_that_is_taken_away(kind: str) -> None:
    with _pump() as (pump, source, sink):
        _add(pump, kind, timeout=1e9)
        source.sendall(b"lost")
        for _ in range(3):
            assert pump._step()
        sink.setblocking(False)
        with pytest.raises(BlockingIOError):
            sink.recv(1)
        pump._toxics.clear()
        with pytest.raises(ConnectionAbortedError):
            pump._step()


def test_data_is_limited_from_when_the_toxic_is_there() -> None:
    with _pump() as (pump, _, sink):
        pump._pass(bytes(5000))
        _add(pump, "limit_data", bytes=1000)
        pump._pass(bytes(400))
        with pytest.raises(ConnectionAbortedError):
            pump._pass(bytes(2000))
        pump._sink.close()
        with sink.makefile("rb") as heard:
            assert len(heard.read()) == 6000


@pytest.mark.parametrize(
    ("kind", "delay", "lasts_s"),
    [("slow_close", 100_000, 100), ("slicer", 50_000_000, 100), ("slow_close", 1e14, 500), ("slicer", 1e14, 500)],
)
def test_a_toxic_that_waits_does_so_for_as_long_as_it_says_and_is_there(
    kind: str, delay: float, lasts_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    with _pump() as (pump, source, sink):

        def wait(seconds: float) -> bool:
            nonlocal now
            now += seconds
            if now > 500:
                pump._toxics.clear()
            return False

        monkeypatch.setattr(relay, "time", SimpleNamespace(monotonic=lambda: now))
        monkeypatch.setattr(pump._broken, "wait", wait)
        _add(pump, kind, average_size=1, delay=delay)
        source.sendall(b"ab")
        source.close()
        pump.run()
        assert lasts_s <= now < lasts_s + 1
        with sink.makefile("rb") as heard:
            assert heard.read() == b"ab"

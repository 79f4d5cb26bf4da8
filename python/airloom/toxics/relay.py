"""Connections on their way over a link: client, link, upstream."""

from __future__ import annotations

import contextlib
import random
import select
import socket
import struct
import threading
import time
from collections.abc import Callable

from airloom.links import Link
from airloom.toxics.toxic import Toxic, Toxics

#: Octets that are read at a time.
_CHUNK = 1 << 16
#: A connection looks so often whether toxics have changed.
_LOOK_S = 0.02
#: How long the opening of a connection may take.
_PATIENCE_S = 60.0
#: Connections of a proxy at a time.
_MOST = 128


class Relay:
    """Takes connections at `listener`, until it is closed, and leads each over the link to `upstream`."""

    def __init__(
        self, link: Link, listener: socket.socket, upstream: tuple[str, int], toxics: Toxics, seed: int
    ) -> None:
        self._link, self._toxics, self._upstream = link, toxics, upstream
        self._listener = listener
        self._far = link._listening(0)
        self._far.listen(_MOST)
        self._seed = seed
        self._count = 0
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(_MOST)
        self._over = threading.Event()
        for work in (self._take_clients, self._take_far):
            threading.Thread(target=work, name="airloom-relay", daemon=True).start()

    def close(self) -> None:
        """Ends it and every connection."""
        self._over.set()
        with self._lock:
            ends = [self._listener, self._far, *self._open]
        for end in ends:
            with contextlib.suppress(OSError):
                # A thread that waits for it wakes up.
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _take_clients(self) -> None:
        while (client := self._accepted(self._listener)) is not None:
            if not self._places.acquire(blocking=False):
                self._forget(client)
                continue
            self._count += 1
            drawn = random.Random(f"{self._seed} {self._count}")
            self._work(self._lead_over, client, drawn)

    def _take_far(self) -> None:
        while (arrived := self._accepted(self._far)) is not None:
            self._work(self._lead_on, arrived)

    def _accepted(self, listener: socket.socket) -> socket.socket | None:
        while not self._over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                if self._over.wait(_LOOK_S):
                    break
                continue
            with self._lock:
                self._open.add(connection)
            return connection
        return None

    @staticmethod
    def _work(do: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=do, args=arguments, name="airloom-relay", daemon=True).start()

    def _lead_over(self, client: socket.socket, drawn: random.Random) -> None:
        """From the client to the far end of the link."""
        try:
            near = self._link.socket()
        except Exception:
            self._forget(client)
            self._places.release()
            return
        with self._lock:
            self._open.add(near)
        try:
            near.settimeout(_PATIENCE_S)
            near.connect((self._link.peer, self._far.getsockname()[1]))
            near.settimeout(None)
            _both_ways(client, near, self._toxics, drawn)
        except OSError:
            pass
        finally:
            self._forget(client, near)
            self._places.release()

    def _lead_on(self, arrived: socket.socket) -> None:
        """From the far end to the upstream, on this machine."""
        try:
            with socket.create_connection(self._upstream, timeout=_PATIENCE_S) as upstream:
                upstream.settimeout(None)
                with self._lock:
                    self._open.add(upstream)
                _both_ways(arrived, upstream, Toxics(), random.Random(0))
                self._forget(upstream)
        except OSError:
            pass
        finally:
            self._forget(arrived)

    def _forget(self, *ends: socket.socket) -> None:
        for end in ends:
            with self._lock:
                self._open.discard(end)
            end.close()


def _both_ways(client: socket.socket, server: socket.socket, toxics: Toxics, drawn: random.Random) -> None:
    """Passes octets on until both directions have come to their end, or something breaks."""
    broken = threading.Event()
    seeds = drawn.random(), drawn.random()
    there = _Pump(client, server, "upstream", toxics, random.Random(seeds[0]), broken)
    back = _Pump(server, client, "downstream", toxics, random.Random(seeds[1]), broken)
    thread = threading.Thread(target=there.run, name="airloom-relay", daemon=True)
    thread.start()
    back.run()
    thread.join()


class _Pump:
    """One direction of a connection, with what is done to its octets."""

    def __init__(
        self,
        source: socket.socket,
        sink: socket.socket,
        stream: str,
        toxics: Toxics,
        drawn: random.Random,
        broken: threading.Event,
    ) -> None:
        self._source, self._sink, self._stream, self._toxics = source, sink, stream, toxics
        self._random, self._broken = drawn, broken
        # Of toxics, by their numbers.
        self._since: dict[int, float] = {}
        self._chosen: dict[int, bool] = {}
        self._silent: set[int] = set()
        self._begun: dict[int, int] = {}
        self._passed = 0

    def run(self) -> None:
        """Until there is no more."""
        try:
            while self._step():
                if self._broken.is_set():
                    return
            for toxic in self._now("slow_close"):
                self._wait(toxic, toxic.attributes["delay"] / 1e3)
            self._sink.shutdown(socket.SHUT_WR)
        except OSError:
            # Whatever broke ends both directions; the sockets are closed when both have.
            self._broken.set()

    def _now(self, kind: str) -> list[Toxic]:
        found = []
        for toxic in self._toxics.of_connections(self._stream):
            if toxic.kind == kind:
                chosen = self._chosen.setdefault(toxic.number, self._random.random() < toxic.toxicity)
                self._since.setdefault(toxic.number, time.monotonic())
                if chosen:
                    found.append(toxic)
        return found

    def _is_due(self, toxic: Toxic) -> bool:
        return time.monotonic() - self._since[toxic.number] >= toxic.attributes["timeout"] / 1e3

    def _step(self) -> bool:
        resets = self._now("reset_peer")
        if any(map(self._is_due, resets)):
            for end in (self._source, self._sink):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raise ConnectionResetError
        silent = self._now("timeout")
        if any(toxic.attributes["timeout"] > 0 and self._is_due(toxic) for toxic in silent):
            raise ConnectionAbortedError
        there = {toxic.number for toxic in (*silent, *resets)}
        if self._silent - there:
            # One was taken away: what it has dropped does not come back.
            raise ConnectionAbortedError
        self._silent = there
        if not _is_ready(self._source, select.POLLIN):
            return True
        octets = self._source.recv(_CHUNK)
        if not octets:
            return False
        if not there:
            self._pass(octets)
        return True

    def _pass(self, octets: bytes) -> None:
        for toxic in self._now("limit_data"):
            begun = self._begun.setdefault(toxic.number, self._passed)
            left = int(toxic.attributes["bytes"]) - (self._passed - begun)
            if left <= len(octets):
                self._send(octets[: max(left, 0)])
                raise ConnectionAbortedError
        slicers = self._now("slicer")
        if not slicers:
            self._send(octets)
        for toxic in slicers[:1]:
            size, variation = toxic.attributes["average_size"], toxic.attributes["size_variation"]
            while octets and not self._broken.is_set():
                length = max(1, int(size + self._random.uniform(-variation, variation))) if size else len(octets)
                self._send(octets[:length])
                octets = octets[length:]
                self._wait(toxic, toxic.attributes["delay"] / 1e6)

    def _wait(self, toxic: Toxic, seconds: float) -> None:
        """Waits so long, or until the toxic is taken away or the connection is over."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._sink.fileno() >= 0:
            if all(other.number != toxic.number for other in self._now(toxic.kind)):
                return
            if self._broken.wait(min(left, _LOOK_S)):
                return

    def _send(self, octets: bytes) -> None:
        self._sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._passed += len(octets)
        left = memoryview(octets)
        while left and not self._broken.is_set():
            if _is_ready(self._sink, select.POLLOUT):
                with contextlib.suppress(BlockingIOError):
                    left = left[self._sink.send(left, socket.MSG_DONTWAIT) :]


def _is_ready(end: socket.socket, event: int) -> bool:
    """Waits a moment. The socket is the source of one direction and the sink of the other: neither sets its timeout."""
    waiting = select.poll()
    try:
        waiting.register(end, event)
    except ValueError:
        raise ConnectionAbortedError from None  # it was closed meanwhile
    return bool(waiting.poll(_LOOK_S * 1000))

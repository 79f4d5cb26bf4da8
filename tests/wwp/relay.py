"""A bad wire between two UDP ports of this machine."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable


class Relay:
    """Passes datagrams on to `to` and back; loses, doubles, reorders and damages some, as its seed says, or all."""

    def __init__(
        self, to: str, *, lose: float = 0.0, double: float = 0.0, swap: float = 0.0, damage: float = 0.0
    ) -> None:
        """The rates are probabilities, each way."""
        host, _, port = to.rpartition(":")
        self._to = (host, int(port))
        self._chances = (lose, lose + double, lose + double + swap)
        self._damage = damage
        self._random = random.Random(1)
        #: Called with each datagram towards the receiver, before it is passed on.
        self.seen: Callable[[bytes], None] | None = None
        self._near = self._socket()
        self._far = self._socket()
        self._client: tuple[str, int] | None = None
        self._held: dict[socket.socket, bytes] = {}
        self._stopped = threading.Event()
        #: Octets that were sent each way: to the receiver, and back.
        self.octets = [0, 0]
        #: After so many datagrams towards the receiver nothing passes any more.
        self.dies_after: int | None = None
        self._passed = 0
        self._threads = [
            threading.Thread(target=self._carry, args=(source, n), daemon=True)
            for n, source in enumerate((self._near, self._far))
        ]

    @staticmethod
    def _socket() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        made.bind(("127.0.0.1", 0))
        made.settimeout(0.1)
        return made

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._near.getsockname()[1]
        return port

    def __enter__(self) -> Relay:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        self._near.close()
        self._far.close()

    def _carry(self, source: socket.socket, way: int) -> None:
        while not self._stopped.is_set():
            try:
                datagram, sender = source.recvfrom(65_536)
            except TimeoutError:
                continue
            self.octets[way] += len(datagram)
            if way == 0:
                self._client = sender
                self._passed += 1
                if self.seen is not None:
                    self.seen(datagram)
            if self.dies_after is not None and self._passed > self.dies_after:
                continue
            if self._random.random() < self._damage:
                bit = self._random.randrange(8 * len(datagram))
                datagram = (int.from_bytes(datagram) ^ 1 << bit).to_bytes(len(datagram))
            drawn = self._random.random()
            lost, doubled, swapped = self._chances
            if drawn < lost:
                continue
            if lost + doubled <= drawn < swapped and source not in self._held:
                self._held[source] = datagram
                continue
            self._pass(way, datagram)
            if lost <= drawn < doubled:
                self._pass(way, datagram)
            if source in self._held:
                self._pass(way, self._held.pop(source))

    def _pass(self, way: int, datagram: bytes) -> None:
        out, to = (self._far, self._to) if way == 0 else (self._near, self._client)
        if to is not None:
            out.sendto(datagram, to)

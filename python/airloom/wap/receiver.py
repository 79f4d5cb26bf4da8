"""A phone that waits for pushes: single datagrams, and those of sessions that gateways ask for."""

from __future__ import annotations

import ipaddress
import math
import queue
import threading
import time
from typing import Self

from airloom._core import WapListener, wap_initiation
from airloom.wap import PUSH_PORT, Client, Push, WapError, parse_gateway

#: What asks for a session.
INITIATION = "application/vnd.wap.sia"

#: How often a thread looks whether it is over.
_LOOK_S = 0.25


class Receiver:
    """Takes pushes at a port, and opens the sessions that gateways ask for to have a push confirmed.

    A gateway is believed if it names its own address, the one that its request came from, or any with `from_anywhere`.
    Sessions are closed when nothing came for `linger_s`.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = PUSH_PORT,
        *,
        from_anywhere: bool = False,
        linger_s: float = 60.0,
        time_s: float = 30.0,
    ) -> None:
        """Listens at once."""
        self._listener = WapListener(host, port)
        self.address = self._listener.address
        self._local = None if ipaddress.ip_address(self.address.rpartition(":")[0].strip("[]")).is_unspecified else host
        self._from_anywhere, self._linger_s, self._time_s = from_anywhere, linger_s, time_s
        self._came: queue.SimpleQueue[Push | str] = queue.SimpleQueue()
        self._over = threading.Event()
        self._sessions: dict[tuple[str, int], threading.Thread] = {}
        #: What went wrong with sessions, a line each.
        self.complaints: list[str] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def next(self, time_s: float = math.inf) -> Push | None:
        """The next push, if one comes in time."""
        until = time.monotonic() + time_s
        while True:
            try:
                push = self._came.get(timeout=min(max(until - time.monotonic(), 0.0), 3600.0))
            except queue.Empty:
                if time.monotonic() < until:
                    continue
                return None
            if isinstance(push, Push):
                return push
            self.complaints.append(push)

    def close(self) -> None:
        """Ends all sessions and stops listening."""
        self._over.set()
        self._thread.join()
        for session in list(self._sessions.values()):
            session.join()

    def __enter__(self) -> Self:
        """The receiver itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Closes it."""
        self.close()

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                came = self._listener.next(_LOOK_S)
            except WapError as error:
                self._came.put(str(error))
                continue
            if came is None:
                continue
            push = Push(*came)
            if push.media == INITIATION:
                self._invited(push)
            else:
                self._came.put(push)

    def _invited(self, push: Push) -> None:
        sender = parse_gateway(push.sender)[0]
        try:
            contacts = [parse_gateway(contact) for contact in wap_initiation(push.body)[2]] or [
                parse_gateway(_bare(sender))
            ]
        except ValueError as error:
            self._came.put(f"{push.sender}: {error}")
            return
        gateway = next((c for c in contacts if self._from_anywhere or c[0] == sender), None)
        if gateway is None:
            self._came.put(f"{push.sender} asks for a session with {contacts[0][0]}, which is somebody else")
            return
        session = self._sessions.get(gateway)
        if session is None or not session.is_alive():
            self._sessions[gateway] = threading.Thread(target=self._hear, args=gateway, daemon=True)
            self._sessions[gateway].start()

    def _hear(self, host: str, port: int) -> None:
        try:
            with Client(host, port, local=self._local, time_s=self._time_s) as wap:
                heard = time.monotonic()
                while not self._over.is_set() and time.monotonic() < heard + self._linger_s:
                    push = wap.push(_LOOK_S)
                    if push is not None:
                        heard = time.monotonic()
                        self._came.put(push)
        except WapError as error:
            self._came.put(f"{host}:{port}: {error}")


def _bare(host: str) -> str:
    return f"[{host}]" if ":" in host else host

"""A phone that waits for pushes: single datagrams, and those of sessions that gateways ask for."""

from __future__ import annotations

import ipaddress
import math
import queue
import threading
import time
from collections import deque

from airloom._core import WapListener, wap_initiation
from airloom.closing import Closing
from airloom.wap import PUSH_PORT, Client, Push, WapError, parse_gateway

#: What asks for a session.
INITIATION = "application/vnd.wap.sia"

#: Sessions that are open at a time, and of these with one host.
MOST_SESSIONS, MOST_OF_A_HOST = 32, 4

#: Pushes that wait to be taken; more are dropped.
_WAITING = 1000

#: How often a thread looks whether it is over.
_LOOK_S = 0.25


class Receiver(Closing):
    """Takes pushes at a port, and opens the sessions that gateways ask for to have a push confirmed.

    A gateway is believed if it names its own address, the one that its request came from, or any with `from_anywhere`.
    Sessions are closed when nothing came for `linger_s`. Of these there are `MOST_SESSIONS` at a time, and of one host
    `MOST_OF_A_HOST`: each is a thread, and asking for one takes a datagram.
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
        self._came: queue.Queue[Push] = queue.Queue(_WAITING)
        self._over = threading.Event()
        self._sessions: dict[tuple[str, int], threading.Thread] = {}
        #: What went wrong with sessions, a line each; the last hundred.
        self.complaints: deque[str] = deque(maxlen=100)
        #: Pushes that nobody took in time.
        self.dropped = 0
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def next(self, time_s: float = math.inf) -> Push | None:
        """The next push, if one comes in time."""
        until = time.monotonic() + time_s
        while True:
            try:
                return self._came.get(timeout=min(max(until - time.monotonic(), 0.0), 3600.0))
            except queue.Empty:
                if time.monotonic() >= until:
                    return None

    def close(self) -> None:
        """Ends all sessions and stops listening."""
        self._over.set()
        self._thread.join()
        for session in list(self._sessions.values()):
            session.join()

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                came = self._listener.next(_LOOK_S)
            except WapError as error:
                self.complaints.append(str(error))
                continue
            if came is None:
                continue
            push = Push(*came)
            if push.media == INITIATION:
                self._invited(push)
            else:
                self._put(push)

    def _put(self, push: Push) -> None:
        try:
            self._came.put_nowait(push)
        except queue.Full:
            self.dropped += 1

    def _invited(self, push: Push) -> None:
        sender = parse_gateway(push.sender)[0]
        try:
            contacts = list(map(parse_gateway, wap_initiation(push.body)[2] or [_bare(sender)]))
        except ValueError as error:
            self.complaints.append(f"{push.sender}: {error}")
            return
        gateway = next((c for c in contacts if self._from_anywhere or c[0] == sender), None)
        if gateway is None:
            self.complaints.append(f"{push.sender} asks for a session with {contacts[0][0]}, which is somebody else")
            return
        self._sessions = {of: session for of, session in self._sessions.items() if session.is_alive()}
        if gateway in self._sessions:
            return
        of_host = sum(host == gateway[0] for host, _ in self._sessions)
        if len(self._sessions) >= MOST_SESSIONS or of_host >= MOST_OF_A_HOST:
            there = f"{of_host} with {gateway[0]}, {len(self._sessions)} in all"
            self.complaints.append(f"{push.sender} asks for one session too many: {there}")
            return
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
                        self._put(push)
        except WapError as error:
            self.complaints.append(f"{host}:{port}: {error}")


def _bare(host: str) -> str:
    return f"[{host}]" if ":" in host else host

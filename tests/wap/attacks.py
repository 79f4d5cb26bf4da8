"""What a stranger would send to a gateway: octets of WTP and WSP, floods, requests in the name of somebody else.

`tools/gateway_attacks.py` measures what each comes to, against a daemon and an origin of its own on loopback.
"""

from __future__ import annotations

import itertools
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from airloom.wap import Client, WapError, parse_gateway

#: Octets of the headers of IPv4 and UDP.
HEADERS = 28


def invoke(tid: int, data: bytes, *, first_of_several: bool = False, largest_group: int | None = None) -> bytes:
    """An Invoke of class 2."""
    option = b"" if largest_group is None else b"\x14\x05\x04" + largest_group.to_bytes(4, "big")
    first = (0x08 if first_of_several else 0x0A) | (0x80 if option else 0)
    return bytes([first]) + tid.to_bytes(2, "big") + b"\x12" + option + data


def acknowledgement(tid: int, psn: int | None = None) -> bytes:
    """An Ack, of a packet of several or of a message of one."""
    named = b"" if psn is None else bytes([0x19, psn])
    return bytes([0x18 if psn is None else 0x98]) + tid.to_bytes(2, "big") + named


def verification(tid: int) -> bytes:
    """An Ack that asks whether a transaction is a new one, and the initiator's that says so (Tve/Tok)."""
    return bytes([0x1C]) + tid.to_bytes(2, "big")


def connect() -> bytes:
    """A session that takes replies of any size, eight at a time, and says how to resume it."""
    capabilities = b"\x02\x80\x00" + b"\x02\x82\x20" + b"\x02\x83\x08"
    return b"\x01\x10" + bytes([len(capabilities), 2]) + capabilities + b"\x80\x80"


def get(url: str) -> bytes:
    """A request for a page, of less than 128 octets."""
    return b"\x40" + bytes([len(url)]) + url.encode()


def uintvar(number: int) -> bytes:
    """Seven bits an octet, the most significant first."""
    octets = bytes([number & 0x7F])
    while number := number >> 7:
        octets = bytes([number & 0x7F | 0x80]) + octets
    return octets


def read_uintvar(octets: bytes) -> int:
    """The number that `octets` begin with."""
    number = 0
    for octet in octets:
        number = number << 7 | octet & 0x7F
        if not octet & 0x80:
            break
    return number


class Stranger(socket.socket):
    """A socket at an address of its own on loopback."""

    def __init__(self, address: str, gateway: str, port: int = 0) -> None:
        """At `address`, speaking to `gateway`."""
        super().__init__(socket.AF_INET, socket.SOCK_DGRAM)
        self.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.bind((address, port))
        self.connect(parse_gateway(gateway))
        self.settimeout(10)

    def ask(self, datagram: bytes) -> bytes:
        """Says something and hears the next answer to that transaction."""
        self.send(datagram)
        return self.hear(datagram)

    def hear(self, datagram: bytes) -> bytes:
        """The next answer to the transaction of `datagram`."""
        while True:
            heard = self.recv(65_536)
            if heard[1:3] == bytes([datagram[1] | 0x80, datagram[2]]):
                return heard

    def open_session(self) -> int:
        """Opens a session; returns its name."""
        asked = invoke(1, connect())
        reply = self.ask(asked)
        while len(reply) == len(verification(1)):
            # The port is one that somebody had before: is transaction 1 a new one? (WAP-224 section 7.8)
            if reply[0] & ~1 == verification(1)[0]:
                self.send(verification(1))
            reply = self.hear(asked)
        assert reply[3] == 2, reply
        self.send(acknowledgement(1))
        return read_uintvar(reply[4:])

    def fetch(self, tid: int, url: str) -> bytes:
        """Asks for a page: its answer, of which each group is acknowledged without a number and then by its end."""
        self.send(invoke(tid, get(url)))
        packets: dict[int, bytes] = {}
        end, whole = -1, False
        while not whole:
            heard = self.recv(65_536)
            kind = heard[0] >> 3 & 0xF
            if heard[2] != tid or kind not in (2, 6):
                continue
            psn, body = (0, heard[3:]) if kind == 2 else (heard[3], heard[4:])
            packets[psn] = body
            if heard[0] & 0b110:  # the trailer of a group, or of the message
                end, whole = psn, heard[0] & 0b110 == 0b010
            if end >= 0 and len(packets) == end + 1:
                self.send(acknowledgement(tid))
                self.send(acknowledgement(tid, end))
            else:
                whole = False
        return b"".join(packets[psn] for psn in sorted(packets))

    def resume(self, tid: int, session: int) -> bytes:
        """Asks to go on with a session: what the gateway says to that, behind the header of WTP."""
        reply = self.ask(invoke(tid, b"\x09" + uintvar(session) + b"\x00"))
        return reply[:1] + reply[3:]


class Worth(NamedTuple):
    """What came from a blind sender, and what its victim was sent for it, in octets with all headers."""

    came: int
    went: int

    @property
    def factor(self) -> float:
        """How many times as much."""
        return self.went / self.came


def reflected(gateway: str, victim: str, url: str, behind: Callable[[int], Iterator[bytes]]) -> Worth:
    """Speaks in the name of a victim that says nothing: a session, two requests, then `behind(tid)` of each."""
    came = went = 0
    with Stranger(victim, gateway) as voice:
        voice.setblocking(False)

        def say(datagram: bytes) -> None:
            nonlocal came
            voice.send(datagram)
            came += HEADERS + len(datagram)

        def wait(seconds: float) -> None:
            nonlocal went
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                try:
                    went += HEADERS + len(voice.recv(65_536))
                except BlockingIOError:
                    time.sleep(0.005)

        say(invoke(1, connect()))
        wait(0.2)
        say(acknowledgement(1))
        for tid in (2, 3):
            say(invoke(tid, get(url), largest_group=1 << 30))
        wait(1)
        for tid in (2, 3):
            for datagram in behind(tid):
                say(datagram)
                wait(0.02)
        wait(1)
    return Worth(came, went)


def nothing(_: int) -> Iterator[bytes]:
    """The requests alone."""
    return iter(())


def ends_of_three(tid: int) -> Iterator[bytes]:
    """Acknowledgements of groups of three packets, as gateways have them who are told nothing else."""
    return (acknowledgement(tid, psn) for psn in range(2, 215, 3))


def guesses(tid: int) -> Iterator[bytes]:
    """Acknowledgements of groups of any length, as luck has it."""
    chance, psn = random.Random(tid), -1
    while (psn := psn + chance.randint(1, 8)) < 215:
        yield acknowledgement(tid, psn)


def nameless(tid: int) -> Iterator[bytes]:
    """Acknowledgements that name no packet, which is no guess, each with a guess behind it."""
    return (each for guess in guesses(tid) for each in (acknowledgement(tid), guess))


#: Sockets of a flood at a time.
MOST_VOICES = 400

#: What a flood sends as its n-th datagram: from which of how many addresses, to which port, what.
Flood = Callable[[int], tuple[int, bool, bytes]]


def first_packets(n: int) -> tuple[int, bool, bytes]:
    """First packets of messages that never go on, from 30 addresses."""
    return n % 30, True, invoke(n % 30_000, bytes(20), first_of_several=True)


def sessions(n: int) -> tuple[int, bool, bytes]:
    """Openings of sessions and their acknowledgements, each from another port."""
    return n // 2, True, invoke(1, connect()) if n % 2 == 0 else acknowledgement(1)


def silent_requests(url: str) -> Flood:
    """Requests without a session of an origin that never answers."""
    return lambda n: (n // 200 % 20, False, bytes([n % 256]) + get(url))


@contextmanager
def flooded(gateway: tuple[str, str], flood: Flood, addresses: int, rate: int) -> Iterator[Callable[[], int]]:
    """A flood of `rate` datagrams a second by strangers at so many addresses; gives how many were sent so far."""
    over = threading.Event()
    sent = 0
    places = [f"127.1.{n // 200}.{1 + n % 200}" for n in range(addresses)]

    def run() -> None:
        nonlocal sent
        with_session: dict[int, Stranger] = {}
        without: dict[int, Stranger] = {}
        began = time.monotonic()
        for n in itertools.count():
            if over.is_set():
                break
            who, has_session, datagram = flood(n)
            voices = with_session if has_session else without
            if who not in voices:
                voices[who] = Stranger(places[who % addresses], gateway[0 if has_session else 1])
                if len(voices) > MOST_VOICES:
                    voices.pop(next(iter(voices))).close()
            with suppress(OSError):
                voices[who].send(datagram)
            sent = n + 1
            if (ahead := n / rate - (time.monotonic() - began)) > 0.002:
                time.sleep(ahead)
        for voice in (*with_session.values(), *without.values()):
            voice.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield lambda: sent
    finally:
        over.set()
        thread.join()


def answered(gateway: str, url: str) -> str:
    """What a client hears that comes now, opens a session and asks for a page: a status, or why there is none."""
    host, port = parse_gateway(gateway)
    try:
        with Client(host, port, time_s=10) as wap:
            return str(wap.get(url, time_s=10).status)
    except WapError as error:
        return str(error)

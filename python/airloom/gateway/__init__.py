"""Devices behind a link: what is connected to an interface of this machine gets its addresses, and its way out, here.

`interfaces` says which interfaces may be taken, `services` is the program in the link's real host that gives addresses
(`dhcp`, `router`), and `Gateway` runs one laboratory after the other as presets are switched.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from ipaddress import IPv4Interface
from typing import IO, Any, NamedTuple

from airloom import _core, interpreter
from airloom.control.desk import Desk
from airloom.control.page import Page
from airloom.errors import RunError
from airloom.gateway import interfaces
from airloom.laboratory import Lab, Program, lab

#: Seconds between two looks, and for the devices' programs to be there and to end.
_LOOK_S, _READY_S, _END_S = 0.2, 30.0, 2.0


class Stretch(NamedTuple):
    """The time behind one preset."""

    preset: str
    summary: dict[str, float]


class Device(NamedTuple):
    """A device that got an address."""

    hardware: str
    address: str
    #: What it calls itself, which may be nothing.
    name: str


class Gateway:
    """Devices of the interface `inside` behind a preset, until it is told to end."""

    def __init__(
        self, inside: str, preset: str, *, overrides: Mapping[str, object] | None = None, seed: int | None = None
    ) -> None:
        """`preset` is what `airloom emulate` takes; `overrides` are keys of it, and of no other that comes later.

        Raises `UsageError` if there is no such preset.
        """
        self.inside = inside
        self._seed = seed
        self._scenario = self._found(preset, overrides)
        self.preset = preset
        self._next: str | None = None
        self._over = threading.Event()
        self._changed = threading.Event()
        self._leases: dict[str, str] = {}
        #: What was, so far.
        self.stretches: list[Stretch] = []

    def _found(self, preset: str, overrides: Mapping[str, object] | None = None) -> Any:
        from airloom.emulation import find

        scenario = find(preset, overrides, outside=True)
        return scenario if self._seed is None else scenario.with_seed(self._seed)

    def switch(self, preset: str) -> None:
        """Another preset, from a moment from now on. Raises an error of ours if there is no such."""
        self._found(preset)
        self._next = preset
        self._changed.set()

    def end(self) -> None:
        """Enough."""
        self._over.set()
        self._changed.set()

    def serve(
        self,
        page: Page | None = None,
        for_devices: Callable[[socket.socket, str], Page] | None = None,
        told: Callable[[Device], None] = lambda _: None,
        began: Callable[[str, str | None], None] = lambda *_: None,
    ) -> None:
        """Serves until the end.

        `page` shows the link, and so does what `for_devices` makes of a listening socket and its address on the
        devices' side; `told` hears of devices, `began` of each preset and where the devices' page is.
        """
        closed = _core.Closed(self.inside)
        try:
            while not self._over.is_set():
                # First: what comes from here on is seen behind the stretch.
                self._changed.clear()
                if self._next is not None:
                    self.preset, self._next = self._next, None
                    self._scenario = self._found(self.preset)
                if not self._over.is_set():
                    self._stretch(page, for_devices, told, began)
        finally:
            closed.open()

    def _stretch(
        self,
        page: Page | None,
        for_devices: Callable[[socket.socket, str], Page] | None,
        told: Callable[[Device], None],
        began: Callable[[str, str | None], None],
    ) -> None:
        with lab(self._scenario, enter=False, lan=self.inside) as link, contextlib.ExitStack() as back:
            program = self._services(link, told)
            back.callback(_end, program)
            desk = Desk(link.control)
            if page is not None:
                page.start(desk)
            address = None
            if for_devices is not None:
                at = str(IPv4Interface(_core.lan_addresses()[0]).ip)
                listening = link.socket()
                listening.bind((at, 80))
                listening.listen()
                shown = for_devices(listening, at)
                back.callback(shown.close)
                shown.start(desk)
                address = shown.address
            began(self.preset, address)
            while not self._changed.wait(_LOOK_S):
                if program.poll() is not None:
                    raise RunError("what gives devices their addresses has ended")
                # Raises if the laboratory is gone.
                link.control.look()
        self.stretches.append(Stretch(self.preset, link.summary))

    def _services(self, link: Lab, told: Callable[[Device], None]) -> Program:
        v4, v6 = _core.lan_addresses()
        what = {"v4": v4, "v6": v6 if interfaces.leads_out_by_ipv6() else None, "leases": list(self._leases.items())}
        words = interpreter.python("-m", "airloom.gateway.services", json.dumps(what))
        program = link.popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        ready = threading.Event()
        assert program.stdout
        reading = (program.stdout, ready, told)
        threading.Thread(target=self._read, args=reading, name="airloom-leases", daemon=True).start()
        if not ready.wait(_READY_S) or program.poll() is not None:
            _end(program)
            raise RunError("what gives devices their addresses did not start")
        return program

    def _read(self, said: IO[str], ready: threading.Event, told: Callable[[Device], None]) -> None:
        with contextlib.suppress(ValueError, OSError):
            for line in said:
                row = json.loads(line)
                if "client" in row:
                    self._leases = {c: a for c, a in self._leases.items() if a != row["address"]}
                    self._leases[row["client"]] = row["address"]
                    told(Device(row["hardware"], row["address"], row["name"]))
                else:
                    ready.set()
        ready.set()


def _end(program: Program) -> None:
    """Lets it say goodbye to the devices."""
    program.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        program.wait(_END_S)

"""A link in user space: real connections and datagrams of this machine over a modelled path, without namespaces.

For containers and machines that forbid them. What a client sends to a port here comes out at its target, and its octets
went over the link by the model's own TCP (or as they are, by UDP). So clients feel the link's rate, delay, outages and
losses; but the kernel's TCP sees none of them, and neither its retransmissions nor its congestion control is tried.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from airloom import _core
from airloom.control import Control
from airloom.errors import RunError, UsageError
from airloom.measures import typed


class Forward(NamedTuple):
    """A port here, and where it leads."""

    #: `tcp` or `udp`.
    kind: str
    #: Where clients come to: address and port; port 0 is any that is free.
    listen: str
    #: Where it leads: a name or address, and a port.
    target: str


class Forwarding:
    """Ports of this machine that lead over a link, for `with`.

    `name` is a preset, a bearer or a scenario; `overrides` sets its keys. In the block `addresses` says where clients
    come to, `control` changes the link; afterwards `summary` has the figures of the run. Raises `UsageError` for what
    cannot be.

    >>> with Forwarding("wireline", [Forward("tcp", "127.0.0.1:0", "127.0.0.1:9")]) as link:
    ...     len(link.addresses)
    1
    """

    def __init__(
        self,
        name: str,
        forwards: Sequence[Forward],
        *,
        overrides: Mapping[str, object] | None = None,
        seed: int | None = None,
    ) -> None:
        from airloom.emulation import find

        scenario = find(name, overrides)
        self.scenario = scenario if seed is None else scenario.with_seed(seed)
        self._forwards = [(one.kind == "tcp", one.listen, _resolved(one)) for one in forwards]
        if not forwards:
            raise UsageError("nothing to forward: name a port and where it leads")
        self._core: _core.Forwarding | None = None
        #: Where clients come to, in the order of the forwards.
        self.addresses: list[str] = []
        #: The figures of the run, once the block is left.
        self.summary: dict[str, float] = {}

    def __enter__(self) -> Self:
        from airloom.links import _ends
        from airloom.reference import addresses

        understood = self.scenario.understood
        near, far = _ends(understood)
        try:
            self._core = _core.Forwarding(self.scenario._core, near, far, addresses(understood, far)[0], self._forwards)
        except ValueError as error:
            raise UsageError(str(error)) from None
        self.addresses = self._core.addresses
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it, and every connection."""
        core, self._core = self._core, None
        if core is not None:
            self.summary = typed(core.stop().summary)

    @property
    def control(self) -> Control:
        """Changes the link while it lasts."""
        if self._core is None:
            raise RunError("a link is there inside its `with` block only")
        return Control(self._core.control)


def _resolved(forward: Forward) -> str:
    """Address and port of the target."""
    host, _, port = forward.target.rpartition(":")
    try:
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise ValueError
        if host == "localhost" and forward.kind == "tcp":
            # Whatever its first address is here; where nobody answers there, ::1 is tried at each connection.
            host = "127.0.0.1"
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    except ValueError:
        raise UsageError(f"--{forward.kind} ..={forward.target}: expected HOST:PORT") from None
    except OSError as error:
        raise UsageError(f"--{forward.kind} ..={forward.target}: {error.strerror or error}") from None
    address = str(found[4][0])
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

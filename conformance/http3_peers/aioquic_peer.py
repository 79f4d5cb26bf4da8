"""aioquic on either side: `serve DIR CERTIFICATE KEY ADDRESS PORT` and `get HOST PORT FILE..`, files by name."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from pathlib import Path
from typing import Any

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve as quic_serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, QuicEvent
from aioquic.quic.logger import QuicFileLogger


class _Speaker(QuicConnectionProtocol):
    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.http = H3Connection(self._quic)

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated):
            self.over(event.reason_phrase)
        for happened in self.http.handle_event(event):
            self.happened(happened)

    def over(self, why: str) -> None:
        """The connection is over."""

    def happened(self, event: H3Event) -> None:
        """Something of HTTP/3 came: a client and a server each do something else about it."""


class Server(_Speaker):
    """Files of a folder."""

    folder = Path()

    def happened(self, event: H3Event) -> None:
        if not isinstance(event, HeadersReceived):
            return
        path = dict(event.headers)[b":path"].decode().lstrip("/")
        file = self.folder / Path(path).name
        found = file.is_file()
        self.http.send_headers(event.stream_id, [(b":status", b"200" if found else b"404"), (b"server", b"aioquic")])
        self.http.send_data(event.stream_id, file.read_bytes() if found else b"", end_stream=True)
        self.transmit()


class Client(_Speaker):
    """Fetches files, all side by side."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.bodies: dict[int, bytearray] = {}
        self.statuses: dict[int, bytes] = {}
        self.waiting: dict[int, asyncio.Future[None]] = {}

    def over(self, why: str) -> None:
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(ConnectionError(why or "the connection ended"))

    def happened(self, event: H3Event) -> None:
        if isinstance(event, HeadersReceived):
            self.statuses.setdefault(event.stream_id, dict(event.headers)[b":status"])
        if isinstance(event, DataReceived):
            self.bodies[event.stream_id] += event.data
        if isinstance(event, HeadersReceived | DataReceived) and event.stream_ended:
            self.waiting[event.stream_id].set_result(None)

    async def get(self, authority: str, file: Path) -> None:
        """Fetches one."""
        stream = self._quic.get_next_available_stream_id()
        self.bodies[stream], self.waiting[stream] = bytearray(), self._loop.create_future()
        lines = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", authority.encode())]
        self.http.send_headers(stream, [*lines, (b":path", b"/" + file.name.encode())], end_stream=True)
        self.transmit()
        await self.waiting[stream]
        if self.statuses[stream] != b"200":
            raise ConnectionError(f"{file.name}: {self.statuses[stream].decode()}")
        file.write_bytes(self.bodies[stream])


def _logger() -> QuicFileLogger | None:
    """What writes qlog, if `QLOGDIR` says where."""
    return QuicFileLogger(folder) if (folder := os.environ.get("QLOGDIR")) else None


async def _serve(folder: str, certificate: str, key: str, address: str, port: str) -> None:
    Server.folder = Path(folder)
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN, quic_logger=_logger())
    configuration.load_cert_chain(certificate, key)
    await quic_serve(address, int(port), configuration=configuration, create_protocol=Server)
    await asyncio.Event().wait()


async def _get(host: str, port: str, *files: str) -> None:
    # Who answers is this machine: the certificate was made for this run.
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE, quic_logger=_logger()
    )
    async with connect(host, int(port), configuration=configuration, create_protocol=Client) as client:
        assert isinstance(client, Client)
        # It asks for more streams than it was given without saying so: as many as servers take, at a time.
        for begin in range(0, len(files), 100):
            wanted = files[begin : begin + 100]
            await asyncio.gather(*(client.get(f"{host}:{port}", Path(file)) for file in wanted))


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[2:]) if sys.argv[1] == "serve" else _get(*sys.argv[2:]))

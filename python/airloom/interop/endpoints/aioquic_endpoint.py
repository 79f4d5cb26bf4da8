"""aioquic as an endpoint of the interop runner: `aioquic_endpoint.py client URL...` or `server`.

What to do is in TESTCASE; files are in /www, /downloads and /certs, logs in /logs. 127: this case is not supported.
"""

import asyncio
import contextlib
import os
import ssl
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated, QuicEvent, StreamDataReceived
from aioquic.quic.logger import QuicFileLogger
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite, SessionTicket

CASE = os.environ.get("TESTCASE", "")
CLIENT = {
    "handshake",
    "transfer",
    "retry",
    "resumption",
    "zerortt",
    "http3",
    "multiconnect",
    "chacha20",
    "keyupdate",
    "v2",
}
SERVER = CLIENT - {"keyupdate"}
UNSUPPORTED = 127
HQ, H3 = "hq-interop", "h3"


def configuration(is_client: bool) -> QuicConfiguration:
    """What both ends and all cases share."""
    found = QuicConfiguration(is_client=is_client, alpn_protocols=[H3 if CASE == "http3" else HQ])
    if keys := os.environ.get("SSLKEYLOGFILE"):
        found.secrets_log_file = open(keys, "a", buffering=1)  # noqa: SIM115, as long as the process
    if folder := os.environ.get("QLOGDIR"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        found.quic_logger = QuicFileLogger(folder)
    if CASE == "chacha20":
        found.cipher_suites = [CipherSuite.CHACHA20_POLY1305_SHA256]
    if CASE == "v2":
        # RFC 9368: begins with version 1; both can do version 2 and the server prefers it.
        v1, v2 = QuicProtocolVersion.VERSION_1, QuicProtocolVersion.VERSION_2
        found.original_version = v1
        found.supported_versions = [v2, v1]
    else:
        found.supported_versions = [QuicProtocolVersion.VERSION_1]
    return found


class Client(QuicConnectionProtocol):
    """Fetches files by HTTP/0.9 or HTTP/3."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._bodies: dict[int, tuple[bytearray, asyncio.Future[bytes]]] = {}
        self._h3 = H3Connection(self._quic) if CASE == "http3" else None

    async def fetch(self, url: str) -> None:
        """Stores the file under /downloads."""
        parts = urlsplit(url)
        stream = self._quic.get_next_available_stream_id()
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._bodies[stream] = bytearray(), answer
        if self._h3:
            head = {":method": "GET", ":scheme": "https", ":authority": parts.netloc, ":path": parts.path}
            headers = [(key.encode(), value.encode()) for key, value in head.items()]
            self._h3.send_headers(stream, headers, end_stream=True)
        else:
            self._quic.send_stream_data(stream, f"GET {parts.path}\r\n".encode(), end_stream=True)
        self.transmit()
        octets = await answer
        (Path("/downloads") / parts.path.lstrip("/")).write_bytes(octets)

    def quic_event_received(self, event: QuicEvent) -> None:
        """Called by the connection."""
        if isinstance(event, ConnectionTerminated):
            for _, answer in self._bodies.values():
                if not answer.done():
                    answer.set_exception(ConnectionError(event.reason_phrase or "the connection ended"))
        elif self._h3:
            for found in self._h3.handle_event(event):
                if isinstance(found, HeadersReceived | DataReceived):
                    self._more(found.stream_id, getattr(found, "data", b""), found.stream_ended)
        elif isinstance(event, StreamDataReceived):
            self._more(event.stream_id, event.data, event.end_stream)

    def _more(self, stream: int, octets: bytes, is_last: bool) -> None:
        if stream in self._bodies:
            body, answer = self._bodies[stream]
            body += octets
            if is_last and not answer.done():
                answer.set_result(bytes(body))


async def _client(urls: list[str]) -> None:
    parts = urlsplit(urls[0])
    settings = configuration(is_client=True)
    settings.verify_mode = ssl.CERT_NONE
    settings.server_name = parts.hostname
    tickets: list[SessionTicket] = []
    came = asyncio.Event()

    def keep(ticket: SessionTicket) -> None:
        tickets.append(ticket)
        came.set()

    def connection(**more: Any) -> Any:
        return connect(
            parts.hostname or "",
            parts.port or 443,
            configuration=settings,
            create_protocol=Client,
            session_ticket_handler=keep,
            **more,
        )

    if CASE == "multiconnect":
        for url in urls:
            async with connection() as client:
                await client.fetch(url)
        return
    if CASE in ("resumption", "zerortt"):
        async with connection() as client:
            await client.fetch(urls.pop(0))
            await asyncio.wait_for(came.wait(), 10)
        settings.session_ticket = tickets[-1]
    # What is sent before the handshake is done is sent as 0-RTT, where the ticket allows it.
    async with connection(wait_connected=CASE != "zerortt") as client:
        if CASE == "keyupdate":
            await client.ping()
            client.request_key_update()
        await asyncio.gather(*map(client.fetch, urls))


class Server(QuicConnectionProtocol):
    """Serves /www by HTTP/0.9 or HTTP/3."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._h3: H3Connection | None = None
        self._asked: dict[int, bytes] = {}

    def quic_event_received(self, event: QuicEvent) -> None:
        """Called by the connection."""
        if isinstance(event, ProtocolNegotiated) and event.alpn_protocol == H3:
            self._h3 = H3Connection(self._quic)
        if self._h3:
            for found in self._h3.handle_event(event):
                if isinstance(found, HeadersReceived):
                    body = _file(dict(found.headers)[b":path"].decode())
                    status = b"404" if body is None else b"200"
                    self._h3.send_headers(found.stream_id, [(b":status", status)])
                    self._h3.send_data(found.stream_id, body or b"", end_stream=True)
                    self.transmit()
        elif isinstance(event, StreamDataReceived) and event.stream_id % 4 == 0:
            line = self._asked[event.stream_id] = self._asked.get(event.stream_id, b"") + event.data
            if event.end_stream:
                del self._asked[event.stream_id]
                body = _file(line.decode(errors="replace").split()[1])
                self._quic.send_stream_data(event.stream_id, body or b"", end_stream=True)
                self.transmit()


def _file(path: str) -> bytes | None:
    file = Path("/www") / Path(path).name
    return file.read_bytes() if file.is_file() else None


async def _server() -> None:
    settings = configuration(is_client=False)
    settings.load_cert_chain("/certs/cert.pem", "/certs/priv.key")
    tickets: dict[bytes, SessionTicket] = {}
    await serve(
        "::",
        443,
        configuration=settings,
        create_protocol=Server,
        retry=CASE == "retry",
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
        session_ticket_handler=lambda ticket: tickets.__setitem__(ticket.ticket, ticket),
    )
    await asyncio.Event().wait()


if __name__ == "__main__":
    role, *requests = sys.argv[1:]
    if CASE not in (CLIENT if role == "client" else SERVER):
        print(f"no case {CASE!r}")
        sys.exit(UNSUPPORTED)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_client(requests) if role == "client" else _server())

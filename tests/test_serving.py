"""Applications of this process that are served."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from airloom.serving import InProcess, Outside


async def _asgi(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    assert scope["type"] == "lifespan"
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no data base"})


async def _no_data_base(_: web.Application) -> None:
    raise OSError("no data base")


def _aiohttp() -> web.Application:
    app = web.Application()
    app.on_startup.append(_no_data_base)
    return app


# What is said in the thread is the application's own.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["asgi", "aiohttp"])
def test_clients_of_an_application_that_does_not_begin_are_refused(kind: str) -> None:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    outside = Outside()
    server = InProcess(_asgi if kind == "asgi" else _aiohttp(), bound, "127.0.0.1", outside)
    try:
        # Before it is known, or after.
        with (
            pytest.raises((ConnectionRefusedError, ConnectionResetError)),
            socket.create_connection((server.address, server.port), 30) as client,
        ):
            client.recv(1)
    finally:
        server.close()
        outside.close()

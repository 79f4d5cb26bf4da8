"""The browser of the simulated network as a program: over this machine's TCP, real or emulated links, real servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from airloom._core import browse as _browse
from airloom.errors import RunError, UsageError
from airloom.measures import typed
from airloom.scenario import toml_value


class Browsed(NamedTuple):
    """What a visit gave. Times are seconds since its beginning."""

    #: Was everything loaded that was to be? Else the time was up, or somebody stopped it.
    done: bool
    #: Results of the browser, as in a run's summary.
    summary: dict[str, float]
    #: A row per page: `page`, `url`, `start_s`, `load_s` (`None` if an object failed), `first_object_s`, `objects`,
    #: `bytes`, `connections`, `failed`.
    pages: list[dict[str, Any]]
    #: A row per object: `page`, `object`, `url`, `known_s`, `asked_s`, `first_byte_s`, `done_s`, `bytes`, `status`,
    #: `connection`, `request`, `failures`, `source`.
    objects: list[dict[str, Any]]


def browse(
    urls: list[str] | None = None,
    settings: Mapping[str, object] | None = None,
    *,
    seed: int = 1,
    nagle: bool = False,
    timeout_s: float = 600.0,
) -> Browsed:
    """Loads `urls` (`http://HOST[:PORT]/PATH`, one page after another), or what `settings` say.

    Settings are those of the application `http-client` (`airloom list apps http-client`), such as
    `{"pipeline": 4, "connections": 2, "page_set": "news.json"}`. `seed` decides what is drawn; `nagle` turns Nagle's
    rule on. Raises `UsageError` for what cannot be used.
    """
    given = {**_asked(urls or []), **(settings or {})}
    if urls and len(given) != len(settings or {}) + 1:
        raise UsageError("pages are said by URLs or by settings, not by both")
    if not urls and not {"page_set", "pages", "objects", "traffic"}.intersection(given):
        raise UsageError("nothing to load: give a URL, or a setting page_set, pages, objects or traffic")
    words = [(key, value if isinstance(value, str) else toml_value(value)) for key, value in given.items()]
    try:
        found = json.loads(_browse(words, seed, nagle, timeout_s))
    except (ValueError, OverflowError) as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise RunError(error.strerror or str(error)) from None
    return Browsed(**{**found, "summary": typed(found["summary"])})


def _asked(urls: list[str]) -> dict[str, object]:
    pages = []
    for url in urls:
        try:
            where = urlsplit(url)
            host, port = where.hostname, where.port
        except ValueError as error:
            raise UsageError(f"{url}: {error}") from None
        if where.scheme != "http" or not host:
            raise UsageError(f"{url}: expected http://HOST/PATH")
        server = f"[{host}]" if ":" in host else host
        path = (where.path or "/") + (f"?{where.query}" if where.query else "")
        pages.append([{"path": path, "server": server if port is None else f"{server}:{port}"}])
    return {"pages": pages} if pages else {}

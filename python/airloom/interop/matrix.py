"""The results as one page: clients down, servers across, a letter for each case."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from itertools import chain
from typing import Any

_STYLE = """
body { font-family: system-ui, sans-serif; margin: 2rem; color: #222; background: #fff }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { border: 1px solid #ccc; padding: .4rem .6rem; text-align: left }
td a[class] { display: inline-block; margin: .1rem; padding: .1rem .4rem; border-radius: .3rem }
td a[class] { color: #fff; text-decoration: none }
.succeeded { background: #1a7f37 } .failed { background: #b3261e } .unsupported { background: #6e7781 }
"""


def page(found: dict[str, Any]) -> str:
    """The page of a result document; each letter leads to the logs of its case."""
    rows = []
    results = map(chain, found["results"], found["measurements"])
    for client in found["clients"]:
        cells = []
        for server in found["servers"]:
            letters = "".join(_letter(result, server, client) for result in next(results))
            cells.append(f"<td>{letters}</td>")
        rows.append(f"<tr><th>{_link(client, found)}</th>{''.join(cells)}</tr>")
    heads = "".join(f"<th>{_link(server, found)}</th>" for server in found["servers"])
    tests = "".join(
        f"<tr><td>{escape(letters)}</td><td>{escape(test['name'])}</td><td>{escape(test['desc'])}</td></tr>"
        for letters, test in found["tests"].items()
    )
    failures = "".join(_failures(found))
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>QUIC interop</title>'
        f"<style>{_STYLE}</style>\n<h1>QUIC interop</h1>\n"
        f"<table><tr><th>client / server</th>{heads}</tr>{''.join(rows)}</table>\n"
        f"{f'<h2>What failed</h2><ul>{failures}</ul>' if failures else ''}\n"
        f"<h2>Tests</h2>\n<table>{tests}</table></html>\n"
    )


#: How a result is marked in text.
_MARKS = {"succeeded": "✅", "failed": "❌", "unsupported": "–"}


def markdown(found: dict[str, Any]) -> str:
    """The same for reading as text: a table with a row for each case, and why what has no mark has none."""
    pairs = [(client, server) for client in found["clients"] for server in found["servers"]]
    columns = [{r["name"]: r for r in both} for both in map(chain, found["results"], found["measurements"])]
    versions = ", ".join(f"{name} {version}".strip() for name, version in found["versions"].items())
    date = datetime.fromtimestamp(found["start_time"], UTC).date()
    lines = [
        "# QUIC interop: who passes what",
        "",
        f"Written by `airloom interop run` as `matrix.md`. {versions}; {date}.",
        "",
        f"| client → server | {' | '.join(f'{client} → {server}' for client, server in pairs)} |",
        f"|---|{':-:|' * len(pairs)}",
    ]
    notes: dict[str, int] = {}
    for test in found["tests"].values():
        cells = []
        for column in columns:
            result = column[test["name"]]
            cell = f"{_MARKS[result['result']]} {result.get('details') or ''}".rstrip()
            if result["why"]:
                cell += f" {notes.setdefault(result['why'], len(notes) + 1)}"
            cells.append(cell)
        lines.append(f"| `{test['name']}` | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{number}. {why}" for why, number in notes.items()), ""])


def _letter(result: dict[str, Any], server: str, client: str) -> str:
    logs = escape(f"{server}_{client}/{result['logs']}/", quote=True)
    says = ": ".join(filter(None, (result["name"], result["result"], result.get("details"), result["why"])))
    shown = escape(result["abbr"])
    if details := result.get("details"):
        shown += f" {escape(details)}"
    return f'<a class="{result["result"]}" href="{logs}" title="{escape(says, quote=True)}">{shown}</a>'


def _failures(found: dict[str, Any]) -> Iterable[str]:
    pairs = [(client, server) for client in found["clients"] for server in found["servers"]]
    both = map(chain, found["results"], found["measurements"])
    for (client, server), results in zip(pairs, both, strict=True):
        for result in results:
            if result["result"] == "failed":
                says = f"{client} with {server}, {result['name']}: {result['why']}"
                yield f"<li>{escape(says)}</li>"


def _link(name: str, found: dict[str, Any]) -> str:
    url = found["urls"].get(name, "")
    return f'<a href="{escape(url, quote=True)}">{escape(name)}</a>' if url.startswith("https://") else escape(name)

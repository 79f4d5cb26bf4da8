"""`airloom wap`: a client of WAP gateways, and documents of WAP. One file per kind of verb."""

from __future__ import annotations

import typer

from airloom.cli.wap import browse, documents, push, requests

app = typer.Typer(no_args_is_help=True)
app.command("get")(requests.get)
app.command("post")(requests.post)
app.command("browse")(browse.browse)
app.command("push")(push.push)
app.command("push-status")(push.push_status)
app.command("push-cancel")(push.push_cancel)
app.command("push-listen")(push.push_listen)
app.command("compile")(documents.compile_)
app.command("decompile")(documents.decompile)

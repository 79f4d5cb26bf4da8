"""`airloom wap`: a client of WAP gateways, and documents of WAP. One file per kind of verb."""

from __future__ import annotations

import typer

from airloom.cli.wap import browse, documents, push, requests

app = typer.Typer(no_args_is_help=True)
app.command("get", help=requests.GET_HELP)(requests.get)
app.command("post", help=requests.POST_HELP)(requests.post)
app.command("browse", help=browse.HELP)(browse.browse)
app.command("push", help=push.PUSH_HELP)(push.push)
app.command("push-status", help=push.STATUS_HELP)(push.push_status)
app.command("push-cancel", help=push.CANCEL_HELP)(push.push_cancel)
app.command("push-listen", help=push.HELP)(push.push_listen)
app.command("compile", help=documents.COMPILE_HELP)(documents.compile_)
app.command("decompile", help=documents.DECOMPILE_HELP)(documents.decompile)

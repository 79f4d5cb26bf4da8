"""The verbs of the command line, in the order and under the headings of `airloom --help`.

A verb's file is imported when the verb is called: the list of them, and the start of each, cost no more than they need.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_group

from airloom.cli.terminal import interruptible


class Verb(NamedTuple):
    """A verb: its file in this folder is called as it is, and has a function of that name or an `app` of several."""

    name: str
    help: str
    #: The function, where its name would hide something.
    function: str = ""
    #: Does another program get the words behind it, options too?
    passes_on: bool = False


HEADINGS: dict[str, tuple[Verb, ...]] = {
    "Simulate": (
        Verb("run", "Simulate a scenario in virtual time and write a result folder."),
        Verb("sweep", "Simulate a range of conditions with many seeds; the same command again goes on with it."),
        Verb("pages", "Page sets for http-client: made up, of a HAR file, of a folder; the files of one."),
    ),
    "Real programs": (
        Verb("emulate", "Run real programs through a scenario, a bearer or a preset, in real time."),
        Verb("load", "Load a page in Chromium over modelled links and proxies, side by side in one report."),
        Verb("browse", "Load pages with airloom's own browser over this machine's TCP."),
        Verb("gateway", "Put the devices on a hotspot or a second port behind a link: phones, consoles."),
        Verb("interop", "The QUIC interop runner's network and cases, between endpoint programs, without containers."),
        Verb("h3", "Fetch files over HTTP/3 from real servers."),
        Verb("wap", "WAP: fetch, browse, push and listen through a gateway; compile documents."),
        Verb("wwp", "Files over WWP, the Wave and Wait Protocol, between real hosts (UDP)."),
        Verb("python", "Run a Python script that may enter laboratories, without being root.", passes_on=True),
    ),
    "Look": (
        Verb("report", "Make one HTML file of a run or a sweep, to be opened with or without a network."),
        Verb("compare", "Say what differs between runs, sweeps, loads or captures, and which packet first."),
        Verb("replay", "Simulate a run again with one setting changed, and name the first packet that differs."),
        Verb("analyze", "Read a capture or a qlog, ours or a foreign one, and say what TCP or QUIC did."),
        Verb("export", "Write a run for other programs: events of its connections (qlog), secrets of its capture."),
        Verb("energy", "Work out what the mobile's radio spent in a run: joules by state."),
        Verb("monitor", "Print the PIAFS frames of a run as a monitor shows them, with TCP's segments between."),
        Verb(
            "list",
            "List bearers, presets, scenarios and so on, the keys of each; what measures mean.",
            function="list_",
        ),
    ),
    "Check": (
        Verb("check", "Read a scenario and say what is wrong with it, or what it means."),
        Verb("gate", "Decide rules over links, for CI: pass, fail, or unclear; JUnit and Markdown."),
        Verb("doctor", "Say what this machine allows, and what to install."),
        Verb("shrink", "Find the fewest losses and timeline changes with which a scenario still fails a test."),
        Verb("validate", "Compare with the real thing: this machine's kernel, and records of others."),
    ),
    "Serve": (Verb("serve", "Serve real clients: the gateways and proxies of the simulated network."),),
    "Research": (Verb("study", "Replicate a paper: make its sweeps, hold every claim against them."),),
}

VERBS = {verb.name: verb for verbs in HEADINGS.values() for verb in verbs}

#: Options of `airloom` itself, which may stand behind the verb too.
_ANYWHERE = re.compile(r"--quiet|--verbose|-[qv]+")


class _Commands(Mapping[str, Any]):
    """The commands of the verbs, each made when it is asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _command(VERBS[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


def _command(verb: Verb) -> Any:
    module = import_module(f"airloom.cli.{verb.name}")
    # The pages of help are plain text: what draws boxes takes longer to import than most commands take to run.
    parent = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    if hasattr(module, "app"):
        parent.add_typer(module.app, name=verb.name, help=verb.help)
    else:
        settings: dict[str, Any] = {}
        if verb.passes_on:
            settings = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}
        function = getattr(module, verb.function or verb.name)
        parent.command(verb.name, help=verb.help, context_settings=settings)(function)
    parent.callback()(lambda: None)
    return get_group(parent).commands[verb.name]


class Verbs(TyperGroup):
    """`airloom` itself."""

    def __init__(self, **attributes: Any) -> None:
        """Whatever is registered: the commands are those of `HEADINGS`."""
        super().__init__(**attributes)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(VERBS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """A section for each heading, the names below each other in all of them."""
        width = max(map(len, VERBS))
        for heading, verbs in HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl([(verb.name.ljust(width), verb.help) for verb in verbs])

    def invoke(self, ctx: Any) -> Any:
        """What a signal leaves is said, where no verb says it."""
        with interruptible():
            return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Options of `airloom` count wherever they stand, but for words that another program gets."""
        ctx.meta["airloom.words"] = args  # for completion (`names`)
        return super().parse_args(ctx, _globals_first(args))


def _globals_first(words: list[str]) -> list[str]:
    verb = next((word for word in words if word in VERBS), None)
    end = len(words)
    if verb is not None and VERBS[verb].passes_on:
        end = words.index(verb)
    elif "--" in words:
        end = words.index("--")
    ours = [word for word in words[:end] if _ANYWHERE.fullmatch(word)]
    others = [word for word in words[:end] if not _ANYWHERE.fullmatch(word)]
    return [*ours, *others, *words[end:]]

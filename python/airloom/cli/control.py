"""`airloom emulate --control`, `--control-page` and `--control-socket`: views of a run's live control."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airloom.cli.terminal import say

if TYPE_CHECKING:
    from airloom.control import Control
    from airloom.control.desk import Desk
    from airloom.scenario import Scenario


@contextmanager
def views(
    scenario: Scenario, at_keyboard: bool, port: int | None, socket: Path | None
) -> Iterator[Callable[[Control], None] | None]:
    """The views that are wanted; they begin when what is given back is called with the control of a run."""
    if not at_keyboard and port is None and socket is None:
        yield None
        return
    from airloom.control.desk import Desk
    from airloom.control.keyboard import keyboard
    from airloom.control.page import Page

    wanted: list[Callable[[Desk], None]] = []
    with ExitStack() as back:
        page = None if port is None else Page(port)
        if page is not None:
            back.callback(page.close)
            wanted.append(page.start)
        if at_keyboard:
            wanted.append(back.enter_context(keyboard()).start)

        def ready(control: Control) -> None:
            desk = Desk(control)
            for start in wanted:
                start(desk)
            if socket is not None:
                back.callback(_socket(scenario, control, socket))
            # Said only now: a scenario that was refused has no page.
            if page is not None:
                say(f"control page: {page.address}")

        yield ready


def _socket(scenario: Scenario, control: Control, path: Path) -> Callable[[], None]:
    """Takes lines of JSON for all links; what is given back ends that."""
    from airloom.toxics.link import LinkToxics
    from airloom.toxics.socket_face import SocketFace

    understood = scenario.understood
    links = {name: LinkToxics(control, name, understood, scenario.seed) for name in understood["links"]}
    face = SocketFace(links, path)

    def close() -> None:
        face.close()
        for link in links.values():
            link.close()

    return close

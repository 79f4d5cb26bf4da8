"""A scenario in real time: real programs in network namespaces, every packet through the same model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from airloom.control import Control, keep
from airloom.errors import Interrupted, UsageError
from airloom.fields import did_you_mean
from airloom.folder import Folder, Progress
from airloom.places import new_place
from airloom.run import check, metadata, save

if TYPE_CHECKING:
    from airloom import _core
    from airloom.run import Run
    from airloom.scenario import Scenario


#: What goes over the links: nanoseconds, octets sent and received so far, packets dropped, PDUs sent again, octets in
#: the longest queue, the radio's state.
Meter = Callable[[int, int, int, int, int, int, str | None], None]


def find(
    name: str,
    overrides: Mapping[str, object] | None = None,
    real: Sequence[str] = (),
    outside: bool = False,
    loopback: Sequence[int] = (),
) -> Scenario:
    """A scenario (file or shipped), else a bearer or a preset with a simulated web server behind it.

    `overrides` sets keys of the scenario, or of the bearer; `outside` adds the way to the outside
    world, `loopback` the one to these TCP ports of this machine's loopback (`host.airloom`). The error guesses what was
    meant, and names the choices of all three.

    >>> find("wpt/3g").understood["links"]["link"]["rate"]["downlink"]
    '1600kbit/s'
    """
    from airloom import reference
    from airloom.presets import presets
    from airloom.scenario import for_bearer, load, shipped, study_of

    bearers = reference.names("bearers")
    is_link = name in bearers or name in presets()
    # Names of studies are looked up last: that takes reading them.
    if Path(name).is_file() or name in shipped() or (not is_link and study_of(name) is not None):
        if is_link:
            raise UsageError(f"{name!r} is a scenario and a bearer or preset: rename the file, or say ./{name}")
        return load(name, overrides, real, outside, loopback)
    if is_link:
        if real:
            raise UsageError(f"--real: {name!r} is a link, its host `mobile` is real already")
        if name in bearers:
            return for_bearer(name, overrides, outside=outside, loopback=loopback)
        preset = presets()[name]
        return for_bearer(preset.bearer, {**preset.keys, **(overrides or {})}, name, outside, loopback)
    guess = did_you_mean(name, [*shipped(), *bearers, *presets()])
    raise UsageError(
        f"nothing called {name!r} to emulate{guess}: no such file; valid scenarios: {', '.join(shipped())}; "
        f"valid bearers: {', '.join(bearers)}; presets: airloom list presets"
    )


def exported(link: str, scenario: Scenario) -> dict[str, str]:
    """What a command behind a link is told of it, by variables of its environment.

    >>> exported("wpt/3g", find("wpt/3g").with_seed(7))["AIRLOOM_SEED"]
    '7'
    """
    return {"AIRLOOM_LINK": link, "AIRLOOM_SEED": str(scenario.seed), "AIRLOOM_RUN": scenario.run_id("real")}


@contextmanager
def told(folder: Folder, *, keys: bool = False) -> Iterator[None]:
    """Programs that are started meanwhile find `QLOGDIR`: their qlogs go into the folder `qlog` of the results.

    With `keys` they find `SSLKEYLOGFILE` as well. What the caller's environment says already stays as it is; a folder
    into which nothing was written is taken away.
    """
    logs = folder.path("qlog")
    logs.mkdir()
    wanted = {"QLOGDIR": str(logs)} | ({"SSLKEYLOGFILE": str(folder.path("tls-keys.log"))} if keys else {})
    added = {name: value for name, value in wanted.items() if not os.environ.get(name)}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
        with suppress(OSError):  # there is something in it
            logs.rmdir()


def emulate(
    scenario: Scenario,
    command: Sequence[str] | None = None,
    *,
    seed: int | None = None,
    out: Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
    meter: Meter | None = None,
    ready: Callable[[Control], None] | None = None,
) -> tuple[Run, int]:
    """Runs `command` in the first real host; the run, and the command's exit code.

    With a command the run lasts as long as that does; without one it ends when the scenario says, and raises `RunError`
    if its applications are not done within `run.limit`. `run.summary["valid"]` is 0 if packets left the model too late
    for the figures to be believed. `meter` is told ten times a second what goes over the links. `ready` gets what
    changes them, once the hosts are there; the folder then has `replay.json` (see `airloom.control`). Programs find
    `QLOGDIR` (`told`). Without `out` each run has a folder of its own; `force` replaces what another one left in `out`.
    """
    if seed is not None:
        scenario = scenario.with_seed(seed)
    identity = scenario.run_id("real")
    place = new_place(scenario.name, identity) if out is None else out
    with Folder(place, identity, force=force, keeps=out is None) as folder:
        words = None if command is None else list(command)
        controls: list[Control] = []

        def tell(core: _core.Control) -> None:
            controls.append(Control(core))
            if ready:
                ready(controls[0])

        with told(folder):
            results = scenario._core.emulate(
                words, folder.path(""), list(metadata(scenario).items()), progress, meter, tell if ready else None
            )
        if results.outcome == "stopped":
            raise Interrupted(f"{scenario.name}: interrupted, nothing was written")
        check(scenario, results)
        code = results.exit_code or 0
        made = keep(controls[0] if controls else None, folder)
        more = {"outcome": results.outcome, "run_command": words, "exit_code": results.exit_code, **made}
        return save(folder, scenario, results, "real", more=more), code

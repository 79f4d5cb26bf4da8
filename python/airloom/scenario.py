"""Scenario files: found by path or by the name of a shipped one, and read by the compiled module."""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloom import _core, fields, studies
from airloom.errors import UsageError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from airloom.run import Run
    from airloom.sweep import Sweep

_log = logging.getLogger(__name__)

#: Octets of a file that are read: more than a scenario may have, which then says so.
_MOST = 9 << 20


def shipped() -> dict[str, str]:
    """Title of each scenario that comes with the package, by name.

    >>> "umts-page" in shipped()
    True
    """
    return _titles(resources.files("airloom") / "scenarios")


def of_studies(study: str | None = None) -> dict[str, str]:
    """Title of each scenario of the shipped studies, or of one of them, by its name: study, slash, scenario.

    >>> list(of_studies("phs-multilink"))[:2]
    ['phs-multilink/burst', 'phs-multilink/calls']
    """
    folder = resources.files("airloom") / "studies"
    return {
        f"{name}/{scenario}": title
        for name in ([study] if study else studies.titles())
        for scenario, title in _titles(folder / name / "scenarios").items()
    }


def _titles(folder: Traversable) -> dict[str, str]:
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return {
        f.name.removesuffix(".toml"): str(tomllib.loads(f.read_text(encoding="utf-8")).get("title", "")) for f in files
    }


def study_of(name: str) -> str | None:
    """The study that a name such as `wave-and-wait/tcp` or `tsaoussidis/tcp` is meant to be of, if there is one.

    >>> study_of("tsaoussidis/tcp"), study_of("wpt/3g")
    ('wave-and-wait', None)
    """
    study, slash, scenario = name.partition("/")
    if not slash or "/" in scenario:
        return None
    if study in studies.titles():
        return study
    # Names by author are in the papers' own tables: reading those takes longer than most scenarios do.
    from airloom.study.folder import authors

    return authors().get(study)


def load(
    name: str | Path,
    overrides: Mapping[str, object] | None = None,
    real: Sequence[str] = (),
    outside: bool = False,
    loopback: Sequence[int] = (),
) -> Scenario:
    """The scenario in the file `name`, or the shipped one of that name; `STUDY/SCENARIO` is one of a study.

    A study goes by its paper's first author too: `tsaoussidis/tcp` is `wave-and-wait/tcp`, as it stands in the study's
    folder; what its sweeps set besides is in `sweep.toml` and `assumptions.toml` there. `overrides` sets keys of the
    file: `{"links.radio.loss.downlink": 0.1}`; the hosts in `real` run real programs when it is emulated. `outside`
    adds a real host `outside` behind the far end: the way to the outside world; `loopback` one by which these TCP ports
    of this machine's loopback are reached, as `host.airloom`. Raises `UsageError` if there is no such file or name.
    """
    text, file = _find(str(name))
    try:
        return parse(_as_understood(text), file, overrides, real, outside, loopback)
    except _core.ScenarioError:
        if other := fields.other_file(text):
            raise UsageError(f"{file} is no scenario, but {other} {file}") from None
        raise


def _as_understood(text: bytes) -> bytes:
    """Of the manifest of a run (`run.json`) the scenario in it, with the run's seed; anything else as it is."""
    if not text.lstrip().startswith(b"{"):
        return text
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(said, dict) or "schema" not in said or not isinstance(scenario := said.get("scenario"), dict):
        return text
    if isinstance(scenario.get("run"), dict) and isinstance(said.get("seed"), int):
        scenario["run"]["seed"] = said["seed"]
    return json.dumps(scenario, ensure_ascii=False).encode()


def parse(
    text: str | bytes,
    file: str = "text",
    overrides: Mapping[str, object] | None = None,
    real: Sequence[str] = (),
    outside: bool = False,
    loopback: Sequence[int] = (),
) -> Scenario:
    """The scenario in `text`; `file` is named in errors.

    Raises `ScenarioError` with file, line, what was found and the valid choices.

    >>> import airloom
    >>> parse("title = 3")
    Traceback (most recent call last):
    airloom._core.ScenarioError: text:1:1: expected a key `hosts`
    """
    octets = text.encode() if isinstance(text, str) else text
    _log.info("reading %s, %d octets", file, len(octets))
    for key, value in (overrides or {}).items():
        _log.debug("set %s = %s", key, value)
    settings = [(key, as_toml(value)) for key, value in (overrides or {}).items()]
    core = _core.Scenario(octets, file, settings, list(real), outside, list(loopback))
    for note in core.notes:
        _say_once(note)
    if outside or loopback:
        # As understood, so that whoever reads it again finds the host that is in no file.
        return Scenario(core, core.understood.encode(), file, {}, ())
    return Scenario(core, octets, file, dict(overrides or {}), tuple(real))


@cache
def _say_once(note: str) -> None:
    """What the writer of a scenario should know: once, however many are read."""
    _log.warning("%s", note)


def for_bearer(
    bearer: str,
    overrides: Mapping[str, object] | None = None,
    name: str | None = None,
    outside: bool = False,
    loopback: Sequence[int] = (),
) -> Scenario:
    """A real host `mobile` behind a link with this bearer, and the simulated server `origin` at 10.77.0.1.

    `overrides` sets keys of the bearer; `name` is what the scenario is called, if not by its bearer.
    """
    settings = [(key, as_toml(value)) for key, value in (overrides or {}).items()]
    core = _core.Scenario.for_bearer(bearer, settings, outside, list(loopback))
    return Scenario(core, core.understood.encode(), (name or bearer).replace("/", "-"), {}, ())


def _find(name: str) -> tuple[bytes, str]:
    path = Path(name)
    if path.is_file():
        try:
            with path.open("rb") as opened:
                return opened.read(_MOST), name
        except OSError as error:
            raise UsageError(f"{name}: {error.strerror}") from None
    resource = resources.files("airloom") / "scenarios" / f"{name}.toml"
    if path.name == name and resource.is_file():
        return resource.read_bytes(), f"{name}.toml"
    if (study := study_of(name)) is not None:
        known = f"{study}/{name.partition('/')[2]}"
        if known in (valid := of_studies(study)):
            folder, scenario = known.split("/")
            file = resources.files("airloom") / "studies" / folder / "scenarios" / f"{scenario}.toml"
            return file.read_bytes(), known
        raise UsageError(f"the study {study} has no scenario {name!r}; valid: {', '.join(valid)}")
    raise UsageError(
        f"no scenario {name!r}: neither a file nor a shipped scenario; valid: {', '.join(shipped())}, "
        "or STUDY/SCENARIO (airloom list scenarios)"
    )


def spoken_by(host: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The transports of a host of a scenario as understood, by name: the first is what its applications connect by."""
    several: Any = host.get("transport") or {}
    return {name: table for one in several for name, table in one.items()} if isinstance(several, list) else several


def as_toml(value: object) -> str:
    """A Python value as it would stand in a scenario file; text stays as it is."""
    return value if isinstance(value, str) else toml_value(value)


def toml_value(value: object) -> str:
    """A Python value as TOML, on one line.

    >>> toml_value({"tcp": {"congestion": "newreno"}, "paths": [1, 2.5, True]})
    '{"tcp" = {"congestion" = "newreno"}, "paths" = [1, 2.5, true]}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml_value(str(key))} = {toml_value(v)}" for key, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, str):
        # JSON's escapes are TOML's too; DEL alone must be escaped in TOML only.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise UsageError(f"{value!r} is nothing that can stand in a scenario")


class Scenario:
    """A network under study, as understood: every default filled in."""

    def __init__(
        self,
        core: _core.Scenario,
        text: bytes,
        file: str,
        overrides: dict[str, object],
        real: tuple[str, ...],
    ) -> None:
        """Use `load` or `parse`."""
        self._core = core
        #: The octets of the file.
        self.text = text
        #: Name: that of the file without folder and suffix.
        self.name = Path(file).stem
        #: The file it was read from.
        self.file = file
        #: The keys that were set besides the file.
        self.overrides = overrides
        #: The hosts that were made real besides the file.
        self.real = real

    @property
    def title(self) -> str:
        """What it is about, one line."""
        return self._core.title

    @property
    def seed(self) -> int:
        """The seed of its runs."""
        return self._core.seed

    @property
    def understood(self) -> dict[str, Any]:
        """The whole scenario with all defaults, as it is kept in `run.json`."""
        return json.loads(self._core.understood)  # type: ignore[no-any-return]

    def run_id(self, clock: str) -> str:
        """Ten hexadecimal digits: the same scenario, seed, version and clock are visibly the same."""
        return self._core.run_id(clock)

    def with_seed(self, seed: int) -> Scenario:
        """The same scenario with another seed."""
        return Scenario(self._core.with_seed(seed), self.text, self.file, self.overrides, self.real)

    def with_keys(self, overrides: Mapping[str, object]) -> Scenario:
        """The same scenario with other values for some keys; the seed is that of the file."""
        return parse(self.text, self.file, {**self.overrides, **overrides}, self.real)

    def run(
        self,
        seed: int | None = None,
        *,
        out: Path | str | None = None,
        force: bool = False,
        plot: bool = False,
        width_mm: float | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Run:
        """Simulates it in virtual time; the result folder is `out`, or one under `runs/` that follows from its inputs.

        `out` may hold the same run; other results in it are replaced with `force` only. With `plot` it draws what
        each layer did, `width_mm` wide in print. `progress` is called now and then with the simulated nanoseconds so
        far.
        """
        from airloom.run import simulate

        place = None if out is None else Path(out)
        return simulate(self, seed, out=place, force=force, plot=plot, width_mm=width_mm, progress=progress)

    def sweep(
        self,
        vary: Mapping[str, Iterable[Any]] | None = None,
        seeds: str | int | Iterable[int] = "1..20",
        *,
        tables: Sequence[str] = ("pages", "flows"),
        folders: bool = False,
        real_time: bool = False,
        command: Sequence[str] | None = None,
    ) -> Sweep:
        """All combinations of the values in `vary`, each with all seeds; `Sweep.run` makes the runs.

        Keys are those of the scenario; values are what may stand there, or tables with a `label`
        (`airloom.sweep.axes`). `tables` are kept of every run besides its summary; `folders` keeps whole run folders
        too. With `real_time` the runs are emulated, with `command` in the first real host.

        >>> load("umts-page").sweep({"links.radio.loss.downlink": [0, 0.05, 0.2]}, seeds="1..20")
        Sweep('umts-page', 3 points x 20 seeds)
        """
        from airloom.sweep import Sweep

        return Sweep(self, vary or {}, seeds, tables=tables, folders=folders, real_time=real_time, command=command)

    def emulate(
        self,
        command: Sequence[str] | None = None,
        *,
        seed: int | None = None,
        out: Path | str | None = None,
        force: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[Run, int]:
        """Runs it in real time with `command` in the first real host; the run, and the command's exit code.

        The result folder is `out`, or a new one under `runs/`. `out` may hold a run of the same scenario, seed and
        version; other results in it are replaced with `force` only.
        """
        from airloom.emulation import emulate

        place = None if out is None else Path(out)
        return emulate(self, command, seed=seed, out=place, force=force, progress=progress)

    def __repr__(self) -> str:
        return f"Scenario({self.name!r}, {self.title!r})"

"""Cases of the QUIC interop runner between two endpoints, without containers: programs in a laboratory.

Each case has a laboratory of its own, with the runner's network, and a folder of logs with the runner's names:
`client`, `server` and `sim` with the captures `trace_node_left.pcap` and `trace_node_right.pcap`.
"""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from airloom._core import DriveError
from airloom.errors import AirloomError, Unsupported, UsageError
from airloom.fields import did_you_mean
from airloom.interop import network, words
from airloom.interop.cases import CASES, MEASUREMENTS, Case, goodput_kbps
from airloom.interop.certificates import make_certificates
from airloom.interop.endpoint import Endpoint
from airloom.interop.split import split_capture
from airloom.interop.traces import Trace, Unreadable
from airloom.laboratory import Lab, Program, lab
from airloom.scenario import load, parse, toml_value

SUCCEEDED, FAILED, UNSUPPORTED = "succeeded", "failed", "unsupported"
#: An endpoint's word for a case that it does not support.
_UNSUPPORTED_CODE = 127
#: How long a server may take until it listens.
_LISTENS_S = 10
#: Within so many seconds a client sends its first packet, also where other programs want the processor.
_BEGINS_S = 3
_PORT = 443
#: Characters of what an endpoint said last.
_LONGEST = 200
_ROOT = Path(__file__).parent / "root.sh"

#: Programs of a plain user may not mount; in a user namespace of their own they may.
_MOUNTS = () if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--mount")

Say = Callable[[str], None]


class Outcome(NamedTuple):
    """What came of a case."""

    result: str
    #: Why it is not `succeeded`.
    why: str = ""
    #: Of a measurement: kbit/s.
    value: float | None = None
    #: Was the network in time? As `airloom emulate` says it.
    verdict: str = ""


class Played(NamedTuple):
    """A case between two endpoints, once or, of a measurement, several times."""

    client: str
    server: str
    case: Case
    outcomes: list[Outcome]
    #: Why earlier tries failed.
    failures: tuple[str, ...] = ()

    @property
    def result(self) -> str:
        """Of all of them."""
        return next((o.result for o in self.outcomes if o.result != SUCCEEDED), SUCCEEDED)

    @property
    def why(self) -> str:
        """What went wrong, if anything did, at earlier tries too."""
        last = next((o.why for o in self.outcomes if o.why), "")
        return "; ".join(filter(None, [*(f"try {n}: {why}" for n, why in enumerate(self.failures, 1)), last]))

    @property
    def details(self) -> str:
        """A measurement's value, as the runner writes it."""
        values = [o.value for o in self.outcomes if o.value is not None]
        if self.result != SUCCEEDED or not values:
            return ""
        spread = statistics.stdev(values) if len(values) > 1 else 0
        return f"{statistics.mean(values):.0f} (± {spread:.0f}) kbps"

    @property
    def more(self) -> str:
        """What is said beside the result."""
        return "; ".join(filter(None, (self.details, self.why)))

    @property
    def folder(self) -> str:
        """Where the logs of the last try are, beside those of other cases."""
        return folder(self.case, len(self.failures) + 1)


def chosen(names: str | None) -> list[Case]:
    """The cases of `handshake,transfer`; all of them but the measurements without names."""
    if names is None:
        return list(CASES)
    known = {case.name: case for case in (*CASES, *MEASUREMENTS)}
    found: dict[str, Case] = {}
    for name in filter(None, (part.strip() for part in names.split(","))):
        if name not in known:
            raise UsageError(f"no test {name!r}{did_you_mean(name, known)}; valid: {', '.join(known)}")
        found[name] = known[name]
    if not found:
        raise UsageError(f"no test named; valid: {', '.join(known)}")
    return list(found.values())


def check_network(scenario: str) -> None:
    """Raises `UsageError` or `ScenarioError` for words that mean nothing, and a file that cases cannot be played on."""
    if not Path(scenario).is_file():
        words.parse(scenario)
    elif wrong := network.lacks(load(scenario).understood):
        raise UsageError(f"{scenario} is not the runner's network: {wrong}; begin with the network.toml of a case")


def folder(case: Case, number: int) -> str:
    """The folder of a try, from 1."""
    return case.name if number == 1 else f"{case.name}-{number}"


def play(
    client: Endpoint, server: Endpoint, case: Case, logs: Path, *, seed: int = 1, scenario: str | None = None
) -> Played:
    """A case between two endpoints; `scenario` is another network than the case's own: words, or a file of one."""
    if not case.repetitions:
        return Played(client.name, server.name, case, [_once(client, server, case, logs, seed, scenario)])
    outcomes: list[Outcome] = []
    for number in range(case.repetitions):
        outcomes.append(_once(client, server, case, logs / str(number + 1), seed + number, scenario))
        if outcomes[-1].result != SUCCEEDED:
            break
    return Played(client.name, server.name, case, outcomes)


def _once(client: Endpoint, server: Endpoint, case: Case, logs: Path, seed: int, scenario: str | None) -> Outcome:
    for endpoint, role in ((client, "client"), (server, "server")):
        if not endpoint.plays(role):
            return Outcome(UNSUPPORTED, f"{endpoint.name} is no {role}")
    network_words, text = _network(scenario or case.scenario, seed)
    (logs / "sim").mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="airloom-interop-") as temporary:
        place = Path(temporary)
        for role in ("client", "server"):
            for name in ("www", "downloads", "root"):
                (place / role / name).mkdir(parents=True)
            (place / role / "hosts").write_text(network.NAMES)
            (logs / role).mkdir()
            (place / role / "logs").symlink_to((logs / role).absolute())
            (place / role / "certs").symlink_to(place / "certs")
        make_certificates(place / "certs", case.chain)
        names = case.make_files(place / "server" / "www", seed)
        (logs / "network.toml").write_text(text + "\n")
        behind = lab(parse(text, f"{network_words.name}.toml"), enter=False, out=place / "run")
        with behind as here:
            for host, program in network.cross_programs(network_words).items():
                # They end with their laboratory.
                here.popen(program, host=host, stdin=subprocess.DEVNULL)
            # Who moves during the handshake is heard no more (RFC 9000, 9): a client that would begin about when its
            # address first changes begins after that, and meets the next change.
            wait = network_words.moves_s if network_words.moves_s <= _BEGINS_S else 0
            outcome = _transfer(here, client, server, case, place, names, logs, time.monotonic() + wait)
        for side, point in network.POINTS.items():
            split_capture(place / "run" / "trace.pcapng", point, logs / "sim" / f"trace_node_{side}.pcap")
        shutil.copy(place / "run" / "summary.json", logs / "sim" / "summary.json")
        verdict = (behind.results.verdict if behind.results else None) or ""
        if outcome.result == SUCCEEDED:
            outcome = _judge(case, place, names, logs)
    outcome = outcome._replace(verdict=verdict)
    (logs / "result.json").write_text(json.dumps(outcome._asdict(), indent=2) + "\n")
    return outcome


def _network(scenario: str, seed: int) -> tuple[words.Words, str]:
    """What the words mean and the scenario they make; a file is one as it is."""
    if Path(scenario).is_file():
        return words.Words(Path(scenario).stem, {}), load(scenario).text.decode()
    meant = words.parse(scenario)
    table = network.scenario(meant, seed)
    return meant, "\n".join(f"{key} = {toml_value(value)}" for key, value in table.items())


def _transfer(
    here: Lab,
    client: Endpoint,
    server: Endpoint,
    case: Case,
    place: Path,
    names: Sequence[str],
    logs: Path,
    begin: float,
) -> Outcome:
    urls = [f"https://{case.host}:{_PORT}/{name}" for name in names]
    end = time.monotonic() + case.timeout_s
    with _running(here, server, "server", case.server, place, [], logs) as serving:
        while not _listens(here):
            if (code := serving.poll()) is not None:
                return _ended(server, code, logs / "server")
            if time.monotonic() > end - case.timeout_s + _LISTENS_S:
                return Outcome(FAILED, f"{server.name} does not listen on UDP port {_PORT} after {_LISTENS_S} s")
            time.sleep(0.02)
        time.sleep(max(begin - time.monotonic(), 0))
        with _running(here, client, "client", case.client, place, urls, logs) as fetching:
            try:
                code = fetching.wait(max(end - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                return Outcome(FAILED, f"not done after {case.timeout_s} s")
            return Outcome(SUCCEEDED) if code == 0 else _ended(client, code, logs / "client")


def _ended(endpoint: Endpoint, code: int, logs: Path) -> Outcome:
    said = (logs / "output.txt").read_text(errors="replace").strip().splitlines()
    why = f": {said[-1][:_LONGEST]}" if said else ""
    if code == _UNSUPPORTED_CODE:
        return Outcome(UNSUPPORTED, f"{endpoint.name} does not support it{why}")
    return Outcome(FAILED, f"{endpoint.name} ended with {code}{why}")


@contextmanager
def _running(
    here: Lab, endpoint: Endpoint, role: str, case: str, place: Path, urls: Sequence[str], logs: Path
) -> Iterator[Program]:
    """An endpoint, until the block is left."""
    env = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "ROLE": role,
        "TESTCASE": case,
        "REQUESTS": " ".join(urls),
        "SSLKEYLOGFILE": "/logs/keys.log",
        "QLOGDIR": "/logs/qlog/",
        # An endpoint may be a module of this very interpreter.
        **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
        **endpoint.variables(role),
    }
    with (logs / role / "output.txt").open("wb") as output:
        words = [*_MOUNTS, "sh", str(_ROOT), str(place / role), *endpoint.words(role, urls)]
        program = here.popen(
            words, host=role, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=env
        )
    try:
        yield program
    finally:
        _end(program)


def _end(program: Program) -> None:
    """Asks it to end, as containers are asked, then ends it."""
    for ask in (program.terminate, program.kill):
        if program.poll() is not None:
            return
        ask()
        try:
            program.wait(3)
        except subprocess.TimeoutExpired:
            continue


def _listens(here: Lab) -> bool:
    """Is the server's port open? Asked of its kernel: no packet goes over the network for that."""
    files = ["/proc/net/udp", "/proc/net/udp6"]
    found = here.run(["cat", *files], host="server", capture_output=True, text=True).stdout
    return re.search(rf"^ *[0-9]+: [0-9A-F]+:{_PORT:04X} ", found, re.MULTILINE) is not None


def _judge(case: Case, place: Path, names: Sequence[str], logs: Path) -> Outcome:
    """Are the files the same, and the packets what the case asks for?"""
    there = {file.name for file in (place / "client" / "downloads").iterdir()}
    if missing := sorted(set(names) - there):
        return Outcome(FAILED, f"{len(missing)} of {len(names)} files are missing")
    if more := sorted(there - set(names)):
        return Outcome(FAILED, f"{more[0]} was not asked for")
    _, wrong, broken = filecmp.cmpfiles(place / "server" / "www", place / "client" / "downloads", names, shallow=False)
    if wrong or broken:
        return Outcome(FAILED, f"{len(wrong) + len(broken)} of {len(names)} files differ")
    logged = (logs / role / "keys.log" for role in ("client", "server"))
    keys = next((file for file in logged if _has_keys(file)), None)
    left, right = (Trace(logs / "sim" / f"trace_node_{side}.pcap", keys) for side in network.POINTS)
    try:
        wrong_packets = case.check(left, right)
    except Unreadable as error:
        return Outcome(UNSUPPORTED, str(error))
    if wrong_packets:
        return Outcome(FAILED, wrong_packets)
    return Outcome(SUCCEEDED, value=goodput_kbps(case, left) if case.repetitions else None)


def _has_keys(file: Path) -> bool:
    return file.is_file() and "SERVER_HANDSHAKE_TRAFFIC_SECRET" in file.read_text(errors="replace")


def run(
    clients: Sequence[Endpoint],
    servers: Sequence[Endpoint],
    cases: Sequence[Case],
    logs: Path,
    *,
    seed: int = 1,
    scenario: str | None = None,
    tries: int = 1,
    say: Say = lambda _: None,
    told: Callable[[int], None] = lambda _: None,
) -> list[Played]:
    """All cases between all pairs; logs go below `logs`, a folder for each. `told` hears how many are done.

    What failed is tried again with another seed, up to `tries` times in all: a handshake that loses a third of its
    packets may have bad luck. A later try is in a folder `CASE-2`. A file as `scenario` keeps its own seed.
    """
    for endpoint in {e.file: e for e in (*clients, *servers)}.values():
        endpoint.prepare(say)
    played: list[Played] = []
    told(0)
    for client in clients:
        for server in servers:
            for case in cases:
                begun = time.monotonic()
                done = _tried(client, server, case, logs / f"{server.name}_{client.name}", seed, scenario, tries)
                played.append(done)
                told(len(played))
                more = f": {done.more}" if done.more else ""
                took = f"{time.monotonic() - begun:.1f} s"
                say(f"{client.name} -> {server.name}  {case.name}: {done.result}{more} ({took})")
    return played


def _tried(
    client: Endpoint, server: Endpoint, case: Case, logs: Path, seed: int, scenario: str | None, tries: int
) -> Played:
    """A case until it has not failed, so often at most; each try has a folder below `logs`."""
    failures: list[str] = []
    while True:
        number = len(failures)
        place = logs / folder(case, number + 1)
        try:
            begin = seed + number * max(case.repetitions, 1)
            done = play(client, server, case, place, seed=begin, scenario=scenario)
        except (Unsupported, UsageError):
            raise
        except (AirloomError, DriveError) as error:
            if getattr(error, "exit_code", None) == Unsupported.exit_code:
                raise
            done = Played(client.name, server.name, case, [Outcome(FAILED, str(error))])
        if done.result != FAILED or number + 1 == tries:
            return done._replace(failures=tuple(failures))
        failures.append(done.why)


def document(
    played: Sequence[Played],
    clients: Sequence[Endpoint],
    servers: Sequence[Endpoint],
    logs: Path,
    times: tuple[float, float],
) -> dict[str, Any]:
    """The results as the runner writes them, with `why`, `verdict` and the folder of the `logs` beside each."""
    cases = {done.case.abbreviation: done.case for done in played}

    def of(client: Endpoint, server: Endpoint, measured: bool) -> list[dict[str, Any]]:
        rows = []
        for done in played:
            if (done.client, done.server) != (client.name, server.name) or bool(done.case.repetitions) is not measured:
                continue
            row: dict[str, Any] = {"abbr": done.case.abbreviation, "name": done.case.name, "result": done.result}
            if measured:
                row["details"] = done.details
            rows.append({**row, "why": done.why, "verdict": done.outcomes[-1].verdict, "logs": done.folder})
        return rows

    pairs = [(client, server) for client in clients for server in servers]
    return {
        "start_time": times[0],
        "end_time": times[1],
        "log_dir": str(logs),
        "servers": [server.name for server in servers],
        "clients": [client.name for client in clients],
        "urls": {endpoint.name: endpoint.url for endpoint in (*clients, *servers)},
        "versions": {endpoint.name: endpoint.version for endpoint in (*clients, *servers)},
        "tests": {letters: {"name": case.name, "desc": case.desc} for letters, case in cases.items()},
        "quic_version": "0x1",
        "results": [of(*pair, False) for pair in pairs],
        "measurements": [of(*pair, True) for pair in pairs],
    }

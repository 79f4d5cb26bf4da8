"""A scenario in real time while Python goes on: programs, and this thread, behind the modelled link.

A laboratory needs no rights where the system lets plain users make user namespaces. Programs are started in it from
anywhere. Entering it with the calling thread is another matter: only root may, or a process that is in a user
namespace already, which a process can become only before it has a second thread: `airloom python SCRIPT` and
`pytest -p airloom` see to that. Outside of laboratories such a process has a network of its own with nothing but
loopback (the kernel would not let it come back to the machine's).
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import selectors
import signal
import socket
import subprocess
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, cast

from airloom import _core
from airloom.control import Control, keep
from airloom.errors import LabError, RunError, UsageError
from airloom.measures import typed

if TYPE_CHECKING:
    from airloom.folder import Folder
    from airloom.run import Run
    from airloom.scenario import Scenario

#: A program, as text for a shell or as a list of words.
Command = str | Sequence[str]

_LONGEST_WAIT_MS = 60_000


def lab(
    name: str | Path | Scenario,
    *,
    seed: int | None = None,
    overrides: Mapping[str, object] | None = None,
    real: Sequence[str] = (),
    host: str | None = None,
    enter: bool = True,
    outside: bool = False,
    loopback: Sequence[int] = (),
    lan: str | None = None,
    out: Path | str | None = None,
    force: bool = False,
) -> Lab:
    """A laboratory for `with`: what `airloom emulate NAME` runs, while the block runs.

    `name` is a scenario (or its name or file), a bearer or a preset; `overrides` sets its keys. In the block this
    thread, and the threads and programs it starts, are in the real host `host` (the first one, unless told), unless
    `enter` is false; `LabError` says so where that is not allowed. With `outside` there is a way to the outside world
    behind the far end (for root, or a plain user with pasta or slirp4netns; `DriveError` says what is missing).
    The TCP ports in `loopback` of this machine's loopback are reached there as `host.airloom`. Devices on this
    machine's interface `lan` are behind the first real host, for root; it gives them no addresses by itself (`airloom
    gateway` does).
    Afterwards `summary` has the figures of the run, and there is a run folder if `out` names one. It may hold a run of
    the same scenario, seed and version; other results are replaced with `force` only.

    >>> import airloom
    >>> with airloom.lab("wireline", seed=7, enter=False) as link:
    ...     link.run(["echo", "hello"], capture_output=True, text=True).stdout
    'hello\\n'
    >>> link.summary["valid"] in (0, 1)
    True
    """
    from airloom.emulation import find
    from airloom.scenario import Scenario, parse

    if isinstance(name, Scenario):
        if outside or loopback:
            raise UsageError("outside, loopback: give `lab` the scenario's name, or load it with these")
        scenario = name
        if overrides or real:
            keys, hosts = {**name.overrides, **(overrides or {})}, (*name.real, *real)
            scenario = parse(name.text, name.file, keys, hosts)
            if "run.seed" not in (overrides or {}):
                scenario = scenario.with_seed(name.seed)
    else:
        scenario = find(str(name), overrides, real, outside, loopback)
    if seed is not None:
        scenario = scenario.with_seed(seed)
    return Lab(scenario, host, enter, None if out is None else Path(out), force, lan)


class Lab:
    """A laboratory; see `lab`."""

    def __init__(
        self,
        scenario: Scenario,
        host: str | None,
        enter: bool,
        out: Path | None,
        force: bool,
        lan: str | None = None,
    ) -> None:
        """Use `lab`."""
        self._lan = lan
        self.scenario = scenario
        self._host = host
        self._enter = enter
        self._out = out
        self._force = force
        self._core: _core.Lab | None = None
        self._outside: _core.Outside | None = None
        self._folder: Folder | None = None
        self._control: Control | None = None
        #: Is there to be a run folder as well when the block ends with an error? A test that fails is one.
        self._keeps_failures = False
        # Also of those that nobody else holds: they go on, as those of `subprocess` do.
        self._programs: set[Program] = set()
        #: The figures of the run, once the block is left.
        self.summary: dict[str, float] = {}
        #: The run, once the block is left, if a folder was asked for.
        self.results: Run | None = None

    def __enter__(self) -> Self:
        """Makes the laboratory, and enters it."""
        if self._enter and not _core.rights()[1]:
            raise LabError(
                "this process may not enter a laboratory: start it with `airloom python SCRIPT` or "
                "`pytest -p airloom`, or as root; `lab(..., enter=False)` works here, with its `run` and `popen`"
            )
        place, facts = None, list[tuple[str, str]]()
        if self._out is not None:
            from airloom.folder import Folder
            from airloom.run import metadata

            self._folder = Folder(self._out, self.scenario.run_id("real"), force=self._force)
            self._folder.__enter__()
            place, facts = self._folder.path(""), list(metadata(self.scenario).items())
        try:
            self._core = _core.Lab(self.scenario._core, place, facts, self._lan)
            self._control = Control(self._core.control)
            self._host = self._host or self._core.hosts[0]
            if self._enter:
                self._outside = self._core.enter(self._host)
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        """Leaves it, ends every program in it, and reads the figures."""
        if self._outside is not None:
            self._outside.leave()
            self._outside = None
        core, self._core = self._core, None
        folder, self._folder = self._folder, None
        programs, self._programs = self._programs, set()
        for program in programs:
            # Whoever has hold of one has hold of the laboratory.
            program._end()
        try:
            results = core.stop() if core else None
            if results is not None:
                self.summary = typed(results.summary)
                if folder and (kind is None or self._keeps_failures):
                    from airloom.run import save

                    more = {"outcome": results.outcome, **keep(self._control, folder)}
                    self.results = save(folder, self.scenario, results, "real", more=more)
        finally:
            if folder:
                folder.__exit__(kind, *rest)

    @property
    def hosts(self) -> dict[str, list[str]]:
        """The addresses of every host, real or simulated, by name."""
        from airloom.reference import addresses_of_all

        return addresses_of_all(self.scenario.understood)

    @property
    def control(self) -> Control:
        """Changes its links while it lasts, and says how they are: `lab.control.change("radio", state="down")`.

        The run folder, if there is one, then has `replay.json`: the scenario whose timeline makes the same changes.
        """
        if self._control is None:
            raise RunError("a laboratory is there inside its `with` block only")
        return self._control

    def popen(
        self,
        command: Command,
        *,
        host: str | None = None,
        stdin: int | IO[Any] | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
        env: Mapping[str, str] | None = None,
        text: bool = False,
    ) -> Program:
        """Starts a program in a real host (the first one, unless told), as `subprocess.Popen` would here.

        Text is for a shell, a list is a program and its arguments. The program has this process's working directory. It
        goes on until it ends, or the block does, whether anybody holds what is returned or not.
        """
        if self._core is None:
            raise RunError("a laboratory is there inside its `with` block only")
        words = ["/bin/sh", "-c", command] if isinstance(command, str) else [os.fspath(word) for word in command]
        self._programs.difference_update([one for one in list(self._programs) if one.poll() is not None])
        program = Program(self._core, host or self._host or "", words, (stdin, stdout, stderr), env, text)
        self._programs.add(program)
        return program

    def socket(
        self, host: str | None = None, *, family: int = socket.AF_INET, type: int = socket.SOCK_STREAM
    ) -> socket.socket:
        """A TCP or UDP socket of this process in a real host (the first one, unless told).

        What goes through it goes over the links, wherever its thread is. That takes no rights: `enter=False` will do.
        Names are looked up where the thread is; addresses work everywhere.
        """
        if self._core is None:
            raise RunError("a laboratory is there inside its `with` block only")
        if family not in (socket.AF_INET, socket.AF_INET6) or type not in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            raise UsageError("a socket in a laboratory is one of TCP or UDP, over IPv4 or IPv6")
        streams, six = type == socket.SOCK_STREAM, family == socket.AF_INET6
        return socket.socket(fileno=self._core.socket(host or self._host or "", streams, six))

    def run(
        self,
        command: Command,
        *,
        host: str | None = None,
        input: str | bytes | None = None,
        capture_output: bool = False,
        text: bool = False,
        timeout: float | None = None,
        check: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[Any]:
        """Runs a program in a real host to its end, as `subprocess.run` would here."""
        pipe = subprocess.PIPE if capture_output else None
        stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
        with self.popen(command, host=host, stdin=stdin, stdout=pipe, stderr=pipe, env=env, text=text) as program:
            try:
                out, err = program.communicate(input, timeout)
            except subprocess.TimeoutExpired:
                program.kill()
                raise
        done = subprocess.CompletedProcess[Any](command, program.returncode or 0, out, err)
        if check:
            done.check_returncode()
        return done


class Program:
    """A program in a laboratory: what of `subprocess.Popen` people use."""

    def __init__(
        self,
        core: _core.Lab,
        host: str,
        words: list[str],
        standard: tuple[int | IO[Any] | None, int | IO[Any] | None, int | IO[Any] | None],
        env: Mapping[str, str] | None,
        text: bool,
    ) -> None:
        """Use `Lab.popen`."""
        self.args = words
        self.returncode: int | None = None
        #: Ends of pipes, where `subprocess.PIPE` was asked for.
        self.stdin: IO[Any] | None = None
        self.stdout: IO[Any] | None = None
        self.stderr: IO[Any] | None = None
        # What `communicate` has yet to write, once it was called, and what it has read.
        self._left: memoryview | None = None
        self._read = defaultdict[IO[Any], bytearray](bytearray)
        given: list[int] = []
        borrowed: list[int] = []
        try:
            for number, what in enumerate(standard):
                if what is None:
                    given.append(number)
                elif what == subprocess.STDOUT and number == 2:
                    given.append(given[1])
                elif what == subprocess.DEVNULL:
                    borrowed.append(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
                    given.append(borrowed[-1])
                elif what == subprocess.PIPE:
                    read, write = os.pipe()
                    theirs, ours = (read, write) if number == 0 else (write, read)
                    borrowed.append(theirs)
                    given.append(theirs)
                    file: IO[Any] = open(ours, "wb" if number == 0 else "rb", buffering=-1)  # noqa: SIM115
                    if text:
                        file = io.TextIOWrapper(file, write_through=True)
                    setattr(self, ("stdin", "stdout", "stderr")[number], file)
                else:
                    given.append(what if isinstance(what, int) else what.fileno())
            variables = [(os.fsencode(k), os.fsencode(v)) for k, v in (os.environ if env is None else env).items()]
            self._core = core.start(host, words, variables, (given[0], given[1], given[2]))
        except BaseException:
            for file_ in (self.stdin, self.stdout, self.stderr):
                if file_:
                    file_.close()
            raise
        finally:
            for fd in borrowed:
                os.close(fd)

    def poll(self) -> int | None:
        """Its exit code, if it has ended; negative after a signal."""
        return self._wait(0)

    def _wait(self, milliseconds: int) -> int | None:
        if self.returncode is None:
            self.returncode = self._core.wait(milliseconds)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end; `subprocess.TimeoutExpired` if that takes longer."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = _LONGEST_WAIT_MS if end is None else max(0, round((end - time.monotonic()) * 1000))
            # In steps, so that Ctrl-C is heard.
            if self._wait(min(left, 100)) is None and left == 0:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def communicate(self, input: str | bytes | None = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Writes `input`, reads everything, and waits for the end.

        After `subprocess.TimeoutExpired` it may be called again, without `input`: nothing is lost.
        """
        end = None if timeout is None else time.monotonic() + timeout
        if self._left is None:
            self._left = memoryview(input.encode() if isinstance(input, str) else input or b"")
        elif input:
            raise ValueError("communicate: the first call had the input")
        # No thread: what a thread reads cannot be closed when a signal ends the waiting.
        with selectors.DefaultSelector() as open_ends:
            for pipe in (self.stdin, self.stdout, self.stderr):
                if pipe and not pipe.closed:
                    open_ends.register(pipe, selectors.EVENT_WRITE if pipe is self.stdin else selectors.EVENT_READ)
            while open_ends.get_map():
                if end is not None and time.monotonic() > end:
                    raise self._expired(timeout)
                for key, _ in open_ends.select(None if end is None else max(end - time.monotonic(), 0)):
                    file = cast("IO[Any]", key.fileobj)
                    if file is self.stdin:
                        with contextlib.suppress(BrokenPipeError):
                            self._left = self._left[os.write(key.fd, self._left[: select.PIPE_BUF]) :]
                            if self._left:
                                continue
                    elif octets := os.read(key.fd, 1 << 16):
                        self._read[file] += octets
                        continue
                    open_ends.unregister(file)
                    file.close()
        try:
            self.wait(None if end is None else max(end - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            raise self._expired(timeout) from None
        return self._whole(self.stdout), self._whole(self.stderr)

    def _expired(self, timeout: float | None) -> subprocess.TimeoutExpired:
        so_far = [bytes(self._read[pipe]) if pipe else None for pipe in (self.stdout, self.stderr)]
        return subprocess.TimeoutExpired(self.args, timeout or 0, *so_far)

    def _whole(self, file: IO[Any] | None) -> Any:
        if file is None:
            return None
        octets = bytes(self._read[file])
        return io.TextIOWrapper(io.BytesIO(octets)).read() if isinstance(file, io.TextIOBase) else octets

    def send_signal(self, number: int) -> None:
        """Sends a signal to the program and its process group."""
        if self.returncode is None:
            self._core.signal(number)

    def terminate(self) -> None:
        """Asks it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it."""
        self.send_signal(signal.SIGKILL)

    def _end(self) -> None:
        """Tells it to end, and does not wait for long."""
        code = self._wait(1)
        self._core.close()
        self.returncode = -signal.SIGKILL if code is None else code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Closes its pipes and waits for its end; after an error it is told to end."""
        for file in (self.stdin, self.stdout, self.stderr):
            if file:
                file.close()
        if kind is None:
            self.wait()
        else:
            self._end()

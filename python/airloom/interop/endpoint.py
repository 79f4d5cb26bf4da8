"""Endpoint programs: small TOML files that say how a QUIC implementation is had, and run as client and as server.

```toml
name = "mine"
url = "https://example.org/mine"
version = "1.2"                                      # where its module does not say
needs = ["cargo"]                                    # programs that `setup` takes
module = "mine"                                      # of Python: not set up where this interpreter has it
setup = [["cargo", "install", "--root", "{cache}", "mine"]]
makes = ["{cache}/bin/mine"]                         # what is there afterwards
[client]
command = ["{cache}/bin/mine", "--to", "/downloads", "{requests}"]
env = { LOG = "debug" }
[server]
command = ["{cache}/bin/mine", "--serve", "/www"]
```

`{cache}` is a folder of its own, `{here}` that of the file, `{python}` this interpreter, `{env}` the one that
has `module`: this one, or `{cache}/bin/python`; `{requests}` are the URLs, each a word. The environment is that of the
runner's containers: ROLE, TESTCASE, REQUESTS, SSLKEYLOGFILE, QLOGDIR. Exit code 127 says that a case is not supported.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from airloom import fields, interpreter
from airloom.errors import Unsupported, UsageError
from airloom.fields import did_you_mean
from airloom.programs import how_to_install, path_of

_KEYS = ("name", "url", "version", "needs", "module", "setup", "setup_env", "makes", "client", "server")
_ROLE_KEYS = {"command", "env"}


class Endpoint(NamedTuple):
    """An implementation."""

    name: str
    url: str
    #: Its file.
    file: Path
    table: dict[str, Any]

    @property
    def version(self) -> str:
        """Of the implementation, if it is known."""
        if self._is_here():
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                return importlib.metadata.version(str(self.table["module"]))
        return str(self.table.get("version", ""))

    @property
    def cache(self) -> Path:
        """Its own folder, for what is built once: another one for each version of its file."""
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        version = hashlib.sha256(self.file.read_bytes()).hexdigest()[:10]
        return base / "airloom" / "endpoints" / f"{self.name}-{version}"

    def plays(self, role: str) -> bool:
        """Has it a `client`, or `server`?"""
        return role in self.table

    def words(self, role: str, requests: Sequence[str]) -> list[str]:
        """Program and arguments."""
        return self._filled(self.table[role]["command"], requests)

    def variables(self, role: str) -> dict[str, str]:
        """Variables of its own."""
        env: Mapping[str, str] = self.table[role].get("env", {})
        return {name: self._filled([str(value)])[0] for name, value in env.items()}

    def _filled(self, words: Sequence[str], requests: Sequence[str] = ()) -> list[str]:
        own = interpreter.python()
        env = own if self._is_here() else [str(self.cache / "bin" / "python"), "-P"]
        several = {"{requests}": requests, "{python}": own, "{env}": env}
        found: list[str] = []
        for word in words:
            one = word.replace("{cache}", str(self.cache)).replace("{here}", str(self.file.parent))
            found += several.get(word, [one])
        return found

    def _is_here(self) -> bool:
        """Has this interpreter its module?"""
        if "module" in self.table:
            # Of a module in a package the package is imported.
            with contextlib.suppress(ImportError):
                return importlib.util.find_spec(str(self.table["module"])) is not None
        return False

    def prepare(self, say: Callable[[str], None]) -> None:
        """Builds it, if that was not done before; `Unsupported` says what is missing."""
        made = [Path(name) for name in self._filled(self.table.get("makes", []))]
        if self._is_here() or self._is_there(made):
            return
        for program in self.table.get("needs", []):
            if path_of(program) is None:
                raise Unsupported(f"endpoint {self.name}: {program} is not installed: {how_to_install(program)}")
        self.cache.mkdir(parents=True, exist_ok=True)
        env = {
            **os.environ,
            **{key: self._filled([str(value)])[0] for key, value in self.table.get("setup_env", {}).items()},
        }
        with (self.cache.parent / f".{self.cache.name}.lock").open("w") as lock:
            # Another run may be building it at this moment.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._is_there(made):
                return
            say(f"{self.name}: built once, into {self.cache}")
            for step in self.table.get("setup", []):
                words = self._filled(step)
                done = subprocess.run(
                    words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
                )
                if done.returncode:
                    shutil.rmtree(self.cache, ignore_errors=True)
                    last = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
                    raise Unsupported(f"endpoint {self.name}: `{' '.join(words)}` failed: {last}")
            (self.cache / ".built").touch()
        if not self._is_there(made):
            raise Unsupported(f"endpoint {self.name}: its setup made no {made[0]}")

    def _is_there(self, made: Sequence[Path]) -> bool:
        is_built = not self.table.get("setup") or (self.cache / ".built").exists()
        return is_built and all(file.exists() for file in made)


def shipped() -> dict[str, Path]:
    """The endpoints that come with the package."""
    folder = resources.files("airloom") / "interop" / "endpoints"
    return {Path(str(file)).stem: Path(str(file)) for file in folder.iterdir() if file.name.endswith(".toml")}


def find(name: str) -> Endpoint:
    """The shipped endpoint of that name, or the one in a file."""
    known = shipped()
    file = known.get(name) or Path(name)
    if not file.is_file():
        guess = did_you_mean(name, known)
        raise UsageError(f"no endpoint {name!r}{guess}; shipped: {', '.join(sorted(known))}; or a TOML file")
    return read(file)


def read(file: Path) -> Endpoint:
    """The endpoint that a file describes; `UsageError` says what is wrong with it."""
    table = fields.read_toml(file)
    fields.check(table, _KEYS, str(file))
    roles = [role for role in ("client", "server") if role in table]
    if not roles:
        raise UsageError(f"{file}: it has neither [client] nor [server]")
    for role in roles:
        if not isinstance(table[role], dict) or table[role].keys() - _ROLE_KEYS:
            raise UsageError(f"{file}: [{role}] has `command`, and `env` perhaps")
        if not _is_words(table[role].get("command")) or not table[role]["command"]:
            raise UsageError(f"{file}: {role}.command: expected a program and its arguments, a list of texts")
        fields.table(table[role], "env", f"{file}: {role}")
    fields.table(table, "setup_env", str(file))
    if "module" in table and not all(part.isidentifier() for part in str(table["module"]).split(".")):
        raise UsageError(f"{file}: module: {table['module']!r} is no name of a module of Python")
    for key in ("needs", "makes"):
        if not _is_words(table.get(key, [])):
            raise UsageError(f"{file}: {key}: expected a list of texts")
    steps = table.get("setup", [])
    if not isinstance(steps, list) or not all(_is_words(step) and step for step in steps):
        raise UsageError(f"{file}: setup: expected commands, each a list of texts")
    name = str(table.get("name", file.stem))
    if "/" in name or name in ("", ".", "..") or "_" in name[:1]:
        raise UsageError(f"{file}: name: {name!r} cannot be part of a folder's name")
    return Endpoint(name, str(table.get("url", "")), file.absolute(), table)


def _is_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)

"""The compiled half of airloom."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

__version__: str

class ScenarioError(ValueError):
    """A scenario that cannot be used."""

    file: str
    line: int | None
    column: int | None
    key: str
    message: str
    choices: list[str]

class DriveError(Exception):
    """A run that could not be carried out."""

    exit_code: int

class Column:
    """A column of a table: a numpy array or a list of texts, or indices into `names`."""

    name: str
    values: Any
    names: list[str] | None
    valid: Any | None

class Results:
    """What a run gave."""

    outcome: str
    summary: dict[str, float]
    tables: dict[str, list[Column]]
    exit_code: int | None
    valid: bool
    verdict: str | None
    verdict_reasons: list[str]
    grades: dict[str, str]
    priority: str | None

class Scenario:
    """A scenario as understood."""

    title: str
    seed: int
    understood: str

    def __new__(
        cls,
        text: bytes,
        name: str,
        settings: list[tuple[str, str]] = ...,
        real: list[str] = ...,
        outside: bool = False,
    ) -> Scenario: ...
    @staticmethod
    def for_bearer(bearer: str, settings: list[tuple[str, str]], outside: bool = False) -> Scenario: ...
    def with_seed(self, seed: int) -> Scenario: ...
    def run_id(self, clock: str) -> str: ...
    def simulate(self, capture: Path | None = None, progress: Callable[[int], None] | None = None) -> Results: ...
    def emulate(
        self,
        command: list[str] | None = None,
        capture: Path | None = None,
        progress: Callable[[int], None] | None = None,
        meter: Callable[[int, int, int, int, int, int, str | None], None] | None = None,
    ) -> Results: ...

class Lab:
    """A run in real time in a thread of its own."""

    hosts: list[str]

    def __new__(cls, scenario: Scenario, capture: Path | None = None) -> Lab: ...
    def start(
        self, host: str, words: list[str], variables: list[tuple[bytes, bytes]], standard: tuple[int, int, int]
    ) -> Program: ...
    def enter(self, host: str) -> Outside: ...
    def stop(self) -> Results: ...

class Program:
    """A program in a laboratory."""

    def wait(self, milliseconds: int) -> int | None: ...
    def signal(self, number: int) -> None: ...
    def close(self) -> None: ...

class Outside:
    """Where a thread was before it entered a host."""

    def leave(self) -> None: ...

def rights() -> tuple[str, bool]: ...
def enter_user_namespace() -> None: ...
def registry(kind: str) -> list[tuple[str, str]]: ...
def capabilities() -> list[tuple[str, str | None]]: ...
def wap_compile(text: bytes, charset: str | None = None, version: str | None = None) -> tuple[bytes, list[str]]: ...
def wap_decompile(octets: bytes) -> str: ...
def simulate_many(
    wanted: list[tuple[Scenario, list[int], int | None]], tables: list[str], budget_s: float
) -> dict[str, Any]: ...

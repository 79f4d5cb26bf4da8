"""Who runs a test: the user as it is, and an ordinary one without any rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import airloom

#: Nobody has this number: a plain user without a name, a home or a group.
UNUSED = 54_321

#: A plain user cannot read the checkout, the virtual environment or its interpreter: this one belongs to the system.
INTERPRETER = "/usr/bin/python3"


class User(NamedTuple):
    """Runs the package in a process of its own."""

    name: str
    prefix: list[str]
    environment: dict[str, str]
    folder: Path

    def popen(self, arguments: Sequence[str | Path]) -> subprocess.Popen[str]:
        """Starts Python with these arguments."""
        return subprocess.Popen(
            [*self.prefix, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @contextmanager
    def begun(self, arguments: Sequence[str | Path], said: str = "up") -> Iterator[subprocess.Popen[str]]:
        """Python with these arguments, since it said that it is `up`."""
        with self.popen(arguments) as process:
            assert process.stdout
            assert process.stdout.readline() == f"{said}\n"
            yield process

    def python(self, *arguments: str | Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Runs Python with these arguments."""
        with self.popen(arguments) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(list(map(str, arguments)), process.returncode, out, err)

    def airloom(self, *arguments: str | Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Runs the command line."""
        return self.python("-m", "airloom", *arguments, timeout=timeout)


def ourselves(folder: Path) -> User:
    """The user who runs the tests."""
    return User("root" if os.geteuid() == 0 else "user", [sys.executable], dict(os.environ), folder)


def _same_python() -> bool:
    version = subprocess.run(
        [INTERPRETER, "-c", "import sys; print(sys.version_info >= (3, 11), *sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=False,
    )
    here = f"True {sys.version_info[0]} {sys.version_info[1]}"
    return version.returncode == 0 and version.stdout.strip() == here


def _put(source: str | Path, target: Path, ignored: Callable[[str, list[str]], set[str]] | None = None) -> None:
    """Puts a folder there, with what Python has compiled: nobody who uses it may write that, and each would compile."""
    shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True, copy_function=_link_or_copy)


def _link_or_copy(source: str, target: str) -> None:
    """On the same file system one name more is enough: to write a gigabyte, and clear it away, takes half a minute."""
    # Of two folders of packages the later one's file holds; what is written into a file would be in the other one, too.
    Path(target).unlink(missing_ok=True)
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copy2(source, target)


def copy_for_everybody(place: Path) -> None:
    """Copies the package and what it needs to where everybody can read it."""
    if os.geteuid() != 0:
        pytest.skip("not root: the tests run as a plain user already")
    if not Path(INTERPRETER).exists() or not _same_python():
        pytest.skip(f"{INTERPRETER} is not the Python that the tests run with")
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed: apt-get install util-linux")
    not_needed = ["pip*", "mypy*", "ruff*", "maturin*", "setuptools*", "*.pth", "pkg_resources"]
    not_needed += ["matplotlib*", "mpl_toolkits", "PIL", "pillow*", "fontTools", "fonttools*", "ast_serialize*"]
    ignored = shutil.ignore_patterns(*not_needed)
    for packages in (each for each in sys.path if each.endswith("site-packages")):
        _put(packages, place / "packages", ignored)
    _put(Path(airloom.__file__).parent, place / "packages" / "airloom")
    # What is written there of the package, its plug-in say, is what holds here.
    about = next(found for each in sys.path for found in Path(each or ".").glob("airloom-*.dist-info"))
    _put(about, place / "packages" / about.name)
    place.chmod(0o755)
    home = place / "home"
    home.mkdir()
    os.chown(home, UNUSED, UNUSED)


def plain(place: Path) -> User:
    """An ordinary user, with a copy at `place`."""
    ids = ["--reuid", str(UNUSED), "--regid", str(UNUSED), "--clear-groups"]
    return User("plain", ["setpriv", *ids, INTERPRETER], _environment(place), place / "home")


def capable(place: Path) -> User:
    """The same user with the three capabilities that emulation needs, and user namespaces not wanted."""
    ids = ["--reuid", str(UNUSED), "--regid", str(UNUSED), "--clear-groups"]
    rights = "+net_admin,+net_raw,+sys_admin"
    bounding = f"-all,{rights}"
    caps = ["--bounding-set", bounding, "--inh-caps", bounding, "--ambient-caps", bounding]
    return User("capable", ["setpriv", *ids, *caps, INTERPRETER], _environment(place), place / "home")


def _environment(place: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": str(place / "home"),
        "PYTHONPATH": str(place / "packages"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

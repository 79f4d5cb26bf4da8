"""Who runs a test: the user as it is, and an ordinary one without any rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
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


def copy_for_everybody(place: Path) -> None:
    """Copies the package and what it needs to where everybody can read it."""
    if os.geteuid() != 0:
        pytest.skip("not root: the tests run as a plain user already")
    if not Path(INTERPRETER).exists() or not _same_python():
        pytest.skip(f"{INTERPRETER} is not the Python that the tests run with")
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed: apt-get install util-linux")
    not_needed = ["pip*", "mypy*", "ruff*", "maturin*", "setuptools*", "__pycache__", "*.pth", "pkg_resources"]
    not_needed += ["matplotlib*", "mpl_toolkits", "PIL", "pillow*", "fontTools", "fonttools*", "ast_serialize*"]
    ignored = shutil.ignore_patterns(*not_needed)
    for packages in (each for each in sys.path if each.endswith("site-packages")):
        shutil.copytree(packages, place / "packages", ignore=ignored, symlinks=False, dirs_exist_ok=True)
    shutil.copytree(Path(airloom.__file__).parent, place / "packages" / "airloom", dirs_exist_ok=True)
    # What is written there of the package, its plug-in say, is what holds here.
    about = next(found for each in sys.path for found in Path(each or ".").glob("airloom-*.dist-info"))
    shutil.copytree(about, place / "packages" / about.name, dirs_exist_ok=True)
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

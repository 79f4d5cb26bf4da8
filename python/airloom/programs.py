"""Programs of others that airloom uses: where they are, and how this system installs them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from airloom.errors import Unsupported


class Program(NamedTuple):
    """A program that guides use."""

    name: str
    #: What is not possible without it.
    without: str
    #: Its package, where it is called otherwise; by the system's installer.
    packages: dict[str, str]


PROGRAMS = (
    Program("curl", "a real client in the first steps", {}),
    Program("nginx", "the real server of `airloom load` and in the first steps", {"apt-get install": "nginx-light"}),
    Program("chromium", "`airloom load`", {}),
    Program("squid", "`airloom load --proxy squid` and the other half of `validate http-shapes`", {}),
    Program("openssl", "`airloom load` of https pages", {}),
    Program("tshark", "captures in the terminal", {"dnf install": "wireshark-cli", "pacman -S": "wireshark-cli"}),
    Program("iperf3", "`iperf3` of the guides", {}),
    Program(
        "pasta",
        "`--outside` for plain users",
        dict.fromkeys(("apt-get install", "dnf install", "pacman -S", "apk add"), "passt"),
    ),
    Program("ethtool", "looking at the offloads of devices", {}),
)

#: The installer of a system, by the names in its os-release (5), ID or ID_LIKE.
_INSTALLERS = {
    "debian": "apt-get install",
    "ubuntu": "apt-get install",
    "fedora": "dnf install",
    "rhel": "dnf install",
    "arch": "pacman -S",
    "alpine": "apk add",
}


def path_of(name: str) -> str | None:
    """Where a program of the system is; `None` where it is missing."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def needed(name: str) -> str:
    """The same. Raises `Unsupported` (exit code 3), with what to install, where it is missing."""
    path = path_of(name)
    if path is None:
        raise Unsupported(f"{name} is not installed: {how_to_install(name)}")
    return path


def how_to_install(name: str) -> str:
    """What to do about a program that is missing, by this system's installer."""
    installer = installer_of()
    packages = next((program.packages for program in PROGRAMS if program.name == name), {})
    package = packages.get(installer or "", name)
    return f"{installer} {package}" if installer else f"the package is called {package} or the like"


def installer_of(file: Path = Path("/etc/os-release")) -> str | None:
    """How this system installs packages, if it is one that is known."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    said = dict(line.split("=", 1) for line in lines if "=" in line)
    names = f"{said.get('ID', '')} {said.get('ID_LIKE', '')}".replace('"', "").replace("'", "").split()
    return next((_INSTALLERS[name] for name in names if name in _INSTALLERS), None)

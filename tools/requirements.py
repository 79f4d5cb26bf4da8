"""Prints what the virtual environment needs, from pyproject.toml; `--check` looks whether Python can make one.

Without words what the package needs and is built with; with names of groups, what is in these.
"""

import sys
from pathlib import Path


def check() -> None:
    if sys.version_info < (3, 11):
        version = ".".join(map(str, sys.version_info[:3]))
        sys.exit(f"Python {version} is too old, airloom needs 3.11 or later: make PYTHON=python3.11 ...")
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        sys.exit("this Python cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv")


# In quotation marks, since an old Python reads them before it is told that it is one.
def requirements(groups: "list[str]") -> "list[str]":
    import tomllib

    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    there = project["dependency-groups"]
    if not groups:
        return [*project["project"]["dependencies"], *there["build"]]
    return [each for group in groups for each in there[group]]


if __name__ == "__main__":
    check()
    if "--check" not in sys.argv[1:]:
        print("\n".join(requirements(sys.argv[1:])))

"""What is imported when it is first named is there for completion all the same."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import airloom

PACKAGE = Path(airloom.__file__).parent

LAZY = sorted(
    ".".join(("airloom", *path.relative_to(PACKAGE).parent.parts))
    for path in PACKAGE.rglob("__init__.py")
    if "def __getattr__" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", LAZY)
def test_every_lazy_name_is_listed_before_it_is_used_and_leads_to_something(name: str) -> None:
    script = f"import json, {name} as module; print(json.dumps(dir(module)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    listed = json.loads(done.stdout)
    module = importlib.import_module(name)
    assert set(module.__all__) | set(module._PLACES) <= set(listed)
    assert all(getattr(module, each) is not None for each in module.__all__)


def test_a_name_that_is_none_is_said_as_everywhere() -> None:
    assert "airloom.sweep" in LAZY
    assert {"load", "Run", "lab", "plot", "analysis", "SweepResults"} <= set(dir(airloom))
    with pytest.raises(AttributeError, match="module 'airloom' has no attribute 'laod'"):
        _ = airloom.laod


def test_star_imports_and_subpackages_work_without_a_further_import() -> None:
    script = "import airloom as al; print(al.plot.__name__, al.analysis.__name__, callable(al.lab))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "airloom.plot airloom.analysis True\n"

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import airloom as al
from tests.conftest import needs, needs_laboratory

pytestmark = pytest.mark.emulate

DEMO = Path(__file__).parent.parent.parent / "tools" / "demo"


def test_the_demo_fetches_the_same_page_in_both_clocks(tmp_path: Path) -> None:
    needs("curl")
    needs("nginx")
    needs_laboratory()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [DEMO, "result"], capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stderr
    assert "server: nginx" in done.stdout
    assert "curl, 200000 octets" in done.stdout
    assert re.search(r"simulated, 100 seeds  \d\.\d\d s in the middle", done.stdout)
    assert re.search(r": \d+ of 100 seeds were faster, \d+ slower", done.stdout)
    simulated, emulated = al.Run("result"), al.Run("result/emulated")
    assert simulated.pages["bytes"].to_list() == [200_000]
    assert (simulated.folder / "time-sequence.svg").exists()
    assert emulated.manifest["clock"] == "real"
    assert emulated.manifest["exit_code"] == 0
    assert [p.name for p in tmp_path.iterdir()] == ["result"]

"""The script that tries the container."""

import os
import subprocess
from pathlib import Path

from tests.documents import ROOT


def test_every_call_of_the_engine_has_the_words_that_are_given_for_it(tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    engine.write_text(f'#!/bin/sh\necho "$1 $2 $3 $4" >> {tmp_path}/calls\n')
    engine.chmod(0o755)
    env = {**os.environ, "CONTAINER": str(engine), "CONTAINER_GLOBAL": "--context other", "TMPDIR": str(tmp_path)}
    script = ROOT / "integrations" / "interop" / "try"
    done = subprocess.run([script], env=env, capture_output=True, text=True, check=False, timeout=60)
    # Nothing was fetched.
    assert done.returncode != 0
    calls = (tmp_path / "calls").read_text().splitlines()
    wanted = ["network create", "network connect", "run", "create", "start", "rm", "network rm"]
    assert all(any(call.startswith(f"--context other {word}") for call in calls) for word in wanted), calls
    assert all(call.startswith("--context other ") for call in calls), calls

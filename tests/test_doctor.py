"""What `airloom doctor` finds on a machine."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from airloom.doctor import examine
from tests.conftest import needs

#: Gives the interpreter at its argument something, and becomes it.
SCRIPT = """
import os, struct, sys
program, what = sys.argv[1:]
if what == "capabilities":
    # Version 2 of linux/capability.h: CAP_SYS_ADMIN, permitted and effective.
    os.setxattr(program, "security.capability", struct.pack("<5I", 0x02000001, 1 << 21, 0, 0, 0))
if what == "set-uid":
    os.chmod(program, 0o4755)
look = "from airloom.doctor import examine; print([f for f in examine() if f.what == 'interpreter'])"
os.execv(program, [program, "-c", look])
"""


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (
            "capabilities",
            "has file capabilities: every script of everybody who may start it has these rights; setcap -r",
        ),
        ("set-uid", "has the set-uid bit"),
        ("nothing", "ok=True"),
    ],
)
def test_an_interpreter_that_gives_everybody_rights_is_found(tmp_path: Path, what: str, said: str) -> None:
    unshare = needs("unshare")
    program = tmp_path / "python-of-everybody"
    shutil.copy(os.path.realpath(sys.executable), program)
    program.chmod(stat.S_IRWXU)
    # Root over its own files only: the attribute means nothing outside of this namespace.
    words = [unshare, "--map-root-user", sys.executable, "-c", SCRIPT, str(program), what]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHOME": sys.base_prefix}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert said in done.stdout, done.stderr
    assert ("ok=False" in done.stdout) == (what != "nothing")
    assert str(program) in done.stdout


def test_what_a_gateway_needs_of_the_kernel_is_tried_out() -> None:
    (found,) = (finding for finding in examine() if finding.what == "nf_tables")
    assert not found.needed
    if os.geteuid() == 0 and "CapEff:\t000001ffffffffff" in Path("/proc/self/status").read_text():
        # Where laboratories get devices of an interface, as in tests of the gateway.
        assert (found.ok, found.says) == (True, "may be made")
    else:
        assert found.ok or "no `airloom gateway`" in found.says

"""Everything as root, as a plain user, and as one with three capabilities."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import airloom as al
from airloom._core import DriveError
from tests.conftest import needs, until
from tests.emulate.rights import User

pytestmark = pytest.mark.emulate

SCRIPT = """
import os, subprocess, threading, urllib.request
import airloom

def size(octets):
    return len(urllib.request.urlopen(f"http://origin/{octets}", timeout=60).read())

before = os.readlink("/proc/thread-self/ns/net"), os.getcwd()
with airloom.lab("wireline", seed=7, overrides={"delay": "5ms"}) as link:
    found = [size(5000)]
    thread = threading.Thread(target=lambda: found.append(size(6000)))
    thread.start()
    thread.join()
    found.append(len(subprocess.run(["curl", "-s", "http://10.77.0.1/7000"], stdout=subprocess.PIPE).stdout))
    found.append(os.getcwd() == before[1])
after = os.readlink("/proc/thread-self/ns/net"), os.getcwd()
print(found, before == after, link.summary["packets"] > 0)
"""


def test_curl_fetches_by_name_and_the_user_stays_who_they_are(user: User) -> None:
    needs("curl")
    command = "id -u; curl -s -o /dev/null -w '%{size_download}' http://origin/30kB"
    done = user.airloom("emulate", "wireline", "--json", "--", "sh", "-c", command)
    assert done.returncode == 0, done.stderr
    uid = user.python("-c", "import os; print(os.getuid())").stdout.strip()
    assert done.stderr.startswith(f"{uid}\n30000"), done.stderr
    assert json.loads(done.stdout)["exit_code"] == 0


def test_a_port_below_1024_and_raw_sockets_are_everybodys_in_a_laboratory(user: User) -> None:
    needs("ping")
    script = (
        "import socket; socket.create_server(('', 80)); "
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print('served')"
    )
    command = f'python3 -c "{script}" && ping -6 -n -c 1 origin && ping -4 -n -c 1 -M do -s 1472 origin'
    done = user.airloom("emulate", "wireline", "--", "sh", "-c", command)
    if user.name == "capable":
        # Its own rights are all it has: ports of the machine's root need one that it was not given.
        assert "1 received" in done.stdout or "served" in done.stdout, done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("1 received") == 2


def test_a_laboratory_inside_a_laboratory_is_one_and_says_so_in_the_prompt(user: User) -> None:
    needs("ping")
    python = user.prefix[-1]
    inner = [python, "-m", "airloom", "emulate", "wireline", "--set", "delay=30ms", "--", "sh", "-c"]
    inner += ['echo "$AIRLOOM_PROMPT"; ping -n -4 -c 2 -i 0.2 origin']
    done = user.airloom("emulate", "wireline", "--set", "rate=1Mbit/s", "--", *inner)
    assert done.returncode == 0, done.stderr
    assert "[wireline 1 Mbit/s] [wireline] " in done.stdout
    assert float(done.stdout.rsplit("= ", 1)[1].split("/")[0]) >= 60


def test_a_script_enters_the_laboratory_with_its_threads_and_children(user: User) -> None:
    needs("curl")
    script = user.folder / "script.py"
    script.write_text(SCRIPT)
    done = user.airloom("python", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[5000, 6000, 7000, True] True True\n"


def test_a_forked_child_ends_with_the_laboratory_that_it_was_started_in(user: User) -> None:
    script = user.folder / "forks.py"
    script.write_text(
        "import multiprocessing, time\n"
        "import airloom\n"
        "with airloom.lab('wireline'):\n"
        "    child = multiprocessing.get_context('fork').Process(target=time.sleep, args=(1000,))\n"
        "    child.start()\n"
        "child.join(60)\n"
        "print(child.exitcode)\n"
        "child.kill()\n"
    )
    done = user.airloom("python", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "-9\n"


def test_pytest_enters_laboratories_also_from_its_workers(user: User) -> None:
    test = user.folder / "test_inside.py"
    test.write_text(
        "import urllib.request, airloom, pytest\n"
        "@pytest.mark.parametrize('octets', [1000, 2000])\n"
        "def test_fetch(octets):\n"
        "    with airloom.lab('wireline') as link:\n"
        "        assert len(urllib.request.urlopen(f'http://origin/{octets}').read()) == octets\n"
    )
    done = user.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "airloom", "--rootdir", user.folder, test)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_workers_of_pytest_xdist_have_laboratories_side_by_side(user: User) -> None:
    test = user.folder / "test_workers.py"
    test.write_text(
        "import os, urllib.request, airloom, pytest\n"
        "@pytest.mark.parametrize('octets', range(1000, 1006))\n"
        "def test_fetch(octets):\n"
        "    open(os.environ['PYTEST_XDIST_WORKER'], 'w').close()\n"
        "    with airloom.lab('wireline', overrides={'delay': '5ms'}) as link:\n"
        "        assert len(urllib.request.urlopen(f'http://origin/{octets}').read()) == octets\n"
    )
    for worker in ("gw0", "gw1"):
        (user.folder / worker).unlink(missing_ok=True)
    options: list[str | Path] = ["-q", "-p", "no:cacheprovider", "-p", "airloom", "-n", "2", "--rootdir", user.folder]
    done = user.python("-m", "pytest", *options, test)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout
    assert (user.folder / "gw0").exists()
    assert (user.folder / "gw1").exists()


def test_without_the_rights_to_enter_the_ways_are_named_and_run_works_all_the_same(user: User) -> None:
    script = (
        "import airloom\n"
        "try:\n"
        "    with airloom.lab('wireline') as link: print('entered')\n"
        "except airloom.LabError as error: print(error)\n"
        "with airloom.lab('wireline', enter=False) as link:\n"
        "    done = link.run('cat; exit 3', input='text', capture_output=True, text=True)\n"
        "    print(done.returncode, done.stdout)\n"
    )
    done = user.python("-c", script)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert second == "3 text"
    if user.name == "plain":
        assert "airloom python SCRIPT" in first
        assert "pytest -p airloom" in first
    else:
        assert first == "entered"


def test_where_plain_users_may_not_make_namespaces_the_missing_right_is_named(user: User) -> None:
    if user.name != "plain":
        return
    # A root of its own small world switches user namespaces off in it.
    wrapper = ["unshare", "--user", "--map-root-user", "sh", "-c"]
    inner = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --inh-caps -all "
    inner += f"{user.prefix[-1]} -m airloom emulate wireline -- true"
    limited = user._replace(prefix=[*user.prefix[:-1], *wrapper])
    done = limited.python(inner)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "user.max_user_namespaces" in done.stderr
    assert "sudo" in done.stderr


def test_programs_of_a_laboratory_are_like_those_of_subprocess() -> None:
    with al.lab("wireline", enter=False, overrides={"delay": "1ms"}) as link:
        assert link.hosts["origin"] == ["10.77.0.1"]
        with link.popen(["sleep", "1000"]) as program:
            assert program.poll() is None
            program.terminate()
            assert program.wait(60) == -15
        assert [link.run(f"exit {code}").returncode for code in (7, 129, 255)] == [7, 129, 255]
        shown = link.run(["printenv", "X"], env={**os.environ, "X": "\udcff"}, capture_output=True)
        assert shown.stdout == b"\xff\n"
        with pytest.raises(DriveError, match="no-such-program"):
            link.run(["no-such-program"])
    assert link.summary["valid"] in (0, 1)


def test_a_program_that_nobody_holds_goes_on_until_it_ends(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with al.lab("wireline", enter=False) as link:
        link.popen(["sh", "-c", f"sleep 1; echo x >{made}"])
        until(made.exists)
        # Of those that have ended none is kept: there is the last one alone.
        until(lambda: link.run("true") and len(link._programs) == 1)


def test_what_was_read_before_a_timeout_is_not_lost() -> None:
    pipe = subprocess.PIPE
    words = ["sh", "-c", "read line; echo $line; echo b >&2; exec sleep 1000 2>&-"]
    with (
        al.lab("wireline", enter=False) as link,
        link.popen(words, stdin=pipe, stdout=pipe, stderr=pipe) as program,
    ):

        def has_heard(input: bytes = b"") -> bool:
            with pytest.raises(subprocess.TimeoutExpired) as told:
                program.communicate(input, timeout=0.2)
            return (told.value.stdout, told.value.stderr) == (b"a\n", b"b\n")

        has_heard(b"a\n")
        until(has_heard)
        with pytest.raises(ValueError, match="input"):
            program.communicate(b"a\n")
        program.kill()
        assert program.communicate() == (b"a\n", b"b\n")

"""FTP of other people's programs through the bundle of six PHS circuits: curl and lftp with vsftpd."""

import json
import os
from pathlib import Path

import pytest

import airloom as al
from tests.conftest import needs, needs_laboratory

pytestmark = [pytest.mark.emulate, pytest.mark.slow]

SCENARIO = """\
title = "FTP over six circuits"
path = ["mobile", "bundle", "origin"]
[hosts]
mobile = {{ real = true }}
origin = {{ real = true, command = {command} }}
[links]
bundle = {{ bearer = "mlppp", members = ["piafs"], copies = 6, detect = "1s" }}
[[timeline]]
at = "5s"
target = "bundle.member.5"
set = {{ state = "down" }}
"""

#: Anybody may get and put; as who it was started, with nothing that needs the system's own files.
VSFTPD = """\
listen=NO
listen_ipv6=YES
background=NO
run_as_launching_user=YES
anonymous_enable=YES
anon_upload_enable=YES
anon_root={root}
write_enable=YES
anon_umask=022
no_anon_password=YES
secure_chroot_dir={empty}
xferlog_enable=NO
seccomp_sandbox=NO
isolate=NO
isolate_network=NO
listen_port=2121
pasv_promiscuous=YES
port_promiscuous=YES
connect_from_port_20=NO
"""


@pytest.fixture
def link(tmp_path: Path) -> al.Lab:
    needs_laboratory()
    if os.geteuid() != 0:
        pytest.skip("vsftpd wants to be root")
    (tmp_path / "root" / "in").mkdir(parents=True)
    (tmp_path / "root" / "in").chmod(0o777)
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    (tmp_path / "root" / "file").write_bytes(os.urandom(300_000))
    (tmp_path / "vsftpd.conf").write_text(VSFTPD.format(root=tmp_path / "root", empty=tmp_path / "empty"))
    command = json.dumps([needs("vsftpd"), str(tmp_path / "vsftpd.conf")])
    (tmp_path / "ftp.toml").write_text(SCENARIO.format(command=command))
    return al.lab(tmp_path / "ftp.toml", seed=1, enter=False)


def test_curl_and_lftp_get_and_put_files_while_a_circuit_is_released(link: al.Lab, tmp_path: Path) -> None:
    curl, lftp = needs("curl"), needs("lftp")
    sent = (tmp_path / "root" / "file").read_bytes()
    with link:
        for mode in ([], ["--ftp-port", "-"]):  # passive, active
            words = [curl, "-sS", *mode, "-o", "got", "ftp://origin:2121/file"]
            done = link.run(words, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
            assert Path("got").read_bytes() == sent
        put = [curl, "-sS", "-T", str(tmp_path / "root" / "file"), "ftp://origin:2121/in/up"]
        done = link.run(put, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "root" / "in" / "up").read_bytes() == sent
        got = f"get file -o {tmp_path}/again"
        done = link.run([lftp, "-e", f"{got}; bye", "ftp://origin:2121"], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "again").read_bytes() == sent
    assert link.summary["downlink.delivered_bytes"] > 3 * len(sent)
    assert link.summary["uplink.delivered_bytes"] > len(sent)

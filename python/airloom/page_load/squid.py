"""Squid as a laboratory runs it: alone, without logs, rights and files that nobody asked for."""

from __future__ import annotations

_CONFIG = """\
http_port {listen}
http_access allow all
access_log none
cache_log /dev/null
cache_store_log none
visible_hostname gateway
pid_filename none
coredump_dir /
shutdown_lifetime 0 seconds
pinger_enable off
logfile_rotate 0
"""


def squid_config(listen: str, *more: str, looks_up: bool = False) -> str:
    """A configuration for `listen` (a port, or an address and a port), with further lines.

    It knows the names in `/etc/hosts`, and with `looks_up` those of the system's name servers.
    """
    names = () if looks_up else ("dns_nameservers 127.0.0.1",)
    return _CONFIG.format(listen=listen) + "".join(f"{line}\n" for line in (*names, *more))

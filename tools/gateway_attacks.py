"""What attacks on the WAP gateway come to: `python tools/gateway_attacks.py`, in an environment with airloom.

Prints how much a blind sender makes it send to somebody else, and how soon a good client is answered under floods.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.wap.attacks import (
    Flood,
    answered,
    ends_of_three,
    first_packets,
    flooded,
    guesses,
    nothing,
    reflected,
    sessions,
    silent_requests,
)
from tests.wap.gateway import Liar, serving


def main() -> None:
    """Measures."""
    origin = Liar()
    with serving("--allow-origin", "127.0.0.1") as gateway:
        for what in (nothing, ends_of_three, guesses):
            all_worth = [
                reflected(gateway.session, f"127.3.0.{n}", f"{origin.url}/size/300000", what) for n in range(1, 6)
            ]
            came, went = (sum(numbers) for numbers in zip(*all_worth, strict=True))
            print(f"reflection, {what.__name__}: {came} octets in, {went} out: {went / came:.2f} times", flush=True)
    floods: list[tuple[str, Flood, int]] = [
        ("first packets", first_packets, 30),
        ("sessions", sessions, 2),
        ("requests of a silent origin", silent_requests(f"{origin.url}/silent"), 1),
    ]
    for name, flood, addresses in floods:
        with serving("--allow-origin", "127.0.0.1") as gateway:
            places = (gateway.session, gateway.connectionless)
            with flooded(places, flood, addresses, 2_000) as sent:
                # Long enough for what is limited to have reached its limits.
                began, times = time.monotonic(), []
                time.sleep(15)
                for _ in range(5):
                    asked = time.monotonic()
                    heard = answered(gateway.session, f"{origin.url}/size/5000")
                    times.append((time.monotonic() - asked, heard))
                rate = sent() / (time.monotonic() - began)
            print(f"flood of {name}, {rate:.0f} datagrams/s; five good clients, one after the other:", flush=True)
            for seconds, heard in times:
                print(f"    {heard} after {seconds:.3f} s", flush=True)
    origin.close()


if __name__ == "__main__":
    main()

"""Releases the circuits one by one in real time while a file is on its way, sets them up again, and says what was seen.

As JSON: by what was done, the circuits whose state then followed, and octets that arrived meanwhile. Nothing but
`{}` where this machine allows no laboratory.
"""

import json
import time
from pathlib import Path

import airloom
from airloom.study.execute import can_emulate

#: How long a circuit may take to be seen in its new state.
PATIENCE_S = 10.0


def scenario() -> airloom.Scenario:
    """That of the study, with somebody real who looks on: all traffic is simulated."""
    from airloom.scenario import parse

    understood = airloom.load(Path(__file__).parent / "scenarios" / "phs.toml").understood
    understood["hosts"]["onlooker"] = {"real": True}
    understood["links"]["side"] = {"bearer": "wireline", "between": ["onlooker", "server"]}
    return parse(json.dumps(understood), "control")


def is_seen(lab: airloom.Lab, circuit: int, state: str) -> bool:
    """Does the control show it in this state, soon?"""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = {condition.target: condition.state for condition in lab.control.conditions()}
        if found[f"bundle.member.{circuit}"] == state:
            return True
        time.sleep(0.05)
    return False


def octets(lab: airloom.Lab) -> int:
    """Octets that came out of the bundle so far, towards the client."""
    bundle = next(c for c in lab.control.conditions() if c.target == "bundle")
    return bundle.downlink.octets if bundle.downlink else 0


def control() -> dict[str, object]:
    """Five circuits one by one, then the sixth: the bundle is never without one."""
    seen: dict[str, list[int]] = {"released": [], "set up": []}
    with airloom.lab(scenario(), seed=1, enter=False) as lab:
        time.sleep(2)
        before = octets(lab)
        for some in (range(5), range(5, 6)):
            for circuit in some:
                lab.control.change(f"bundle.member.{circuit}", state="down")
                seen["released"] += [circuit] if is_seen(lab, circuit, "down") else []
            for circuit in some:
                lab.control.change(f"bundle.member.{circuit}", state="up")
            seen["set up"] += [circuit for circuit in some if is_seen(lab, circuit, "up")]
        # At once: what comes afterwards, over all circuits, says nothing of what came meanwhile.
        return {**seen, "octets": octets(lab) - before}


print(json.dumps(control() if can_emulate() else {}))

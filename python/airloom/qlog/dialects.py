"""The form of qlog that qvis reads, from that of today's draft: version 0.3, a JSON text sequence.

qvis (github.com/quiclog/qvis) refuses files without `qlog_version`. What events are called, and where their members
stand, is as in draft-ietf-quic-qlog-quic-events-02, the text behind the number 0.3.
"""

from __future__ import annotations

from typing import Any

#: What the draft's events are called in 0.3. Those that are not here have no name there.
_NAMES = {
    "quic:connection_started": "connectivity:connection_started",
    "quic:connection_closed": "connectivity:connection_closed",
    "quic:mtu_updated": "connectivity:mtu_updated",
    "quic:parameters_set": "transport:parameters_set",
    "quic:parameters_restored": "transport:parameters_restored",
    "quic:packet_sent": "transport:packet_sent",
    "quic:packet_received": "transport:packet_received",
    "quic:packet_dropped": "transport:packet_dropped",
    "quic:packet_lost": "recovery:packet_lost",
    "quic:recovery_metrics_updated": "recovery:metrics_updated",
    "quic:recovery_parameters_set": "recovery:parameters_set",
    "quic:congestion_state_updated": "recovery:congestion_state_updated",
}


def header(draft: dict[str, Any]) -> dict[str, Any]:
    """The first record of a file.

    >>> header({"title": "x", "trace": {"vantage_point": {"type": "client"}}})["qlog_version"]
    '0.3'
    """
    trace = draft.get("trace", {})
    group = trace.get("common_fields", {}).get("group_id")
    common = {"time_format": "relative", "reference_time": 0}
    return {
        "qlog_version": "0.3",
        "qlog_format": "JSON-SEQ",
        "title": draft.get("title", ""),
        "trace": {
            "title": draft.get("title", ""),
            "vantage_point": trace.get("vantage_point", {"type": "unknown"}),
            "common_fields": common if group is None else {"ODCID": group, "group_id": group, **common},
        },
    }


def event(draft: dict[str, Any]) -> dict[str, Any] | None:
    """An event; nothing if 0.3 has none like it. Events of other namespaces stay as they are."""
    name, data = draft["name"], draft.get("data", {})
    if name.startswith("http3:"):
        return {"time": draft["time"], "name": name.replace("http3:", "http:", 1), "data": _http(data)}
    if not name.startswith("quic:"):
        return {"time": draft["time"], "name": name, "data": data}
    if name not in _NAMES:
        return None
    if "initiator" in data:
        data["owner"] = data.pop("initiator")
    if name == "quic:connection_started":
        data = _addresses(data)
    for frame in data.get("frames", ()):
        _frame(frame)
    return {"time": draft["time"], "name": _NAMES[name], "data": data}


def _http(data: dict[str, Any]) -> dict[str, Any]:
    """An event of HTTP/3: who did it is the owner, and a frame's length stands in front of it."""
    if "initiator" in data:
        data["owner"] = data.pop("initiator")
    raw = data.get("frame", {}).pop("raw", None)
    return data if raw is None else {**data, "length": raw["payload_length"]}


def _addresses(data: dict[str, Any]) -> dict[str, Any]:
    """Both ends of a connection, each of whose members has a name of its own."""
    found: dict[str, Any] = {}
    for end, prefix in (("local", "src"), ("remote", "dst")):
        of = data.get(end) or {}
        ids = of.get("connection_ids") or [None]
        version = "v6" if "ip_v6" in of else "v4"
        members = {"ip": of.get(f"ip_{version}"), "port": of.get(f"port_{version}"), "cid": ids[0]}
        found |= {f"{prefix}_{key}": value for key, value in members.items() if value is not None}
    return found


def _frame(frame: dict[str, Any]) -> None:
    """Lengths stand in the frame itself, and a range of acknowledged packets always has two ends."""
    raw = frame.pop("raw", None) or {}
    if "length" in raw:
        frame["length"] = raw["length"]
    if "acked_ranges" in frame:
        frame["acked_ranges"] = [[ends[0], ends[-1]] for ends in frame["acked_ranges"]]

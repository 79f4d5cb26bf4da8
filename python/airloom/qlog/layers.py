"""What a run's tables say of TCP, SCTP and RLC, as events of qlog under a namespace of our own.

Each observation point, and each sender whose congestion window was recorded, is a vantage point with a file of its own.
The shape is that of QUIC's events: `header`, `raw.length`, and the names of `recovery_metrics_updated`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from airloom.run import Run

#: The namespace of our schemas. The draft asks that private ones are under a name that nobody else can have.
SCHEMA = "urn:uuid:6b1f0c1e-52c7-4a0e-9d5b-0d6c4f6a7e31#airloom-{layer}"

#: What an event of the packets table is called, by layer.
_EVENTS = {
    "tcp": {"tx": "segment_sent", "rx": "segment_received", "drop": "segment_dropped"},
    "sctp": {"tx": "packet_sent", "rx": "packet_received", "drop": "packet_dropped"},
    "rlc": {
        "enq": "sdu_enqueued",
        "tx": "pdu_sent",
        "retx": "pdu_sent",
        "rx": "pdu_received",
        "drop": "pdu_lost",
        "ack": "status_sent",
    },
}


class Trace(NamedTuple):
    """A file to be."""

    name: str
    #: As its header says them.
    group: str
    vantage: dict[str, str]
    layer: str
    events: Iterator[dict[str, Any]]

    def header(self, title: str) -> dict[str, Any]:
        """The first record, in the form of the draft."""
        common = {"group_id": self.group, "time_format": "relative_to_epoch"}
        return {
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": title,
            "trace": {
                "common_fields": {**common, "reference_time": {"clock_type": "monotonic", "epoch": "unknown"}},
                "vantage_point": self.vantage,
                "event_schemas": [SCHEMA.format(layer=self.layer)],
            },
        }


def traces(run: Run) -> Iterator[Trace]:
    """All of a run, in the order of flows and points; none if their tables were not recorded."""
    kept = {table: (run.folder / f"{table}.parquet").exists() for table in ("packets", "congestion")}
    layers = {flow: str(layer) for flow, layer in run.flows.select("flow", "proto").iter_rows()}
    if kept["packets"]:
        # What becomes of a datagram on a link does not ask for its protocol (`ip`): that is its flow's.
        of_flow = pl.col("flow").replace_strict(layers, default=None, return_dtype=pl.String)
        proto = pl.col("proto").cast(pl.String)
        is_drop = (proto == "ip") & (pl.col("event").cast(pl.String) == "drop")
        packets = run.packets.with_columns(pl.when(is_drop).then(of_flow).otherwise(proto).alias("proto"))
        of_layers = packets.filter(pl.col("proto").is_in(list(_EVENTS)))
        by_flow = of_layers.filter((pl.col("proto") != "rlc") & (pl.col("flow") > 0))
        for key, rows in _parted(by_flow, "flow", "point", "proto"):
            flow, point, layer = key
            # Whoever sends first is the client: what leaves by this point goes its way, or comes from there; a link
            # says its direction.
            is_link = ".queue." in point
            towards = "client" if rows["event"][0] == "tx" or (is_link and ".ul." in point) else "server"
            vantage = {"name": point, "type": "network", "flow": towards}
            yield Trace(f"flow-{flow}_{point}", f"flow {flow}", vantage, layer, _packets(rows, layer))
        for (point,), rows in _parted(of_layers.filter(pl.col("proto") == "rlc"), "point"):
            vantage = {"name": point, "type": "network", "flow": "client" if ".ul." in point else "server"}
            yield Trace(point, point.rsplit(".", 1)[0], vantage, "rlc", _packets(rows, "rlc"))
    if kept["congestion"]:
        for (flow, host), rows in _parted(run.congestion, "flow", "host"):
            if (layer := layers.get(flow)) in _EVENTS:
                vantage = {"name": host, "type": "unknown"}
                yield Trace(f"flow-{flow}_{host}", f"flow {flow}", vantage, layer, _congestion(rows, layer))


def _parted(rows: pl.DataFrame, *by: str) -> list[tuple[tuple[Any, ...], pl.DataFrame]]:
    parts = rows.partition_by(by, maintain_order=True, as_dict=True)
    return sorted(parts.items(), key=lambda part: part[0])


def _event(t_ns: int, layer: str, what: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"time": t_ns / 1e6, "name": f"airloom-{layer}:{what}", "data": data}


def _known(**members: Any) -> dict[str, Any]:
    return {key: value for key, value in members.items() if value is not None}


def _packets(rows: pl.DataFrame, layer: str) -> Iterator[dict[str, Any]]:
    for row in rows.iter_rows(named=True):
        what = _EVENTS[layer].get(row["event"])
        if what is None:
            continue
        if what == "pdu_received" and row["reason"] == "status":
            what = "status_received"
        if what == "pdu_lost" and row["seq"] is None and row["reason"] != "block error":
            # Never cut into PDUs: no room, or no link. A STATUS has no number either.
            what = "sdu_dropped"
        header = _known(
            packet_id=row["pkt_id"] or None,
            sequence_number=row["seq"],
            acknowledgement_number=row["ack"],
            attempt=row["attempt"] or None,
        )
        data = {"header": header, "raw": {"length": row["len"]}}
        data |= _known(trigger=row["reason"], bytes_in_queue=row["q_bytes"])
        yield _event(row["t_ns"], layer, what, data)


def _congestion(rows: pl.DataFrame, layer: str) -> Iterator[dict[str, Any]]:
    for row in rows.iter_rows(named=True):
        data = _known(
            congestion_window=row["cwnd"],
            ssthresh=row["ssthresh"],
            bytes_in_flight=row["in_flight"],
            smoothed_rtt=None if row["srtt_ns"] is None else row["srtt_ns"] / 1e6,
            retransmission_timeout=None if row["rto_ns"] is None else row["rto_ns"] / 1e6,
            state=row["state"],
        )
        yield _event(row["t_ns"], layer, "recovery_metrics_updated", data)

"""qlog: the events of a run's connections in files that other programs read.

A run that records `"qlog"` has a file for each end of each QUIC connection, in the form of today's draft
(draft-ietf-quic-qlog-main-schema). `export` writes them in that form or in that of qvis, together with what the run's
tables say of TCP, SCTP and RLC, on the same time axis.
"""

from airloom.qlog.export import DIALECTS, export

__all__ = ["DIALECTS", "export"]

"""Files over WWP, in real time: what `airloom wwp send` and `airloom wwp receive` do.

A line of JSON says name, size and SHA-256 of the file; the receiver answers with how much of it is there already, and
after the octets with its verdict. Until that is good the file has another name, by which it is found again when the
transfer is begun once more.
"""

from airloom.wwp.receiver import Received, Receiver
from airloom.wwp.sender import Sent, send

__all__ = ["Received", "Receiver", "Sent", "send"]

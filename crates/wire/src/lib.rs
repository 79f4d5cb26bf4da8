//! Formats that no protocol owns: IPv4, IPv6, UDP, ICMP, checksums and bit fields.

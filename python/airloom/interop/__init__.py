"""The QUIC interop runner's network and cases, without containers: `airloom interop`."""

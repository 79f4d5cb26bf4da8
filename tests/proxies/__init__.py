"""Proxies on real sockets."""

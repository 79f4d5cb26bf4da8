"""Toxics, as toxiproxy calls them, on modelled links.

A proxy takes TCP connections on this machine and leads them over a link of its own to their upstream. What is done to
delays, rates and losses is done to the link, packet by packet; what is done to a connection (slices, limits, resets) to
its octets in front of the link.

`toxic` has the kinds, `link` puts them on a link, `relay` leads connections, `proxies` keeps them by name, and `verbs`
says all of it as HTTP, in the way that toxiproxy's clients know, and as lines of JSON on a Unix socket.
"""

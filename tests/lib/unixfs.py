"""Root CIDs of bodies in the profile unixfs-v1-2025, computed here from the bytes alone. Trees are laid out
as the Go gateway's (legacy_gateway.py), only the CIDs of their nodes are of version 1."""
import base64

import legacy_gateway


def root(body):
    """The CID as text; of bodies of one node of links at most (1 GiB)."""
    assert len(body) <= legacy_gateway.CHUNK * legacy_gateway.WIDTH
    node = legacy_gateway.tree(body)[-1]
    cid = node.cid if len(body) <= legacy_gateway.CHUNK else b"\x01\x70" + node.cid
    return "b" + base64.b32encode(cid).decode().lower().rstrip("=")

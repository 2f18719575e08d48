"""Root CIDs of bodies in the profile unixfs-v1-2025, computed here from the bytes alone: leaves of 1 MiB,
the CID of one leaf is its own, above more of them stands one dag-pb node (up to 1,024 leaves)."""
import base64
import hashlib

LEAF, LINKS_MAX = 1024 * 1024, 1024
RAW, DAG_PB = 0x55, 0x70


def _uvarint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def _field(tag, content):
    return bytes([tag]) + _uvarint(len(content)) + content


def _cid(codec, block):
    return bytes([1, codec, 0x12, 32]) + hashlib.sha256(block).digest()


def _node(leaves):
    links = b"".join(_field(0x12, _field(0x0A, _cid(RAW, leaf)) + b"\x12\0" +
                            b"\x18" + _uvarint(len(leaf))) for leaf in leaves)
    sizes = b"".join(b"\x20" + _uvarint(len(leaf)) for leaf in leaves)
    size = sum(len(leaf) for leaf in leaves)
    return links + _field(0x0A, b"\x08\x02\x18" + _uvarint(size) + sizes)


def root(body):
    """The CID as text."""
    leaves = [body[at:at + LEAF] for at in range(0, len(body), LEAF)] or [b""]
    assert len(leaves) <= LINKS_MAX, "bodies of one node of links only"
    cid = _cid(RAW, body) if len(leaves) == 1 else _cid(DAG_PB, _node(leaves))
    return "b" + base64.b32encode(cid).decode().lower().rstrip("=")

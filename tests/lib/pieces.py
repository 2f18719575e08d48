"""Pieces read and computed a second time: CARv1, dag-pb, dag-cbor links and the piece commitment,
written from the specifications and slow."""
import base64
import hashlib


def uvarint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def put_uvarint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def cid_text(cid):
    return "b" + base64.b32encode(cid).decode().lower().rstrip("=")


def cid_bytes(text):
    assert text[0] == "b"
    return base64.b32decode(text[1:].upper() + "=" * (-len(text[1:]) % 8))


def cbor_item(data, at):
    """One item of dag-cbor; a link comes out as ("link", cid)."""
    major, info = data[at] >> 5, data[at] & 31
    at += 1
    if info >= 24:
        size = 1 << (info - 24)
        info = int.from_bytes(data[at:at + size], "big")
        at += size
    if major == 0:
        return info, at
    if major in (2, 3):
        text = data[at:at + info]
        return (text if major == 2 else text.decode()), at + info
    if major == 4:
        items = []
        for _ in range(info):
            item, at = cbor_item(data, at)
            items.append(item)
        return items, at
    if major == 5:
        items = {}
        for _ in range(info):
            key, at = cbor_item(data, at)
            items[key], at = cbor_item(data, at)
        return items, at
    assert major == 6 and info == 42
    link, at = cbor_item(data, at)
    assert link[0] == 0
    return ("link", link[1:]), at


def protobuf(data):
    at = 0
    while at < len(data):
        key, at = uvarint(data, at)
        if key & 7 == 0:
            value, at = uvarint(data, at)
        else:
            assert key & 7 == 2
            size, at = uvarint(data, at)
            value = data[at:at + size]
            assert len(value) == size
            at += size
        yield key >> 3, value


def links(cid, block):
    """The CIDs a block names, in order."""
    codec, _ = uvarint(cid, 1)
    if codec == 0x55:
        return []
    if codec == 0x71:
        items, end = cbor_item(block, 0)
        assert end == len(block)
        return [link for _, link in items]
    assert codec == 0x70
    return [dict(protobuf(value))[1] for field, value in protobuf(block) if field == 2]


def read_car(data):
    """(roots, [(cid, block)]): every block is held against its CID, nothing may be left over."""
    size, at = uvarint(data, 0)
    header, end = cbor_item(data, at)
    assert end == at + size and header["version"] == 1 and set(header) == {"roots", "version"}
    sections = []
    at = end
    while at < len(data):
        size, start = uvarint(data, at)
        assert data[start] == 1 and data[start + 2:start + 4] == b"\x12\x20"
        cid, block = data[start:start + 36], data[start + 36:start + size]
        assert size > 0 and start + size <= len(data)
        assert hashlib.sha256(block).digest() == cid[4:], cid_text(cid)
        sections.append((cid, block))
        at = start + size
    return [root for _, root in header["roots"]], sections


def depth_first(root, blocks):
    """CIDs in the order of a depth-first walk, each once."""
    order, seen, stack = [], set(), [root]
    while stack:
        cid = stack.pop()
        if cid not in seen:
            seen.add(cid)
            order.append(cid)
            stack.extend(reversed(links(cid, blocks[cid])))
    return order


def file_bytes(cid, blocks):
    """The file below a root."""
    children = links(cid, blocks[cid])
    return blocks[cid] if cid[1] == 0x55 else b"".join(file_bytes(c, blocks) for c in children)


def commp(payload):
    """(root, height): fr32 with big integers, the tree level by level."""
    padded = payload + bytes(-len(payload) % 127) if payload else bytes(127)
    level = []
    for at in range(0, len(padded), 127):
        number = int.from_bytes(padded[at:at + 127], "little")
        level += [(number >> 254 * i & (1 << 254) - 1).to_bytes(32, "little") for i in range(4)]
    height = (len(level) - 1).bit_length()
    level += [bytes(32)] * ((1 << height) - len(level))
    while len(level) > 1:
        level = [node(level[i], level[i + 1]) for i in range(0, len(level), 2)]
    return level[0], height


def node(left, right):
    digest = bytearray(hashlib.sha256(left + right).digest())
    digest[31] &= 0x3f
    return bytes(digest)


def piece_cids(payload):
    """(version 1, version 2, padded size)."""
    root, height = commp(payload)
    padding = put_uvarint((32 << height) // 128 * 127 - len(payload))
    first = b"\x01" + put_uvarint(0xf101) + put_uvarint(0x1012) + b"\x20" + root
    second = (b"\x01\x55" + put_uvarint(0x1011) + put_uvarint(len(padding) + 33) + padding
              + bytes([height]) + root)
    return cid_text(first), cid_text(second), 32 << height

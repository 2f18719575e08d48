"""What the Go gateway leaves behind, made from scratch: the table S3Objects and the CARs of its
groups. Trees as it lays them out (spec/filecoin.md): raw leaves of 1 MiB, 1,024 links a node, nodes
addressed by CIDv0; multipart objects as one node whose links are named part-00001 and so on.
Standard library only; bytes by the dag-pb, UnixFS and CARv1 specifications."""
import base64
import datetime
import hashlib

CHUNK = 1 << 20
WIDTH = 1024
RAW, DAG_PB = 0x55, 0x70
ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def field(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value


class Node:
    """A block of a tree: its CID (bytes and text), bytes, length of the file below, Tsize."""

    def __init__(self, block, codec, file_bytes, tree_bytes):
        digest = hashlib.sha256(block).digest()
        self.block, self.file_bytes, self.tree_bytes = block, file_bytes, tree_bytes
        if codec == RAW:
            self.cid = b"\x01\x55\x12\x20" + digest
            self.text = "b" + base64.b32encode(self.cid).decode().lower().rstrip("=")
        else:
            self.cid = b"\x12\x20" + digest
            number, text = int.from_bytes(self.cid, "big"), ""
            while number:
                number, digit = divmod(number, 58)
                text = ALPHABET[digit] + text
            self.text = text


def leaf(data):
    return Node(data, RAW, len(data), len(data))


def parent(children, names=None):
    links = b"".join(
        field(2, field(1, child.cid) + field(2, (names[i] if names else "").encode())
              + b"\x18" + varint(child.tree_bytes)) for i, child in enumerate(children))
    size = sum(child.file_bytes for child in children)
    data = b"\x08\x02\x18" + varint(size) + b"".join(b"\x20" + varint(child.file_bytes)
                                                     for child in children)
    block = links + field(1, data)
    return Node(block, DAG_PB, size, len(block) + sum(child.tree_bytes for child in children))


def tree(data, width=WIDTH, chunk=CHUNK):
    """All nodes, the root last."""
    level = [leaf(data[at:at + chunk]) for at in range(0, len(data), chunk)] or [leaf(b"")]
    nodes = list(level)
    while len(level) > 1:
        level = [parent(level[at:at + width]) for at in range(0, len(level), width)]
        nodes += level
    return nodes


def multipart(parts):
    nodes, roots = [], []
    for part in parts:
        made = tree(part)
        nodes += made
        roots.append(made[-1])
    return nodes + [parent(roots, [f"part-{i:05}" for i in range(1, len(roots) + 1)])]


def write_car(path, nodes):
    """A group's log: the header has a placeholder root. Returns the offset of each block."""
    root = b"\x01\x55\x00\x20" + bytes(32)
    header = (b"\xa2\x65roots\x81\xd8\x2a\x58" + bytes([len(root) + 1]) + b"\x00" + root
              + b"\x67version\x01")
    out = bytearray(varint(len(header)) + header)
    offsets = []
    for node in nodes:
        out += varint(len(node.cid) + len(node.block)) + node.cid
        offsets.append(len(out))
        out += node.block
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(out)
    return offsets


COLUMNS = "bucket text, key text, cid text, size bigint, updated timestamp"


class Gateway:
    """A table and a folder of CARs; objects are added one by one."""

    def __init__(self, database, keyspace, folder, old_form=False):
        self.session, self.keyspace, self.folder = database.session(), keyspace, folder
        self.old_form = old_form
        self.contents = {}
        more = "" if old_form else ", node_id text, expires_at timestamp"
        self.session.execute(f"CREATE TABLE {keyspace}.S3Objects ({COLUMNS}{more}, "
                             "PRIMARY KEY (bucket, key))")

    def row(self, bucket, key, cid, size, expires=None):
        now = datetime.datetime.now(datetime.timezone.utc)
        names, values = "bucket, key, cid, size, updated", [bucket, key, cid, size, now]
        if not self.old_form:
            names, values = names + ", node_id, expires_at", [*values, "kuri-1", expires]
        marks = ", ".join(["%s"] * len(values))
        self.session.execute(f"INSERT INTO {self.keyspace}.S3Objects ({names}) VALUES ({marks})",
                             values)

    def add(self, bucket, key, data, car="group-1.car", nodes=None, expires=None):
        """Its row, and its blocks in a CAR (appended when it is there already)."""
        nodes = nodes or tree(data)
        self.row(bucket, key, nodes[-1].text, len(data), expires)
        self.contents[bucket, key] = data
        cars = self.__dict__.setdefault("cars", {})
        cars.setdefault(car, []).extend(nodes)
        return nodes

    def write_cars(self):
        return {name: write_car(self.folder / name, nodes)
                for name, nodes in self.__dict__.get("cars", {}).items()}

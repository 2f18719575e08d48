"""Native protocol v4 for tests/lib/ycql_proxy.py: frames, parameters, rows; strict where YugabyteDB
is strict (spec/ycql.md section 5). Standard library only."""
import struct

(ERROR, STARTUP, READY, AUTHENTICATE, OPTIONS, SUPPORTED, QUERY, RESULT, PREPARE, EXECUTE, REGISTER,
 EVENT, BATCH, AUTH_CHALLENGE, AUTH_RESPONSE, AUTH_SUCCESS) = (
    0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
VOID, ROWS, SET_KEYSPACE, PREPARED, SCHEMA_CHANGE = 1, 2, 3, 4, 5
HEADER = struct.Struct(">BBhBi")
QUORUM, SERIAL = 4, 8


class Malformed(Exception):
    """A request that YugabyteDB answers with 0x000A."""


class Reader:
    """A cursor over a body; whatever does not fit is Malformed."""

    def __init__(self, body):
        self.body, self.at = body, 0

    def take(self, size):
        if size < 0 or self.at + size > len(self.body):
            raise Malformed("the body is shorter than its lengths")
        self.at += size
        return self.body[self.at - size:self.at]

    def _number(self, form, size):
        return struct.unpack(form, self.take(size))[0]

    def u8(self):
        return self._number(">B", 1)

    def u16(self):
        return self._number(">H", 2)

    def i32(self):
        return self._number(">i", 4)

    def string(self):
        return self.take(self.u16()).decode()

    def long_string(self):
        return self.take(self.i32()).decode()

    def short_bytes(self):
        return self.take(self.u16())

    def bytes(self):
        size = self.i32()
        return None if size < 0 else self.take(size)

    def end(self):
        if self.at != len(self.body):
            raise Malformed("Invalid trailing bytes")


def put_bytes(value):
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def put_string(text):
    return struct.pack(">H", len(text.encode())) + text.encode()


def frame(opcode, stream, body, version=0x84, flags=0):
    return HEADER.pack(version, flags, stream, opcode, len(body)) + body


class Params:
    """What follows the text of a QUERY or the id of an EXECUTE."""

    def __init__(self, reader):
        self.consistency, self.flags = reader.u16(), reader.u8()
        self.values, self.unset = [], False
        self.page_size = self.paging_state = self.serial = self.timestamp = None
        if self.flags & 0x01:
            for _ in range(reader.u16()):
                if self.flags & 0x40:
                    reader.string()
                size = reader.i32()
                self.unset = self.unset or size == -2
                self.values.append(None if size < 0 else reader.take(size))
        if self.flags & 0x04:
            self.page_size = reader.i32()
        if self.flags & 0x08:
            self.paging_state = reader.bytes()
        if self.flags & 0x10:
            self.serial = reader.u16()
        if self.flags & 0x20:
            reader.take(8)
        reader.end()

    def encode(self):
        flags = (1 if self.values else 0) | (4 if self.page_size is not None else 0) | (
            8 if self.paging_state is not None else 0) | (
            16 if self.serial is not None else 0) | (32 if self.timestamp is not None else 0)
        out = [struct.pack(">HB", self.consistency, flags)]
        if self.values:
            out.append(struct.pack(">H", len(self.values)))
            out += [put_bytes(value) for value in self.values]
        if self.page_size is not None:
            out.append(struct.pack(">i", self.page_size))
        if self.paging_state is not None:
            out.append(put_bytes(self.paging_state))
        if self.serial is not None:
            out.append(struct.pack(">H", self.serial))
        if self.timestamp is not None:
            out.append(struct.pack(">q", self.timestamp))
        return b"".join(out)


def take_type(reader):
    """The bytes of one type option."""
    begin = reader.at
    kind = reader.u16()
    if kind == 0:
        reader.string()
    elif kind in (0x20, 0x22):
        take_type(reader)
    elif kind == 0x21:
        take_type(reader)
        take_type(reader)
    elif kind == 0x30:
        reader.string()
        reader.string()
        for _ in range(reader.u16()):
            reader.string()
            take_type(reader)
    elif kind == 0x31:
        for _ in range(reader.u16()):
            take_type(reader)
    return reader.body[begin:reader.at]


class Rows:
    """A RESULT of kind Rows: names, types, cells; keyspace and table as one for all columns."""

    def __init__(self, reader):
        flags, count = reader.i32(), reader.i32()
        self.paging_state = reader.bytes() if flags & 2 else None
        self.keyspace = self.table = ""
        if flags & 1:
            self.keyspace, self.table = reader.string(), reader.string()
        self.columns = []
        for _ in range(count):
            if not flags & 1:
                self.keyspace, self.table = reader.string(), reader.string()
            self.columns.append((reader.string(), take_type(reader)))
        self.rows = [[reader.bytes() for _ in range(count)] for _ in range(reader.i32())]

    def names(self):
        return [name for name, _ in self.columns]

    def keep(self, names):
        """Only these columns, in this order."""
        at = [self.names().index(name) for name in names if name in self.names()]
        self.columns = [self.columns[i] for i in at]
        self.rows = [[row[i] for i in at] for row in self.rows]

    def set_cells(self, name, value):
        if name in self.names():
            at = self.names().index(name)
            for row in self.rows:
                row[at] = value

    def encode(self):
        more = self.paging_state is not None
        out = [struct.pack(">iii", ROWS, 3 if more else 1, len(self.columns))]
        if more:
            out.append(put_bytes(self.paging_state))
        out += [put_string(self.keyspace), put_string(self.table)]
        out += [put_string(name) + kind for name, kind in self.columns]
        out.append(struct.pack(">i", len(self.rows)))
        out += [put_bytes(cell) for row in self.rows for cell in row]
        return b"".join(out)


def prepared_id_and_names(body):
    """Of a RESULT of kind Prepared: its id and (name, type) of each marker."""
    reader = Reader(body)
    reader.i32()
    identity = reader.short_bytes()
    flags, count, keys = reader.i32(), reader.i32(), reader.i32()
    reader.take(2 * keys)
    if flags & 1:
        reader.string()
        reader.string()
    columns = []
    for _ in range(count):
        if not flags & 1:
            reader.string()
            reader.string()
        columns.append((reader.string(), take_type(reader)))
    return identity, columns


def without_prefixes(flags, body):
    """The body behind tracing id, warnings and payload."""
    reader = Reader(body)
    if flags & 2:
        reader.take(16)
    if flags & 8:
        for _ in range(reader.u16()):
            reader.string()
    if flags & 4:
        for _ in range(reader.u16()):
            reader.string()
            reader.bytes()
    return body[reader.at:]

"""Statements without values over CQL's native protocol v4, with the standard library alone: to lay
out keyspaces for a cluster on this machine. Rows are not decoded."""
import pathlib
import re
import socket
import struct

STARTUP, QUERY, ERROR, READY, RESULT = 0x01, 0x07, 0x00, 0x02, 0x08
ALREADY_EXISTS = 0x2400


class CqlError(Exception):
    def __init__(self, code, text):
        super().__init__(f"{code:#06x}: {text}")
        self.code = code


class Session:
    """One connection; execute() returns when the server has answered."""

    def __init__(self, address, timeout=60):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout)
        self._request(STARTUP, struct.pack(">H", 1) + self._text("CQL_VERSION")
                      + self._text("3.0.0"))

    def execute(self, text):
        body = text.encode()
        self._request(QUERY, struct.pack(">i", len(body)) + body + struct.pack(">HB", 4, 0))

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @staticmethod
    def _text(text):
        return struct.pack(">H", len(text)) + text.encode()

    def _read(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the server closed the connection")
            data += piece
        return data

    def _request(self, opcode, body):
        self.socket.sendall(struct.pack(">BBhBi", 4, 0, 1, opcode, len(body)) + body)
        while True:
            _, _, stream, answer, size = struct.unpack(">BBhBi", self._read(9))
            payload = self._read(size)
            if stream != 1:
                continue
            if answer == ERROR:
                code, length = struct.unpack(">iH", payload[:6])
                raise CqlError(code, payload[6:6 + length].decode("utf-8", "replace"))
            return


def statements(text):
    """The statements of a migration file: comments out, split at semicolons."""
    text = re.sub(r"--[^\n]*", "", text)
    return [part.strip() for part in text.split(";") if part.strip()]


def lay_out(address, keyspace, folder):
    """The keyspace and all tables of migrations/shared in it, where they are missing."""
    with Session(address) as session:
        session.execute(f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = "
                        "{'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute(f"USE {keyspace}")
        files = sorted(pathlib.Path(folder).glob("*.cql"),
                       key=lambda path: int(path.name.split("_")[0]))
        for path in files:
            for statement in statements(path.read_text(encoding="utf-8")):
                try:
                    session.execute(statement)
                except CqlError as error:
                    if error.code != ALREADY_EXISTS and "conflicts with an existing" not in str(error):
                        raise

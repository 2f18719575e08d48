"""A connection that sends exactly the bytes it is given and reads answers one after the other."""
import http.client
import io
import socket


class _Reader:
    """What http.client wants of a socket: all answers share one buffer, so pipelined ones keep
    their bytes."""

    def __init__(self, file):
        self.file = file

    def makefile(self, *_):
        return _Unclosable(self.file)


class _Unclosable(io.BufferedIOBase):
    def __init__(self, file):
        super().__init__()
        self.file = file

    def readable(self):
        return True

    def read(self, size=-1):
        return self.file.read(size)

    def read1(self, size=-1):
        return self.file.read1(size)

    def readinto(self, buffer):
        return self.file.readinto(buffer)

    def readline(self, size=-1):
        return self.file.readline(size)

    def peek(self, size=0):
        return self.file.peek(size)


class Answer:
    """status, reason, headers (an email.message.Message: case-insensitive), body."""

    def __init__(self, response, body):
        self.status = response.status
        self.reason = response.reason
        self.version = response.version
        self.headers = response.headers
        self.body = body

    def __repr__(self):
        return f"<{self.status} {self.reason} {self.body[:200]!r}>"


class RawConnection:
    """with RawConnection(host, port) as connection: connection.send(...); connection.answer()"""

    def __init__(self, host, port, timeout=30, tls=None):
        """tls: an ssl.SSLContext, or None for plain text."""
        self.socket = socket.create_connection((host, port), timeout=timeout)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.reader = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def send_slowly(self, data, pieces=1):
        """`pieces` bytes a send, without Nagle's delay between them."""
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), pieces):
            self.socket.sendall(data[at:at + pieces])

    def answer(self, method="GET", skip_continue=True):
        """The next answer; 100 Continue is read over. http.client.HTTPException or OSError when
        there is none."""
        response = http.client.HTTPResponse(_Reader(self.reader), method=method)
        if skip_continue:
            response.begin()
        else:
            version, status, reason = response._read_status()
            if status == 100:
                http.client.parse_headers(response.fp)
                return Interim(version, status, reason.strip())
            raise AssertionError(f"wanted 100 Continue, got {status} {reason}")
        return Answer(response, response.read())

    def interim(self):
        """Reads 100 Continue and nothing more."""
        return self.answer(skip_continue=False)

    def closed(self, timeout=30):
        """True when the peer closes (or resets) without sending more."""
        self.socket.settimeout(timeout)
        try:
            return self.reader.read(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def rest(self):
        """All bytes until the peer closes."""
        return self.reader.read()

    def close(self):
        self.reader.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Interim:
    def __init__(self, version, status, reason):
        self.version = version
        self.status = status
        self.reason = reason

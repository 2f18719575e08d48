"""The HTTP server by raw sockets: what must be refused, what must not, and that the request after it
is read from its first byte. Server: tests/tools/http_test_server.c."""
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import random
import resource
import select
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

import certificates
from rawhttp import RawConnection

TOP = pathlib.Path(__file__).resolve().parents[2]
BINARY = (os.environ.get("FGW_TEST_HTTP_SERVER")
          or TOP / "build" / "asan" / "tests" / "tools" / "fgw-http-test-server")


class Server:
    def __init__(self, *options, listen="127.0.0.1:0", preexec_fn=None):
        self.process = subprocess.Popen([str(BINARY), "--listen", listen, *map(str, options)],
                                        stdout=subprocess.PIPE, text=True, preexec_fn=preexec_fn)
        self.address = self.line().removeprefix("listening ").strip()
        assert self.line() == "ready\n"
        if not self.address.startswith("unix:"):
            self.port = int(self.address.rsplit(":", 1)[1])

    def line(self):
        return self.process.stdout.readline()

    def raw(self, **options):
        return RawConnection("127.0.0.1", self.port, **options)

    def stats(self):
        with self.raw() as connection:
            connection.send(b"GET /stats HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            return json.loads(connection.answer().body)

    def stop(self):
        """Sanitizers report leaks in the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(15)
        self.process.stdout.close()
        return code


@contextlib.contextmanager
def running(*options, **more):
    server = Server(*options, **more)
    try:
        yield server
        assert server.stop() == 0
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


@pytest.fixture(scope="module")
def big_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("http") / "file"
    path.write_bytes(random.Random(1).randbytes(8 << 20))
    return path


@pytest.fixture(scope="module")
def server(big_file):
    with running("--file", big_file) as server:
        yield server


@pytest.fixture(scope="module")
def quick():
    """Short limits."""
    with running("--header-timeout-ms", 800, "--first-byte-timeout-ms", 600, "--idle-timeout-ms",
                 600, "--max-header", 4096) as server:
        yield server


def head(line="GET /hello HTTP/1.1", *lines, host=b"Host: a"):
    parts = [line.encode("latin-1")] + ([host] if host else [])
    parts += [text.encode("latin-1") for text in lines]
    return b"\r\n".join(parts) + b"\r\n\r\n"


HELLO = head()


def body_hash(data):
    return f"{len(data)} {hashlib.sha256(data).hexdigest()}\n".encode()


# -- refusals ------------------------------------------------------------------------------------

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
REFUSED = {
    "both lengths": (head("PUT /count HTTP/1.1", "Content-Length: 4",
                          "Transfer-Encoding: chunked") + b"0\r\n\r\n", 400),
    "both lengths, turned": (head("PUT /count HTTP/1.1", "Transfer-Encoding: chunked",
                                  "Content-Length: 4") + b"0\r\n\r\n", 400),
    "two Content-Length": (head("PUT /count HTTP/1.1", "Content-Length: 0",
                                "Content-Length: 5"), 400),
    "same Content-Length twice": (head("PUT /count HTTP/1.1", "Content-Length: 0",
                                       "Content-Length: 0"), 400),
    "list Content-Length": (head("PUT /count HTTP/1.1", "Content-Length: 0, 0"), 400),
    "negative Content-Length": (head("PUT /count HTTP/1.1", "Content-Length: -1"), 400),
    "signed Content-Length": (head("PUT /count HTTP/1.1", "Content-Length: +0"), 400),
    "bare LF": (b"GET /hello HTTP/1.1\nHost: a\n\n", 400),
    "bare LF in one header": (b"GET /hello HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400),
    "bare CR": (b"GET /hello HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", 400),
    "folded header": (b"GET /hello HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", 400),
    "folded Transfer-Encoding": (b"PUT /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n"
                                 b" chunked\r\n\r\n0\r\n\r\n", 400),
    "NUL in value": (b"GET /hello HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n", 400),
    "NUL in target": (b"GET /he\0llo HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "two Hosts": (head("GET /hello HTTP/1.1", "Host: b"), 400),
    "no Host": (head(host=None), 400),
    "Transfer-Encoding on 1.0": (head("PUT /count HTTP/1.0", "Transfer-Encoding: chunked")
                                 + b"0\r\n\r\n", 400),
    "two Transfer-Encoding": (head("PUT /count HTTP/1.1", "Transfer-Encoding: chunked",
                                   "Transfer-Encoding: identity") + b"0\r\n\r\n", 400),
    "Transfer-Encoding not chunked": (head("PUT /count HTTP/1.1",
                                           "Transfer-Encoding: xchunked"), 400),
    "chunked is not last": (head("PUT /count HTTP/1.1", "Transfer-Encoding: chunked, gzip"), 400),
    "other coding": (head("PUT /count HTTP/1.1", "Transfer-Encoding: gzip, chunked"), 501),
    "blank before colon": (head("PUT /count HTTP/1.1", "Content-Length : 0"), 400),
    "header without name": (head("GET /hello HTTP/1.1", ": x"), 400),
    "HTTP/0.9": (b"GET /hello\r\n", 400),
    "HTTP/2.0": (head("GET /hello HTTP/2.0"), 505),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "fragment": (head("GET /hello#x HTTP/1.1"), 400),
    "two blanks": (head("GET  /hello HTTP/1.1"), 400),
    "unknown method": (head("BREW /hello HTTP/1.1"), 501),
    "CONNECT": (head("CONNECT a:443 HTTP/1.1"), 501),
    "TLS": (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", 400),
    "noise": (b"\xde\xad\xbe\xef", 400),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_and_closed(server, name):
    """One answer, then the end: what follows is never taken for a request."""
    request, status = REFUSED[name]
    with server.raw() as connection:
        connection.send(request + SMUGGLED)
        answer = connection.answer()
        assert answer.status == status
        assert answer.headers["Connection"] == "close"
        assert b"<Code>" in answer.body
        assert connection.rest() == b""


@pytest.mark.parametrize("name", REFUSED)
def test_refused_after_a_good_request(server, name):
    request, status = REFUSED[name]
    with server.raw() as connection:
        connection.send(HELLO + request + SMUGGLED)
        assert connection.answer().body == b"hello\n"
        assert connection.answer().status == status
        assert connection.rest() == b""


def test_head_refused_without_body(server):
    with server.raw() as connection:
        connection.send(b"HEAD /hello HTTP/1.1\r\n\r\n")
        assert connection.rest().endswith(b"\r\n\r\n")


def test_upgrade_to_h2c_is_ignored(server):
    with server.raw() as connection:
        connection.send(head("GET /hello HTTP/1.1", "Connection: Upgrade, HTTP2-Settings",
                             "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA") + HELLO)
        assert connection.answer().body == b"hello\n"
        assert connection.answer().body == b"hello\n"


def test_answer_headers_cannot_be_split(server):
    with server.raw() as connection:
        connection.send(head("GET /show HTTP/1.1"))
        answer = connection.answer()
        assert "X-Injected" not in answer.headers
        assert answer.headers["X-Split"] == "a  X-Injected: 1"


# -- heads ---------------------------------------------------------------------------------------

def show(answer):
    return dict(line.split("=", 1) for line in answer.body.decode("latin-1").splitlines())


def test_fields_reach_the_handler(server):
    with server.raw() as connection:
        connection.send(head("PUT http://b.example:1/show?x=%2F&y HTTP/1.1", "Content-Length: 3",
                             "X-Custom:  a b\t", "Expect: something") + b"abc" + HELLO)
        seen = show(connection.answer())
        assert seen["method"] == "PUT" and seen["path"] == "/show" and seen["query"] == "x=%2F&y"
        assert seen["host"] == "b.example:1" and seen["headers"] == "4" and seen["custom"] == "a b"
        assert seen["length"] == "1:3" and seen["expect"] == "0" and seen["keep"] == "1"
        assert seen["peer"].startswith("127.0.0.1:")
        assert connection.answer().body == b"hello\n"


def test_put_without_any_length(server):
    with server.raw() as connection:
        connection.send(head("PUT /show HTTP/1.1") + HELLO)
        seen = show(connection.answer())
        assert seen["length"] == "0:0" and seen["chunked"] == "0"
        assert connection.answer().body == b"hello\n"


def test_empty_lines_before_a_request(server):
    with server.raw() as connection:
        connection.send(b"\r\n\r\n" + HELLO + b"\r\n" + HELLO)
        assert connection.answer().body == b"hello\n"
        assert connection.answer().body == b"hello\n"


@pytest.mark.parametrize("count", ["/count", "/count?1", "/count?64"])
@pytest.mark.parametrize("pieces", [1, 2, 7, 60])
def test_heads_and_bodies_in_pieces(server, pieces, count):
    body = b"0123456789" * 7
    stream = (HELLO + head(f"PUT {count} HTTP/1.1", "Content-Length: 70") + body
              + head(f"PUT {count} HTTP/1.1", "Transfer-Encoding: chunked")
              + b"23;x=y\r\n" + body[:35] + b"\r\n23\r\n" + body[35:] + b"\r\n0\r\nT: r\r\n\r\n"
              + HELLO)
    with server.raw() as connection:
        connection.send_slowly(stream, pieces)
        assert connection.answer().body == b"hello\n"
        assert connection.answer().body == body_hash(body)
        assert connection.answer().body == body_hash(body)
        assert connection.answer().body == b"hello\n"


def test_pipelining_in_order(server):
    count = 500
    with server.raw() as connection:
        sender = threading.Thread(target=connection.send, args=(
            b"".join(head(f"GET /show?{i} HTTP/1.1") for i in range(count)),))
        sender.start()
        for i in range(count):
            assert show(connection.answer())["query"] == str(i)
        sender.join()


def test_a_slow_request_holds_up_those_behind_it_only(server):
    with server.raw() as slow, server.raw() as other:
        slow.send(head("GET /sleep?4000 HTTP/1.1") + head("GET /show?2 HTTP/1.1"))
        other.send(HELLO)
        assert other.answer().body == b"hello\n"
        assert not select.select([slow.socket], [], [], 0)[0], "the slow one came first"
        assert slow.answer().body == b"hello\n"
        assert show(slow.answer())["query"] == "2"


def test_big_heads(quick):
    with quick.raw() as connection:
        connection.send(head("GET /hello HTTP/1.1", "X: " + "x" * 3900) + HELLO)
        assert connection.answer().status == 200
        assert connection.answer().status == 200
        connection.send(head("GET /hello HTTP/1.1", "X: " + "x" * 4100))
        answer = connection.answer()
        assert answer.status == 400
        assert b"<Code>RequestHeaderSectionTooLarge</Code>" in answer.body
        assert connection.rest() == b""
    with quick.raw() as connection:
        connection.send(b"GET /" + b"x" * 100_000)
        assert b"RequestHeaderSectionTooLarge" in connection.answer().body


def test_many_headers(server):
    with server.raw() as connection:
        connection.send(head("GET /show HTTP/1.1", *["a: b"] * 511))
        assert show(connection.answer())["headers"] == "512"
        connection.send(head("GET /show HTTP/1.1", *["a: b"] * 512))
        assert b"RequestHeaderSectionTooLarge" in connection.answer().body


# -- bodies --------------------------------------------------------------------------------------

@pytest.mark.parametrize("size", [1, 4096, 65536, 65537, 300_000, 3 << 20])
def test_bodies_of_any_size(server, size):
    body = random.Random(size).randbytes(size)
    with server.raw() as connection:
        for room in ("", "?1000", "?1048576"):
            connection.send(head(f"PUT /count{room} HTTP/1.1", f"Content-Length: {size}") + body
                            + HELLO)
            assert connection.answer().body == body_hash(body)
            assert connection.answer().body == b"hello\n"


def chunk(body, rng, most):
    coded = b""
    while body:
        size = rng.randrange(1, most)
        part, body = body[:size], body[size:]
        coded += b"%x\r\n%s\r\n" % (len(part), part)
    return coded + b"0\r\n\r\n"


@pytest.mark.parametrize("most", [2, 100, 20_000, 200_000])
def test_chunked_bodies(server, most):
    rng = random.Random(most)
    body = rng.randbytes(min(most * 50, 2 << 20))
    with server.raw() as connection:
        connection.send(head("PUT /count HTTP/1.1", "Transfer-Encoding: chunked")
                        + chunk(body, rng, most) + HELLO)
        assert connection.answer().body == body_hash(body)
        assert connection.answer().body == b"hello\n"


@pytest.mark.parametrize("coded", [b"5\nhello\r\n0\r\n\r\n", b"5\r\nhello!\r\n0\r\n\r\n",
                                   b"-1\r\n", b"5 \r\nhello\r\n0\r\n\r\n",
                                   b"ffffffffffffffffff\r\n", b"0\r\nbad\r\n\r\n"])
def test_broken_chunked_coding(server, coded):
    with server.raw() as connection:
        connection.send(head("PUT /count HTTP/1.1", "Transfer-Encoding: chunked") + coded
                        + SMUGGLED)
        answer = connection.answer()
        assert answer.status == 400 and answer.headers["Connection"] == "close"
        assert connection.rest() == b""


def test_body_that_ends_too_early(server):
    with server.raw() as connection:
        connection.send(head("PUT /count HTTP/1.1", "Content-Length: 10") + b"12345")
        connection.socket.shutdown(socket.SHUT_WR)
        answer = connection.answer()
        assert answer.status == 400 and answer.body == b"IncompleteBody"
        assert connection.rest() == b""


def test_half_close_still_gets_its_answer(server):
    with server.raw() as connection:
        connection.send(head("GET /sleep?100 HTTP/1.1"))
        connection.socket.shutdown(socket.SHUT_WR)
        assert connection.answer().body == b"hello\n"
        assert connection.rest() == b""


def test_echo_while_uploading(server):
    """Both directions at once, more than the socket buffers hold."""
    body = random.Random(3).randbytes(16 << 20)
    with server.raw() as connection:
        sender = threading.Thread(target=connection.send, args=(
            head("PUT /echo HTTP/1.1", f"Content-Length: {len(body)}") + body,))
        sender.start()
        assert connection.answer().body == body
        sender.join()


# -- Expect --------------------------------------------------------------------------------------

def test_continue_before_the_body(server):
    with server.raw() as connection:
        connection.send(head("PUT /count HTTP/1.1", "Expect: 100-continue", "Content-Length: 5"))
        assert connection.interim().status == 100
        connection.send(b"hello" + HELLO)
        assert connection.answer().body == body_hash(b"hello")
        assert connection.answer().body == b"hello\n"


def test_continue_of_a_chunked_body(server):
    with server.raw() as connection:
        connection.send(head("PUT /count HTTP/1.1", "EXPECT: 100-Continue",
                             "Transfer-Encoding: chunked"))
        assert connection.interim().status == 100
        connection.send(b"5\r\nhello\r\n0\r\n\r\n")
        assert connection.answer().body == body_hash(b"hello")


def test_refused_before_continue(server):
    """The client may or may not send the body now: the connection cannot go on."""
    with server.raw() as connection:
        connection.send(head("PUT /refuse HTTP/1.1", "Expect: 100-continue", "Content-Length: 5"))
        answer = connection.answer(skip_continue=True)
        assert answer.status == 403 and answer.headers["Connection"] == "close"
        assert connection.rest() == b""


def test_expect_without_a_body(server):
    with server.raw() as connection:
        connection.send(head("PUT /count HTTP/1.1", "Expect: 100-continue", "Content-Length: 0")
                        + HELLO)
        assert connection.interim().status == 100
        assert connection.answer().body == body_hash(b"")
        assert connection.answer().body == b"hello\n"


@pytest.mark.parametrize("value", ["", "100", "200-ok", "100-continue, x"])
def test_other_expectations_are_ignored(server, value):
    with server.raw() as connection:
        connection.send(head("PUT /count HTTP/1.1", f"Expect: {value}", "Content-Length: 5")
                        + b"hello" + HELLO)
        raw = connection.reader.peek()
        assert raw.startswith(b"HTTP/1.1 200")
        assert connection.answer().body == body_hash(b"hello")
        assert connection.answer().body == b"hello\n"


# -- what the handler leaves unread --------------------------------------------------------------

@pytest.mark.parametrize("path", ["/refuse", "/piece"])
@pytest.mark.parametrize("size", [1, 10_000, 65_536])
def test_small_rest_is_drained(server, path, size):
    body = head("GET /smuggled HTTP/1.1")
    body = (body * (size // len(body) + 1))[:size]
    with server.raw() as connection:
        connection.send(head(f"PUT {path} HTTP/1.1", f"Content-Length: {size}") + body + HELLO)
        answer = connection.answer()
        assert answer.status == (403 if path == "/refuse" else 200)
        assert "Connection" not in answer.headers
        assert connection.answer().body == b"hello\n"


def test_large_rest_closes(server):
    """The answer arrives although megabytes of the body are on their way."""
    with server.raw() as connection:
        connection.send(head("PUT /refuse HTTP/1.1", f"Content-Length: {8 << 20}"))
        with contextlib.suppress(ConnectionError):
            connection.send(b"x" * (8 << 20))
        answer = connection.answer()
        assert answer.status == 403 and answer.headers["Connection"] == "close"
        assert connection.closed()


def test_chunked_rest(server):
    with server.raw() as connection:
        connection.send(head("PUT /refuse HTTP/1.1", "Transfer-Encoding: chunked")
                        + b"5\r\nhello\r\n0\r\n\r\n" + HELLO)
        assert connection.answer().status == 403
        assert connection.answer().body == b"hello\n"
    with server.raw() as connection:
        connection.send(head("PUT /refuse HTTP/1.1", "Transfer-Encoding: chunked")
                        + b"5\r\nhello\r\n")
        assert connection.answer().headers["Connection"] == "close"
        assert connection.rest() == b""


# -- answers -------------------------------------------------------------------------------------

@pytest.mark.parametrize("path", ["/4k", "/stream", "/hello", "/file?100000", "/nowhere"])
def test_head_has_no_body(server, path):
    with server.raw() as connection:
        connection.send(head(f"HEAD {path} HTTP/1.1") + HELLO)
        answer = connection.answer("HEAD")
        assert answer.body == b""
        assert connection.answer().body == b"hello\n"


@pytest.mark.parametrize("path, status", [("/204", 204), ("/304", 304)])
def test_answers_without_body(server, path, status):
    with server.raw() as connection:
        connection.send(head(f"GET {path} HTTP/1.1") + HELLO)
        answer = connection.answer()
        assert answer.status == status and "Content-Length" not in answer.headers
        assert connection.answer().body == b"hello\n"


@pytest.mark.parametrize("size", [0, 1, 4096, 1_000_000, 8 << 20])
def test_files(server, big_file, size):
    with server.raw() as connection:
        connection.send(head(f"GET /file?{size} HTTP/1.1") + HELLO)
        assert connection.answer().body == big_file.read_bytes()[:size]
        assert connection.answer().body == b"hello\n"


def test_file_shorter_than_announced_breaks(server):
    with server.raw() as connection:
        connection.send(head(f"GET /file?{9 << 20} HTTP/1.1") + HELLO)
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            connection.answer()


def test_stream_of_unknown_length(server):
    with server.raw() as connection:
        connection.send(head("GET /stream?3 HTTP/1.1") + HELLO)
        answer = connection.answer()
        assert answer.headers["Transfer-Encoding"] == "chunked"
        assert answer.body == b"piece 0\npiece 1\npiece 2\n"
        assert connection.answer().body == b"hello\n"


def test_restarted_answer(server):
    with server.raw() as connection:
        connection.send(head("GET /restart HTTP/1.1"))
        answer = connection.answer()
        assert answer.status == 409 and "X-Gone" not in answer.headers
        assert answer.body == b"restarted\n"


def test_silent_and_short_handlers(server):
    with server.raw() as connection:
        connection.send(head("GET /silent HTTP/1.1"))
        assert connection.answer().status == 500
    with server.raw() as connection:
        connection.send(head("GET /short HTTP/1.1") + HELLO)
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            connection.answer()


def test_http_1_0(server):
    with server.raw() as connection:
        connection.send(b"GET /hello HTTP/1.0\r\n\r\n" + HELLO)
        assert connection.answer().body == b"hello\n"
        assert connection.rest() == b""
    with server.raw() as connection:
        connection.send(b"GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + HELLO)
        assert connection.answer().headers["Connection"] == "keep-alive"
        assert connection.answer().body == b"hello\n"
    with server.raw() as connection:
        connection.send(b"GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        answer = connection.answer()
        assert "Transfer-Encoding" not in answer.headers
        assert answer.headers["Connection"] == "close"
        assert answer.body == b"piece 0\npiece 1\npiece 2\n"


def test_connection_close(server):
    with server.raw() as connection:
        connection.send(head("GET /hello HTTP/1.1", "Connection: close") + HELLO)
        assert connection.answer().headers["Connection"] == "close"
        assert connection.rest() == b""


def test_handed_over_connection(server):
    with server.raw() as connection:
        connection.send(head("GET /upgrade HTTP/1.1", "Connection: upgrade", "Upgrade: echo")
                        + b"early ")
        line = connection.reader.readline()
        assert line == b"HTTP/1.1 101 Switching Protocols\r\n"
        while connection.reader.readline() != b"\r\n":
            pass
        connection.send(b"late")
        assert connection.reader.read(10) == b"early late"


# -- time and numbers ----------------------------------------------------------------------------

def seconds_until_closed(connection):
    began = time.monotonic()
    connection.socket.settimeout(30)
    with contextlib.suppress(ConnectionResetError):
        connection.reader.read()
    return time.monotonic() - began


def test_connection_that_says_nothing(quick):
    with quick.raw() as connection:
        assert 0.4 < seconds_until_closed(connection)


def test_idle_connection(quick):
    with quick.raw() as connection:
        connection.send(HELLO)
        assert connection.answer().status == 200
        assert 0.4 < seconds_until_closed(connection)


def test_slow_loris(quick):
    """A byte now and then does not keep a head alive, and others are served meanwhile."""
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(quick.raw()) for _ in range(100)]
        began = time.monotonic()
        request = b"GET /hello HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 100
        answers = {}
        for i in range(len(request)):
            for connection in slow:
                if connection in answers:
                    continue
                try:
                    connection.send(request[i:i + 1])
                except ConnectionError:
                    answers[connection] = time.monotonic() - began
            with quick.raw() as other:
                other.send(HELLO)
                assert other.answer().status == 200
            time.sleep(0.1)
            if time.monotonic() - began > 2.5:
                break
        answer = slow[0].answer()
        assert answer.status == 400 and b"<Code>RequestTimeout</Code>" in answer.body
        for connection in slow[1:]:
            assert connection.closed(1) or b"RequestTimeout" in connection.rest()


@pytest.mark.slow
def test_stalled_body_ends(big_file):
    """The rate is averaged over 20 s."""
    with running("--file", big_file, "--min-body-rate", 1 << 20) as server:
        with server.raw(timeout=40) as stalled, server.raw(timeout=40) as moving:
            stalled.send(head("PUT /count HTTP/1.1", "Content-Length: 100000000") + b"x")
            moving.send(head("PUT /count HTTP/1.1", f"Content-Length: {48 << 20}"))
            for _ in range(48):
                moving.send(b"y" * (1 << 20))
                time.sleep(0.45)
            answer = stalled.answer()
            assert answer.status == 400 and answer.body == b"RequestTimeout"
            assert moving.answer().status == 200


@pytest.mark.slow
def test_slow_readers_live_and_stalled_ones_go(server, big_file):
    """A case from other servers' trackers: downloads that nobody reads used up all workers."""
    whole = big_file.read_bytes()
    with contextlib.ExitStack() as stack:
        stalled = [stack.enter_context(server.raw(timeout=60)) for _ in range(50)]
        slow = stack.enter_context(server.raw(timeout=60))
        for connection in [*stalled, slow]:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            connection.send(head(f"GET /file?{8 << 20} HTTP/1.1"))
        seen = b""
        began = time.monotonic()
        while time.monotonic() - began < 45:
            seen += slow.socket.recv(10_000)
            with server.raw() as other:
                other.send(HELLO)
                assert other.answer().status == 200
            time.sleep(0.2)
        assert server.stats()["open"] <= 3
        while not seen.endswith(whole[-64:]):
            seen += slow.socket.recv(1 << 20)
        assert seen.endswith(whole)


def until(condition, limit_s=60):
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def status_of_new(server):
    with server.raw() as connection:
        connection.send(HELLO)
        return connection.answer().status


def test_too_many_connections():
    with running("--max-connections", 20) as server, contextlib.ExitStack() as stack:
        connections = [stack.enter_context(server.raw()) for _ in range(20)]
        for connection in connections:
            connection.send(HELLO)
            assert connection.answer().status == 200
        with server.raw() as connection:
            connection.send(HELLO)
            answer = connection.answer()
            assert answer.status == 503 and answer.headers["Retry-After"] == "1"
            assert connection.rest() == b""
        connections[0].close()
        until(lambda: status_of_new(server) == 200)


def test_out_of_descriptors():
    """No spinning, and once descriptors are free those who waited are served."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    with running(preexec_fn=limit) as server, contextlib.ExitStack() as stack:
        connections = [stack.enter_context(server.raw()) for _ in range(60)]
        served = connections[0]
        served.send(HELLO)
        assert served.answer().status == 200

        def cpu_us():
            served.send(head("GET /stats HTTP/1.1"))
            return json.loads(served.answer().body)["cpu_us"]

        before = cpu_us()
        time.sleep(1)
        assert cpu_us() - before < 200_000
        # all that wait before the last one: how many there is room for depends on libuv's own
        for connection in connections[1:59]:
            connection.close()
        connections[59].send(HELLO)
        assert connections[59].answer().status == 200


def test_stop_finishes_what_runs(big_file):
    with running("--file", big_file) as server:
        with server.raw() as busy, server.raw() as idle:
            idle.send(HELLO)
            assert idle.answer().status == 200
            busy.send(head("GET /sleep?2000 HTTP/1.1"))
            time.sleep(0.5)
            server.process.send_signal(signal.SIGTERM)
            assert idle.closed()
            answer = busy.answer()
            assert answer.body == b"hello\n" and answer.headers["Connection"] == "close"
            with pytest.raises(OSError):
                server.raw()
        # A second signal while it ends would end it by that signal.
        assert server.process.wait(15) == 0


def test_stop_breaks_what_hangs():
    """The grace of the test server is 3 s."""
    with running() as server, server.raw() as stalled:
        stalled.send(head("PUT /count HTTP/1.1", "Content-Length: 10") + b"x")
        time.sleep(0.2)
        began = time.monotonic()
        assert server.stop() == 0
        assert 2 < time.monotonic() - began


def test_statistics(big_file):
    with running("--file", big_file) as server:
        with server.raw() as connection:
            connection.send(HELLO * 3)
            for _ in range(3):
                connection.answer()
        with server.raw() as connection:
            connection.send(b"GET /x HTTP/1.1\r\n\r\n")
            connection.rest()
        until(lambda: server.stats()["open"] == 1)
        stats = server.stats()
        asked = stats["accepted"] - 2
        assert stats["requests"] == 3 + asked and stats["refused"] == 1
        assert stats["bytes_in"] >= 3 * len(HELLO)


# -- addresses -----------------------------------------------------------------------------------

def start_fails(listen):
    result = subprocess.run([str(BINARY), "--listen", listen], capture_output=True, text=True,
                            timeout=90)
    return result.returncode, result.stderr


@pytest.mark.parametrize("reuse_port", [False, True])
def test_taken_port_names_its_holder(reuse_port):
    with socket.socket() as holder:
        if reuse_port:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        for address in (f"127.0.0.1:{port}", f"0.0.0.0:{port}", f"[::]:{port}", f":{port}"):
            code, message = start_fails(address)
            assert code == 13 and str(port) in message and f"(pid {os.getpid()})" in message


def test_two_servers_on_one_port(server):
    code, message = start_fails(server.address)
    assert code == 13 and f"(pid {server.process.pid})" in message


def test_unix_socket(tmp_path):
    path = tmp_path / "admin.sock"
    with running(listen=f"unix:{path}"):
        assert path.stat().st_mode & 0o777 == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(HELLO)
            assert client.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
        code, message = start_fails(f"unix:{path}")
        assert code == 13 and "in use" in message
    assert not path.exists()


def test_unix_socket_of_a_killed_process(tmp_path):
    path = tmp_path / "admin.sock"
    killed = Server(listen=f"unix:{path}")
    killed.process.kill()
    killed.process.wait()
    assert path.exists()
    with running(listen=f"unix:{path}"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


# -- TLS -----------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    return certificates.make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def tls_server(certs, big_file):
    with running("--cert", certs / "server.crt", "--key", certs / "server.key", "--file",
                 big_file) as server:
        yield server


def client_context(certs, version=None, alpn=("http/1.1",)):
    context = ssl.create_default_context(cafile=str(certs / "ca.crt"))
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("version", VERSIONS)
def test_tls(tls_server, certs, big_file, version):
    body = random.Random(5).randbytes(3 << 20)
    with tls_server.raw(tls=client_context(certs, version)) as connection:
        assert connection.socket.selected_alpn_protocol() == "http/1.1"
        connection.send(HELLO + head("PUT /count HTTP/1.1", f"Content-Length: {len(body)}") + body
                        + head("GET /file?8000000 HTTP/1.1") + head("GET /show HTTP/1.1") + HELLO)
        assert connection.answer().body == b"hello\n"
        assert connection.answer().body == body_hash(body)
        assert connection.answer().body == big_file.read_bytes()[:8_000_000]
        assert show(connection.answer())["tls"] == "1"
        assert connection.answer().body == b"hello\n"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("pieces", [1, 50])
def test_tls_in_pieces(tls_server, certs, version, pieces):
    with tls_server.raw(tls=client_context(certs, version)) as connection:
        connection.send_slowly(HELLO + head("PUT /count HTTP/1.1", "Content-Length: 5") + b"hello"
                               + HELLO, pieces)
        assert connection.answer().body == b"hello\n"
        assert connection.answer().body == body_hash(b"hello")
        assert connection.answer().body == b"hello\n"


def test_tls_chunked_and_echo(tls_server, certs):
    body = random.Random(6).randbytes(1 << 20)
    with tls_server.raw(tls=client_context(certs)) as connection:
        connection.send(head("PUT /count HTTP/1.1", "Transfer-Encoding: chunked")
                        + chunk(body, random.Random(7), 50_000))
        assert connection.answer().body == body_hash(body)
        connection.send(head("PUT /echo HTTP/1.1", "Content-Length: 20000") + body[:20000])
        assert connection.answer().body == body[:20000]


def test_tls_refuses(tls_server, certs):
    old = client_context(certs)
    old.minimum_version = ssl.TLSVersion.TLSv1_1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.raises(OSError):
        tls_server.raw(tls=old)
    with pytest.raises(OSError):
        tls_server.raw(tls=client_context(certs, alpn=("h2",)))
    tls_server.raw(tls=client_context(certs, alpn=())).close()
    with tls_server.raw() as plain:
        plain.send(HELLO)
        assert plain.closed() or plain.rest() != b""
    tls_server.raw(tls=client_context(certs, alpn=("h2", "http/1.1"))).close()


def test_tls_client_that_never_shakes_hands(certs):
    with running("--cert", certs / "server.crt", "--key", certs / "server.key",
                 "--header-timeout-ms", 600, "--first-byte-timeout-ms", 600) as server:
        with server.raw() as silent, server.raw() as half:
            half.send(b"\x16\x03\x01")
            assert half.closed(30)
            assert silent.closed(30)


def serial_of(connection):
    return connection.socket.getpeercert()["serialNumber"]


def test_tls_reload(certs, big_file, tmp_path):
    for name in ("server.crt", "server.key"):
        (tmp_path / name).write_bytes((certs / name).read_bytes())
    with running("--cert", tmp_path / "server.crt", "--key", tmp_path / "server.key") as server:
        context = client_context(certs)
        with server.raw(tls=context) as old:
            old.send(HELLO)
            assert old.answer().status == 200
            fresh = certificates.make_certificates(tmp_path / "fresh")
            for name in ("server.crt", "server.key"):
                (tmp_path / name).write_bytes((fresh / name).read_bytes())
            server.process.send_signal(signal.SIGHUP)
            assert server.line() == "reloaded\n"
            with server.raw(tls=client_context(fresh)) as new:
                new.send(HELLO)
                assert new.answer().status == 200
                assert serial_of(new) != serial_of(old)
            old.send(HELLO)
            assert old.answer().status == 200


def test_broken_certificates_are_named(tmp_path, certs):
    result = subprocess.run([str(BINARY), "--cert", str(tmp_path / "none.crt"), "--key",
                             str(certs / "server.key"), "--listen", "127.0.0.1:x"],
                            capture_output=True, text=True, timeout=90)
    assert "none.crt" in result.stderr and result.returncode != 0

"""The test helpers themselves: a helper that signs wrongly would prove nothing."""
import datetime
import http.client
import socket
import threading

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest

import rawhttp
import sigv4

# AWS, "Signature calculations: transferring a payload in multiple chunks": the published example.
EXAMPLE = sigv4.Signer("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                       at=datetime.datetime(2013, 5, 24))
EXAMPLE_HEADERS = [("Host", "s3.amazonaws.com"),
                   ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
                   ("Content-Encoding", "aws-chunked"),
                   ("x-amz-decoded-content-length", "66560"), ("Content-Length", "66824")]
EXAMPLE_TARGET = "/examplebucket/chunkObject.txt"


def test_published_chunk_signatures():
    headers = EXAMPLE.headers("PUT", EXAMPLE_TARGET, EXAMPLE_HEADERS, sigv4.STREAMING)
    assert sigv4.signature_of(headers) == (
        "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9")
    body = sigv4.chunked_body(EXAMPLE, headers, b"a" * 66560, sigv4.STREAMING)
    assert len(body) == 66824 == sigv4.chunked_length(66560, sigv4.STREAMING)
    for signature in (b"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
                      b"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
                      b"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"):
        assert b";chunk-signature=" + signature in body


def test_published_trailer_signatures():
    headers = [("Host", "s3.amazonaws.com"), ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
               ("Content-Encoding", "aws-chunked"), ("x-amz-decoded-content-length", "66560"),
               ("x-amz-trailer", "x-amz-checksum-crc32c")]
    headers = EXAMPLE.headers("PUT", EXAMPLE_TARGET, headers, sigv4.STREAMING_TRAILER)
    assert sigv4.signature_of(headers) == (
        "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e")
    body = sigv4.chunked_body(EXAMPLE, headers, b"a" * 66560, sigv4.STREAMING_TRAILER,
                              trailers=[("x-amz-checksum-crc32c", "sOO8/Q==")])
    assert b"2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992" in body
    assert body.endswith(b"x-amz-trailer-signature:"
                         b"d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n")


@pytest.mark.parametrize("target", [
    "/b/k", "/b/a%20b", "/b/%C3%BC", "/b//x/../y/./z", "/b/a%2Fb", "/b/k?a=1&b=2",
    "/b/k?b=2&a=1&a=0", "/b/k?prefix=a%20b&delimiter=%2F", "/b?list-type=2&marker=", "/b?acl",
    "/b/~-_.", "/b/k?x=%2B%25",
])
def test_signs_as_botocore_does(target):
    when = datetime.datetime.now(datetime.timezone.utc)
    signer = sigv4.Signer("access", "secret", at=when)
    mine = signer.headers("GET", target, [("Host", "localhost:1")], sigv4.UNSIGNED)
    request = botocore.awsrequest.AWSRequest("GET", f"http://localhost:1{target}",
                                             headers={"Host": "localhost:1"})
    request.context["timestamp"] = when.strftime("%Y%m%dT%H%M%SZ")
    request.headers["X-Amz-Date"] = request.context["timestamp"]
    request.headers["X-Amz-Content-SHA256"] = sigv4.UNSIGNED
    auth = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials("access", "secret"), "s3",
                                     "us-east-1")
    text = auth.string_to_sign(request, auth.canonical_request(request))
    assert sigv4.signature_of(mine) == auth.signature(text, request)


@pytest.fixture
def scripted_peer():
    """scripted_peer(bytes) -> (host, port) of a peer that reads once, answers so and closes."""
    listeners = []

    def serve(answer):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def run():
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        threading.Thread(target=run, daemon=True).start()
        return listener.getsockname()

    yield serve
    for listener in listeners:
        listener.close()


def test_raw_connection_reads_pipelined_answers(scripted_peer):
    answer = (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"
              b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n"
              b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n")
    with rawhttp.RawConnection(*scripted_peer(answer)) as connection:
        connection.send(b"anything")
        assert connection.interim().status == 100
        first = connection.answer()
        assert (first.status, first.body) == (200, b"abc")
        second = connection.answer()
        assert (second.status, second.body) == (404, b"xy")
        assert connection.answer("HEAD").body == b""
        assert connection.closed()
        with pytest.raises(http.client.HTTPException):
            connection.answer()


def test_database_of_the_run(cassandra, keyspace):
    session = cassandra.session()
    session.execute(f"CREATE TABLE {keyspace}.t (k text PRIMARY KEY, v int)")
    insert = f"INSERT INTO {keyspace}.t (k, v) VALUES ('a', 1) IF NOT EXISTS"
    assert session.execute(insert).one().applied
    assert not session.execute(insert).one().applied
    assert session.execute(f"SELECT v FROM {keyspace}.t WHERE k = 'a'").one().v == 1

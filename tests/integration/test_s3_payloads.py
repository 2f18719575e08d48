"""How bodies arrive: the payload modes, chunk framing, trailers, Expect, lengths: spec items 6, 10 to
18; public cases B06, B10, B12 to B18, B32."""
import hashlib

import pytest

import sigv4
from s3util import HELLO_CHECKSUMS, HELLO_MD5, code_of, crc32_base64

CHUNKED = [sigv4.STREAMING, sigv4.STREAMING_TRAILER, sigv4.STREAMING_UNSIGNED_TRAILER]
CRC32 = "x-amz-checksum-crc32"


@pytest.mark.parametrize("mode", [None, sigv4.UNSIGNED, *CHUNKED])
@pytest.mark.parametrize("size", [0, 5, 65536, 65537, 300000, 1500000])
def test_modes(raw, bucket, rng, mode, size):
    data = b"hello" if size == 5 else rng.randbytes(size)
    trailers = [(CRC32, crc32_base64(data))] if mode in CHUNKED[1:] else []
    answer = raw("PUT", f"/{bucket}/k", body=data, mode=mode, trailers=trailers)
    assert answer.status == 200, answer.body
    assert answer.headers["ETag"] == f'"{hashlib.md5(data).hexdigest()}"'
    if trailers:
        assert answer.headers[CRC32] == trailers[0][1]
    answer = raw("GET", f"/{bucket}/k", headers=[("x-amz-checksum-mode", "ENABLED")])
    assert answer.body == data
    assert answer.headers["Content-Encoding"] is None
    assert answer.headers[CRC32] == (trailers[0][1] if trailers else None)


@pytest.mark.parametrize("mode", CHUNKED)
def test_one_byte_at_a_time(server, raw, bucket, mode):
    trailers = [(CRC32, HELLO_CHECKSUMS["crc32"])] if mode in CHUNKED[1:] else []
    data = sigv4.request_bytes(server.signer(), "PUT", f"/{bucket}/k", server.netloc,
                               body=b"hello", mode=mode, trailers=trailers)
    with server.connect() as connection:
        connection.send_slowly(data)
        assert connection.answer().headers["ETag"] == f'"{HELLO_MD5}"'
    assert raw("GET", f"/{bucket}/k").body == b"hello"


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 8193])
def test_unsigned_chunks_of_any_size(raw, bucket, chunk_size):
    answer = raw("PUT", f"/{bucket}/k", body=b"hello" * 2000,
                 mode=sigv4.STREAMING_UNSIGNED_TRAILER, chunk_size=chunk_size)
    assert answer.status == 200
    assert raw("GET", f"/{bucket}/k").body == b"hello" * 2000


def chunked_request(server, bucket, mode, body, headers=(), length=None, decoded=5):
    """A request whose signature is right and whose body is what the test wants."""
    all_headers = [("Host", server.netloc), ("Content-Length", str(length or len(body))), *headers]
    if decoded is not None:
        all_headers.append(("x-amz-decoded-content-length", str(decoded)))
    signed = server.signer().headers("PUT", f"/{bucket}/k", all_headers, mode)
    head = f"PUT /{bucket}/k HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in signed)
    with server.connect() as connection:
        connection.send(head.encode() + b"\r\n" + body)
        return connection.answer()


GOOD_TRAILER = CRC32 + ":" + HELLO_CHECKSUMS["crc32"]


@pytest.mark.parametrize("body, trailer, status, codes", [
    ("5\r\nhello\r\n0\r\n" + GOOD_TRAILER + "\r\n\r\n", CRC32, 200, None),
    ("5\r\nhello\r\n0\r\n\r\n", None, 200, None),
    ("2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", None, 200, None),
    ("5\r\nhello\r\n0\r\n\r\n", CRC32, 400, ["MalformedTrailerError"]),
    ("5\r\nhello\r\n0\r\nx-amz-checksum-crc32 NhCmhg==\r\n\r\n", CRC32, 400,
     ["MalformedTrailerError"]),
    ("5\r\nhello\r\n0\r\n" + GOOD_TRAILER + "\r\n" + GOOD_TRAILER + "\r\n\r\n", CRC32, 400,
     ["MalformedTrailerError"]),
    ("5\r\nhello\r\n0\r\nx-amz-checksum-sha1:qvTGHdzF6KLavt4PO0gs2a6pQ00=\r\n\r\n", CRC32, 400,
     ["MalformedTrailerError"]),
    ("5\r\nhello\r\n0\r\n" + CRC32 + ":AAAAAA==\r\n\r\n", CRC32, 400, ["BadDigest"]),
    ("5\r\nhello\r\n0\r\n" + CRC32 + ":AAAA\r\n\r\n", CRC32, 400, ["BadDigest"]),
    ("5\r\nhello\r\n0\r\n\r\n", "x-amz-checksum-md5", 400, ["InvalidRequest"]),
    ("4\r\nhell\r\n0\r\n\r\n", None, 400, ["IncompleteBody"]),
    ("6\r\nhello!\r\n0\r\n\r\n", None, 400, ["IncompleteBody"]),
    ("5\r\nhelloX\r\n0\r\n\r\n", None, 400, ["IncompleteBody"]),
    ("5\r\nhello\r\n", None, 400, ["IncompleteBody"]),
    ("0x5\r\nhello\r\n0\r\n\r\n", None, 400, ["IncompleteBody"]),
    ("-5\r\nhello\r\n0\r\n\r\n", None, 400, ["IncompleteBody"]),
    ("FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n", None, 400, ["IncompleteBody"]),
    ("11111111111111111111\r\nhello\r\n0\r\n\r\n", None, 400, ["IncompleteBody"]),
])
def test_unsigned_framing(server, raw, bucket, body, trailer, status, codes):
    headers = [("x-amz-trailer", trailer)] if trailer else []
    answer = chunked_request(server, bucket, sigv4.STREAMING_UNSIGNED_TRAILER, body.encode(),
                             headers)
    assert answer.status == status, answer.body
    if codes:
        assert code_of(answer) in codes
        assert raw("GET", f"/{bucket}/k").status == 404
    else:
        assert raw("GET", f"/{bucket}/k").body == b"hello"


def test_decoded_length_is_needed(server, bucket):
    answer = chunked_request(server, bucket, sigv4.STREAMING_UNSIGNED_TRAILER,
                             b"5\r\nhello\r\n0\r\n\r\n", decoded=None)
    assert (answer.status, code_of(answer)) == (411, "MissingContentLength")


@pytest.mark.parametrize("mode", [sigv4.STREAMING, sigv4.STREAMING_TRAILER])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_wrong_chunk_signatures(server, raw, bucket, mode, which):
    """The seed, the first chunk, the last (empty) one."""
    trailers = [(CRC32, HELLO_CHECKSUMS["crc32"])] if mode == sigv4.STREAMING_TRAILER else []
    data = sigv4.request_bytes(server.signer(), "PUT", f"/{bucket}/k", server.netloc,
                               body=b"hello", mode=mode, trailers=trailers)
    marks = [b"Signature=", b"5;chunk-signature=", b"\r\n0;chunk-signature="]
    at = data.index(marks[which]) + len(marks[which])
    data = data[:at] + (b"0" if data[at:at + 1] != b"0" else b"1") + data[at + 1:]
    with server.connect() as connection:
        connection.send(data)
        answer = connection.answer()
    assert (answer.status, code_of(answer)) == (403, "SignatureDoesNotMatch")
    assert raw("GET", f"/{bucket}/k").status == 404


def test_small_signed_chunks(raw, bucket):
    answer = raw("PUT", f"/{bucket}/k", body=b"x" * 200, mode=sigv4.STREAMING, chunk_size=100)
    assert (answer.status, code_of(answer)) == (400, "InvalidChunkSizeError")


def test_hash_of_another_body(server, raw, bucket):
    headers = [("x-amz-content-sha256", sigv4.sha256_hex(b"other"))]
    signed = server.signer().headers(
        "PUT", f"/{bucket}/k", [("Host", server.netloc), ("Content-Length", "5"), *headers],
        sigv4.sha256_hex(b"other"))
    head = f"PUT /{bucket}/k HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in signed)
    with server.connect() as connection:
        connection.send(head.encode() + b"\r\nhello")
        answer = connection.answer()
    assert (answer.status, code_of(answer)) == (400, "XAmzContentSHA256Mismatch")
    assert raw("GET", f"/{bucket}/k").status == 404


def test_lengths(server, raw, bucket):
    signer = server.signer()
    data = sigv4.request_bytes(signer, "PUT", f"/{bucket}/k", server.netloc, content_length=False)
    with server.connect() as connection:
        connection.send(data)
        answer = connection.answer()
        assert (answer.status, code_of(answer)) == (411, "MissingContentLength")
    data = sigv4.request_bytes(signer, "PUT", f"/{bucket}/k", server.netloc,
                               [("Transfer-Encoding", "chunked")], mode=sigv4.UNSIGNED)
    with server.connect() as connection:
        connection.send(data + b"5\r\nhello\r\n3\r\n!!!\r\n0\r\n\r\n")
        assert connection.answer().status == 200
    assert raw("GET", f"/{bucket}/k").body == b"hello!!!"
    answer = raw("PUT", f"/{bucket}/k", headers=[("Content-Length", str(5 * 2**30 + 1))],
                 mode=sigv4.UNSIGNED)
    assert (answer.status, code_of(answer)) == (400, "EntityTooLarge")


def test_expect_continue(server, bucket):
    headers = [("Expect", "100-continue"), ("Content-Length", "5")]
    with server.connect() as connection:
        for _ in range(2):
            data = sigv4.request_bytes(server.signer(), "PUT", f"/{bucket}/k", server.netloc,
                                       headers, mode=sigv4.UNSIGNED)
            connection.send(data)
            connection.interim()
            connection.send(b"hello")
            assert connection.answer().status == 200


@pytest.mark.parametrize("target, headers, status", [
    ("/no-such-bucket-here/k", [], 404),
    ("/{bucket}/k", [("Content-MD5", "bad")], 400),
    ("/{bucket}/k", [("If-None-Match", "*")], 412),
    ("/{bucket}/k", [("x-amz-acl", "nonsense")], 400),
    ("/{bucket}/k?nonsense", [], 501),
])
def test_refused_before_the_body(server, client, bucket, target, headers, status):
    """A final answer instead of 100 Continue, and the connection ends: the body never came."""
    client.put_object(Bucket=bucket, Key="k", Body=b"there")
    data = sigv4.request_bytes(
        server.signer(), "PUT", target.format(bucket=bucket), server.netloc,
        [("Expect", "100-continue"), ("Content-Length", "5"), *headers], mode=sigv4.UNSIGNED)
    with server.connect() as connection:
        connection.send(data)
        answer = connection.answer(skip_continue=True)
        assert answer.status == status
        assert answer.headers["Connection"] == "close"
        assert connection.closed()


def test_refused_with_the_body_sent(server, client, bucket):
    """The next request on the connection is read from its first byte, or the connection ends."""
    client.put_object(Bucket=bucket, Key="k", Body=b"hello")
    put = sigv4.request_bytes(server.signer(), "PUT", "/no-such-bucket-here/k", server.netloc,
                              body=b"x" * 3000)
    get = sigv4.request_bytes(server.signer(), "GET", f"/{bucket}/k", server.netloc)
    with server.connect() as connection:
        connection.send(put + get)
        assert connection.answer().status == 404
        assert connection.answer().body == b"hello"


def test_presigned_lifetimes(server, bucket, client):
    client.put_object(Bucket=bucket, Key="k", Body=b"hello")

    def get(expires):
        target = server.signer().presign("GET", f"/{bucket}/k", server.netloc, expires)
        with server.connect() as connection:
            connection.send(f"GET {target} HTTP/1.1\r\nHost: {server.netloc}\r\n\r\n".encode())
            return connection.answer()

    assert get(300).body == b"hello"
    assert get(604800).status == 200
    for expires in (0, -1, 604801):
        assert get(expires).status == 403


def test_presigned_put(server, client, bucket):
    target = server.signer().presign("PUT", f"/{bucket}/k", server.netloc)
    with server.connect() as connection:
        connection.send(f"PUT {target} HTTP/1.1\r\nHost: {server.netloc}\r\nContent-Length: 5"
                        "\r\n\r\nhello".encode())
        assert connection.answer().status == 200
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"hello"


def test_upload_that_breaks_off_leaves_nothing(server, raw, bucket):
    data = sigv4.request_bytes(server.signer(), "PUT", f"/{bucket}/k", server.netloc,
                               [("Content-Length", "1000000")], mode=sigv4.UNSIGNED)
    with server.connect() as connection:
        connection.send(data + b"x" * 500000)
    assert raw("GET", f"/{bucket}/k").status == 404

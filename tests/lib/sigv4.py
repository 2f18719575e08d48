"""Signature version 4 by hand: requests as bytes that no library tidies up.

Everything is computed from what is sent: the target goes on the wire exactly as given, while the
canonical request is made from it by AWS's rules, so that odd paths, double slashes, dot segments
and odd queries can be tested. All payload modes. Source: AWS, "Signature Version 4 for API
requests" and "Signature calculations: transferring a payload in multiple chunks". Standard library
only.
"""
import datetime
import hashlib
import hmac
import re
import urllib.parse

EMPTY = hashlib.sha256(b"").hexdigest()
UNSIGNED = "UNSIGNED-PAYLOAD"
STREAMING = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
STREAMING_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
STREAMING_UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


def uri_encode(data):
    return urllib.parse.quote(data, safe="-_.~")


def canonical_path(target):
    """The path as it is sent, with nothing normalised: the signers of the SDKs do not look inside
    escapes either. Bytes that may not stand in a path are escaped."""
    path = target.split("?", 1)[0]
    return urllib.parse.quote(path.encode("latin-1"), safe="/-_.~%") or "/"


def canonical_query(target, without=()):
    if "?" not in target:
        return ""
    pairs = []
    for item in target.split("?", 1)[1].split("&"):
        if item == "":
            continue
        name, _, value = item.partition("=")
        name = uri_encode(urllib.parse.unquote_to_bytes(name))
        if name not in without:
            pairs.append((name, uri_encode(urllib.parse.unquote_to_bytes(value))))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def sha256_hex(data):
    return hashlib.sha256(data).hexdigest()


class Signer:
    """One identity. `at` fixes the time (a datetime in UTC), else it is now."""

    def __init__(self, access_key, secret_key, region="us-east-1", service="s3", at=None):
        self.access_key = access_key
        self.secret_key = secret_key
        self.region = region
        self.service = service
        self.at = at

    def stamp(self):
        now = self.at or datetime.datetime.now(datetime.timezone.utc)
        return now.strftime("%Y%m%dT%H%M%SZ")

    def scope(self, stamp):
        return f"{stamp[:8]}/{self.region}/{self.service}/aws4_request"

    def key(self, stamp):
        key = ("AWS4" + self.secret_key).encode()
        for part in (stamp[:8], self.region, self.service, "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key

    def sign_text(self, stamp, text):
        return hmac.new(self.key(stamp), text.encode(), hashlib.sha256).hexdigest()

    def signature(self, stamp, canonical):
        text = "\n".join(("AWS4-HMAC-SHA256", stamp, self.scope(stamp),
                          sha256_hex(canonical.encode("latin-1"))))
        return self.sign_text(stamp, text)

    def headers(self, method, target, headers, payload_hash):
        """`headers` with x-amz-date, x-amz-content-sha256 and Authorization behind them. All given
        headers are signed; a header given already is kept, right or wrong."""
        names = {name.lower() for name, _ in headers}
        headers = list(headers)
        stamp = next((v for n, v in headers if n.lower() == "x-amz-date"), None) or self.stamp()
        if "x-amz-date" not in names:
            headers.append(("x-amz-date", stamp))
        if "x-amz-content-sha256" not in names:
            headers.append(("x-amz-content-sha256", payload_hash))
        canonical, signed = canonical_request(method, target, headers, payload_hash)
        headers.append(("Authorization",
                        f"AWS4-HMAC-SHA256 Credential={self.access_key}/{self.scope(stamp)}, "
                        f"SignedHeaders={signed}, Signature={self.signature(stamp, canonical)}"))
        return headers

    def presign(self, method, target, host, expires=300, headers=(), payload_hash=UNSIGNED):
        """The target with the signature in its query; `headers` are signed and must be sent."""
        stamp = self.stamp()
        signed_headers = [("Host", host), *headers]
        signed = ";".join(sorted(name.lower() for name, _ in signed_headers))
        credential = urllib.parse.quote(f"{self.access_key}/{self.scope(stamp)}", safe="")
        query = (f"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}"
                 f"&X-Amz-Date={stamp}&X-Amz-Expires={expires}"
                 f"&X-Amz-SignedHeaders={urllib.parse.quote(signed, safe='')}")
        target += ("&" if "?" in target else "?") + query
        canonical, _ = canonical_request(method, target, signed_headers, payload_hash)
        return f"{target}&X-Amz-Signature={self.signature(stamp, canonical)}"


def canonical_request(method, target, headers, payload_hash):
    values = {}
    for name, value in headers:
        text = re.sub(r" +", " ", value.strip(" \t"))
        values.setdefault(name.lower(), []).append(text)
    signed = ";".join(sorted(values))
    lines = "".join(f"{name}:{','.join(values[name])}\n" for name in sorted(values))
    canonical = "\n".join((method, canonical_path(target), canonical_query(target), lines, signed,
                           payload_hash))
    return canonical, signed


def signature_of(headers):
    """The signature in an Authorization header: the seed of a chunk chain."""
    value = next(value for name, value in headers if name == "Authorization")
    return value.rsplit("Signature=", 1)[1]


def chunks(data, size):
    for at in range(0, len(data), size):
        yield data[at:at + size]
    yield b""


def chunked_body(signer, headers, data, mode, chunk_size=64 * 1024, trailers=()):
    """The aws-chunked form of `data`, for headers that Signer.headers made with payload_hash=mode.

    trailers: (name, value) pairs; signed when the mode says so.
    """
    if mode == STREAMING_UNSIGNED_TRAILER:
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in chunks(data, chunk_size)
                        if part) + b"0\r\n"
        return body + b"".join(f"{n}:{v}\r\n".encode() for n, v in trailers) + b"\r\n"
    stamp = next(value for name, value in headers if name.lower() == "x-amz-date")
    previous = signature_of(headers)
    body = b""
    for part in chunks(data, chunk_size):
        previous = signer.sign_text(stamp, "\n".join(
            ("AWS4-HMAC-SHA256-PAYLOAD", stamp, signer.scope(stamp), previous, EMPTY,
             sha256_hex(part))))
        body += b"%x;chunk-signature=%s\r\n" % (len(part), previous.encode())
        body += part + b"\r\n" if part else b""
    if mode == STREAMING:
        return body + b"\r\n"
    lines = "".join(f"{name}:{value}\n" for name, value in trailers)
    last = signer.sign_text(stamp, "\n".join(
        ("AWS4-HMAC-SHA256-TRAILER", stamp, signer.scope(stamp), previous,
         sha256_hex(lines.encode()))))
    body += b"".join(f"{name}:{value}\r\n".encode() for name, value in trailers)
    return body + f"x-amz-trailer-signature:{last}\r\n\r\n".encode()


def chunked_length(size, mode, chunk_size=64 * 1024, trailers=()):
    """Length of chunked_body, needed in Content-Length before the signature is known."""
    class Fixed(Signer):
        def sign_text(self, stamp, text):
            return "0" * 64
    headers = [("x-amz-date", "20260101T000000Z"), ("Authorization", "Signature=0")]
    return len(chunked_body(Fixed("a", "b"), headers, bytes(size), mode, chunk_size, trailers))


def request_bytes(signer, method, target, host, headers=(), body=b"", mode=None, chunk_size=65536,
                  trailers=(), content_length=True):
    """A whole signed request. mode: None signs the hash of the body; else one of the modes above.
    signer None sends it unsigned. Headers keep their order and spelling."""
    headers = [("Host", host), *headers]
    if mode in (STREAMING, STREAMING_TRAILER, STREAMING_UNSIGNED_TRAILER):
        headers.append(("x-amz-decoded-content-length", str(len(body))))
        headers.append(("Content-Encoding", "aws-chunked"))
        if trailers:
            headers.append(("x-amz-trailer", ",".join(name for name, _ in trailers)))
        length = chunked_length(len(body), mode, chunk_size, trailers)
        headers.append(("Content-Length", str(length)))
        headers = signer.headers(method, target, headers, mode)
        body = chunked_body(signer, headers, body, mode, chunk_size, trailers)
    else:
        given = any(name.lower() in ("content-length", "transfer-encoding")
                    for name, _ in headers)
        if content_length and not given and (body or method in ("PUT", "POST")):
            headers.append(("Content-Length", str(len(body))))
        if signer is not None:
            headers = signer.headers(method, target, headers, mode or sha256_hex(body))
    head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers)
    return head.encode("latin-1") + b"\r\n" + body

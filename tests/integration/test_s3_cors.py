"""Cross-origin rules and preflights: spec/s3-wire.md 80 and the public bug reports B81, B83."""
import pytest

from s3util import refusal_of, status_and_code

METHOD = "Access-Control-Request-Method"
HEADERS = "Access-Control-Request-Headers"
ALLOW_ORIGIN = "Access-Control-Allow-Origin"
ALLOW_METHODS = "Access-Control-Allow-Methods"


@pytest.fixture
def ask(server, bucket):
    """ask(method, key, header=value, ...) -> the answer to an unsigned request."""
    def send(method, key, headers):
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        length = "Content-Length: 0\r\n" if method == "PUT" else ""
        with server.connect() as connection:
            connection.send(f"{method} /{bucket}{key} HTTP/1.1\r\nHost: {server.netloc}\r\n"
                            f"{lines}{length}\r\n".encode())
            return connection.answer(method)
    return send


def put_rules(client, bucket, *rules):
    client.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": list(rules)})


RULES = ({"AllowedMethods": ["GET"], "AllowedOrigins": ["*suffix"]},
         {"AllowedMethods": ["GET"], "AllowedOrigins": ["start*end"]},
         {"AllowedMethods": ["GET"], "AllowedOrigins": ["prefix*"]},
         {"AllowedMethods": ["PUT"], "AllowedOrigins": ["*.put"]})


def allowed(answer):
    return answer.headers.get(ALLOW_ORIGIN), answer.headers.get(ALLOW_METHODS)


def test_configuration(client, bucket, raw):
    assert refusal_of(client.get_bucket_cors, Bucket=bucket) == (404, "NoSuchCORSConfiguration")
    rules = [{"ID": "one", "AllowedMethods": ["GET", "PUT"], "AllowedOrigins": ["*.get", "*.put"],
              "AllowedHeaders": ["x-*"], "ExposeHeaders": ["ETag"], "MaxAgeSeconds": 3000}]
    put_rules(client, bucket, *rules)
    assert client.get_bucket_cors(Bucket=bucket)["CORSRules"] == rules
    document = (b'<?xml version="1.0"?>\n<CORSConfiguration>  <CORSRule><AllowedOrigin>*'
                b"</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>\n"
                b"</CORSConfiguration>")
    assert raw("PUT", f"/{bucket}?cors", body=document).status == 200
    assert raw("GET", f"/{bucket}?cors").body == document
    for _ in range(2):
        assert raw("DELETE", f"/{bucket}?cors").status == 204
    assert refusal_of(client.get_bucket_cors, Bucket=bucket) == (404, "NoSuchCORSConfiguration")


@pytest.mark.parametrize("rule, code", [
    (b"", "MalformedXML"),
    (b"<CORSRule/>", "MalformedXML"),
    (b"<Rule/>", "MalformedXML"),
    (b"<CORSRule><AllowedOrigin>*</AllowedOrigin></CORSRule>", "MalformedXML"),
    (b"<CORSRule><AllowedMethod>GET</AllowedMethod></CORSRule>", "MalformedXML"),
    (b"<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>get</AllowedMethod></CORSRule>",
     "InvalidRequest"),
    (b"<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>OPTIONS</AllowedMethod></CORSRule>",
     "InvalidRequest"),
    (b"<CORSRule><AllowedOrigin>*a*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>",
     "InvalidRequest"),
    (b"<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>"
     b"<MaxAgeSeconds>soon</MaxAgeSeconds></CORSRule>", "MalformedXML"),
])
def test_bad_configurations(bucket, raw, rule, code):
    document = b"<CORSConfiguration>%s</CORSConfiguration>" % rule
    assert status_and_code(raw("PUT", f"/{bucket}?cors", body=document)) == (400, code)
    many = b"<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>"
    document = b"<CORSConfiguration>%s</CORSConfiguration>" % (many * 101)
    assert status_and_code(raw("PUT", f"/{bucket}?cors", body=document)) == (400, "MalformedXML")


def test_answers_to_real_requests(client, bucket, ask):
    client.put_bucket_acl(Bucket=bucket, ACL="public-read")
    put_rules(client, bucket, *RULES)
    get = lambda origin, **more: allowed(ask("GET", "", {"Origin": origin, **more}))
    assert allowed(ask("GET", "", {})) == (None, None)
    for origin in ("foo.suffix", "foo.bar.suffix", "startend", "start1end", "start12end",
                   "prefix", "prefix.suffix"):
        assert get(origin) == (origin, "GET"), origin
    for origin in ("foo.bar", "foo.suffix.get", "0start12end", "bla.prefix", "foo.put", "SUFFIX"):
        assert get(origin) == (None, None), origin
    answer = ask("GET", "", {"Origin": "foo.suffix"})
    assert answer.status == 200
    assert "Origin" in answer.headers["Vary"]


def test_errors_carry_the_headers_too(client, bucket, ask):
    client.put_bucket_acl(Bucket=bucket, ACL="public-read")
    put_rules(client, bucket, *RULES)
    answer = ask("GET", "/none", {"Origin": "foo.suffix"})
    assert (answer.status, allowed(answer)) == (404, ("foo.suffix", "GET"))
    answer = ask("PUT", "/key", {"Origin": "foo.put"})
    assert (answer.status, allowed(answer)) == (403, ("foo.put", "PUT"))
    answer = ask("PUT", "/key", {"Origin": "foo.suffix"})
    assert (answer.status, allowed(answer)) == (403, (None, None))
    answer = ask("PUT", "/key", {"Origin": "foo.suffix", METHOD: "GET"})
    assert (answer.status, allowed(answer)) == (403, ("foo.suffix", "GET"))


def test_preflights(client, bucket, ask):
    put_rules(client, bucket, *RULES)
    for key in ("", "/key"):
        assert ask("OPTIONS", key, {}).status == 400
        assert ask("OPTIONS", key, {"Origin": "foo.suffix"}).status == 400
        assert ask("OPTIONS", key, {METHOD: "GET"}).status == 400
        answer = ask("OPTIONS", key, {"Origin": "foo.suffix", METHOD: "GET"})
        assert (answer.status, allowed(answer)) == (200, ("foo.suffix", "GET"))
        for headers in ({"Origin": "foo.bar", METHOD: "GET"}, {"Origin": "foo.put", METHOD: "GET"},
                        {"Origin": "foo.suffix", METHOD: "PUT"}):
            answer = ask("OPTIONS", key, headers)
            assert (status_and_code(answer), allowed(answer)) == ((403, "AccessForbidden"), (None, None))


def test_preflight_without_configuration(ask, server):
    answer = ask("OPTIONS", "/key", {"Origin": "a", METHOD: "GET"})
    assert status_and_code(answer) == (403, "AccessForbidden")
    with server.connect() as connection:
        connection.send(f"OPTIONS /no-such-bucket-here/k HTTP/1.1\r\nHost: {server.netloc}\r\n"
                        f"Origin: a\r\n{METHOD}: GET\r\n\r\n".encode())
        assert status_and_code(connection.answer()) == (404, "NoSuchBucket")


def test_headers_of_a_preflight(client, bucket, ask):
    put_rules(client, bucket, {"AllowedMethods": ["GET"], "AllowedOrigins": ["*"],
                               "ExposeHeaders": ["ETag", "x-amz-meta-a"]},
              {"AllowedMethods": ["PUT"], "AllowedOrigins": ["https://*.example"],
               "AllowedHeaders": ["Content-*", "x-amz-date"], "MaxAgeSeconds": 60})
    ask_for = lambda method, origin, headers: ask("OPTIONS", "/key", {
        "Origin": origin, METHOD: method, HEADERS: headers})
    assert ask_for("GET", "any", "x-amz-meta-b").status == 403
    answer = ask_for("PUT", "https://a.example", "content-type, X-Amz-Date")
    assert (answer.status, allowed(answer)) == (200, ("https://a.example", "PUT"))
    assert answer.headers["Access-Control-Allow-Headers"] == "content-type, X-Amz-Date"
    assert answer.headers["Access-Control-Max-Age"] == "60"
    assert answer.headers["Access-Control-Allow-Credentials"] == "true"
    assert ask_for("PUT", "https://a.example", "content-type,other").status == 403
    answer = ask("OPTIONS", "/key", {"Origin": "any", METHOD: "GET"})
    assert (answer.status, allowed(answer)) == (200, ("*", "GET"))
    assert answer.headers["Access-Control-Expose-Headers"] == "ETag, x-amz-meta-a"
    assert "Access-Control-Allow-Credentials" not in answer.headers


def test_signed_requests_with_an_origin(client, bucket, raw):
    put_rules(client, bucket, {"AllowedMethods": ["PUT", "GET"], "AllowedOrigins": ["*"]})
    answer = raw("PUT", f"/{bucket}/key", [("Origin", "http://a")], b"data")
    assert (answer.status, allowed(answer)) == (200, ("*", "PUT"))
    answer = raw("GET", f"/{bucket}/key", [("Origin", "http://a")])
    assert (answer.body, allowed(answer)) == (b"data", ("*", "GET"))
    answer = raw("PUT", f"/{bucket}/copy", [("Origin", "http://a"),
                                            ("x-amz-copy-source", f"{bucket}/none")])
    assert (answer.status, allowed(answer)) == (404, ("*", "PUT"))
    answer = raw("PUT", f"/{bucket}/copy", [("Origin", "http://a"), ("If-Match", "x"),
                                            ("x-amz-copy-source", f"{bucket}/key")])
    assert (answer.status, allowed(answer)) == (404, ("*", "PUT"))

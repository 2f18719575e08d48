"""Uploads by HTML forms: spec/s3-wire.md 82 to 84."""
import base64
import datetime
import hashlib
import hmac
import json
import urllib.parse
import xml.etree.ElementTree

import pytest
import requests

MIB = 1024 * 1024


@pytest.fixture
def poster(server, bucket):
    return Form(server, bucket)


class Form:
    """post(fields..., file=...) sends a form; policy() signs one as version 2 does."""

    def __init__(self, server, bucket):
        self.server = server
        self.bucket = bucket
        self.url = f"{server.endpoint}/{bucket}"

    def post(self, fields, file=("foo.txt", b"bar"), url=None):
        # as requests does it: every field gets a file name, only "file" is one
        files = [(name, value) for name, value in fields.items()]
        if file is not None:
            files.append(("file", file))
        return requests.post(url or self.url, files=files, allow_redirects=False, timeout=30,
                             verify=self.server.ca_file() or True)

    def policy(self, wanted, expires=600, **replaced):
        until = (datetime.datetime.now(datetime.timezone.utc) +
                 datetime.timedelta(seconds=expires)).strftime("%Y-%m-%dT%H:%M:%SZ")
        document = {"expiration": until, "conditions": wanted, **replaced}
        return self.sign(json.dumps({k: v for k, v in document.items() if v is not None}))

    def sign(self, document, key=None):
        text = base64.b64encode(document.encode()).decode()
        digest = hmac.new((key or self.server.secret_key).encode(), text.encode(), hashlib.sha1)
        return {"AWSAccessKeyId": self.server.access_key, "policy": text,
                "signature": base64.b64encode(digest.digest()).decode()}

    def usual(self, *more):
        return [{"bucket": self.bucket}, ["starts-with", "$key", "foo"], {"acl": "private"},
                ["starts-with", "$Content-Type", "text/plain"],
                ["content-length-range", 0, 1024], *more]

    def signed(self, *more, **fields):
        """Fields of an upload that the usual policy allows."""
        return {"key": "foo.txt", **self.policy(self.usual(*more)), "acl": "private",
                "Content-Type": "text/plain", **fields}


def code_of(answer):
    return answer.status_code, xml.etree.ElementTree.fromstring(answer.content).findtext("Code")


def get(client, bucket, key="foo.txt"):
    return client.get_object(Bucket=bucket, Key=key)["Body"].read()


def test_anonymous(client, bucket, poster):
    fields = {"key": "foo.txt", "acl": "public-read", "Content-Type": "text/plain"}
    assert code_of(poster.post(fields)) == (403, "AccessDenied")
    client.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    answer = poster.post(fields)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["ETag"] == f'"{hashlib.md5(b"bar").hexdigest()}"'
    assert answer.headers["Location"] == f"{poster.url}/foo.txt"
    assert get(client, bucket) == b"bar"
    head = client.head_object(Bucket=bucket, Key="foo.txt")
    assert head["ContentType"] == "text/plain"
    assert len(client.get_object_acl(Bucket=bucket, Key="foo.txt")["Grants"]) == 2


def test_signed_version_2(client, bucket, poster):
    answer = poster.post(poster.signed())
    assert answer.status_code == 204, answer.content
    assert get(client, bucket) == b"bar"
    assert poster.post(poster.signed(file="ignored")).status_code == 204


def test_signed_version_4(client, server, bucket, poster):
    made = server.client(signature_version="s3v4").generate_presigned_post(
        bucket, "dir/${filename}", Fields={"acl": "public-read", "x-amz-meta-color": "blue"},
        Conditions=[{"acl": "public-read"}, ["starts-with", "$x-amz-meta-color", "b"],
                    ["content-length-range", 1, 10]])
    answer = poster.post(made["fields"], url=made["url"])
    assert answer.status_code == 204, answer.content
    found = client.get_object(Bucket=bucket, Key="dir/foo.txt")
    assert (found["Body"].read(), found["Metadata"]) == (b"bar", {"color": "blue"})
    wrong = dict(made["fields"])
    wrong["x-amz-signature"] = "0" * 64
    assert code_of(poster.post(wrong))[0] == 403
    wrong = dict(made["fields"], **{"x-amz-credential": "x"})
    assert code_of(poster.post(wrong))[0] == 400
    wrong = dict(made["fields"], **{"x-amz-meta-color": "red"})
    assert code_of(poster.post(wrong)) == (403, "AccessDenied")


def test_large_file(client, bucket, poster):
    body = bytes(range(256)) * 4096 * 3 + b"\r\n--tail\r\n--"
    client.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    assert poster.post({"key": "foo.txt"}, ("x", body)).status_code == 204
    assert get(client, bucket) == body
    assert poster.post({"key": "empty"}, ("x", b"")).status_code == 204
    assert get(client, bucket, "empty") == b""


@pytest.mark.parametrize("wanted, status", [("200", 200), ("201", 201), ("204", 204), ("404", 204),
                                            ("", 204)])
def test_success_status(client, bucket, poster, wanted, status):
    client.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    answer = poster.post({"key": "a b/\u00fc&.txt", "success_action_status": wanted})
    assert answer.status_code == status
    if status == 201:
        root = xml.etree.ElementTree.fromstring(answer.content)
        assert root.tag == "PostResponse"
        assert (root.findtext("Bucket"), root.findtext("Key")) == (bucket, "a b/\u00fc&.txt")
        assert root.findtext("ETag") == answer.headers["ETag"]
        assert root.findtext("Location") == poster.url + "/a%20b/" + urllib.parse.quote("\u00fc&.txt")
    else:
        assert answer.content == b""


def test_redirect(client, bucket, poster):
    client.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    target = "http://example.com/done"
    answer = poster.post({"key": "foo bar.txt", "success_action_redirect": target})
    etag = hashlib.md5(b"bar").hexdigest()
    assert answer.status_code == 303
    assert answer.headers["Location"] == (
        f"{target}?bucket={bucket}&key=foo%20bar.txt&etag=%22{etag}%22")
    answer = poster.post({"key": "foo.txt", "success_action_redirect": target + "?a=b"})
    assert answer.headers["Location"].startswith(target + "?a=b&bucket=")
    answer = poster.post({"key": "foo.txt", "success_action_redirect": "javascript:alert(1)"})
    assert answer.status_code == 204


def test_key_from_the_file_name(client, bucket, poster):
    assert poster.post(poster.signed(key="${filename}")).status_code == 204
    assert get(client, bucket) == b"bar"
    client.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    assert poster.post({"key": "up/${filename}"}, ("C:\\dir/x\\foo.gif", b"1")).status_code == 204
    assert get(client, bucket, "up/foo.gif") == b"1"


def test_fields_in_any_case_and_escapes(client, bucket, poster):
    policy = poster.policy([{"bUcKeT": bucket}, ["StArTs-WiTh", "$KeY", "\\$foo"], {"AcL": "private"},
                          ["StArTs-WiTh", "$CoNtEnT-TyPe", "text/plain"],
                          ["content-length-range", 0, 1024]])
    policy["awsAccessKeyId"] = policy.pop("AWSAccessKeyId")
    answer = poster.post({"kEy": "\\$foo.txt", "aCl": "private", "pOLICy": policy.pop("policy"),
                        "sIgNaTuRe": policy.pop("signature"), "Content-Type": "text/plain",
                        **policy})
    assert answer.status_code == 204, answer.content
    assert get(client, bucket, "\\$foo.txt") == b"bar"


def test_fields_behind_the_file_are_ignored(client, bucket, poster):
    client.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    boundary = b"xyz"
    part = lambda name, value: (b'--xyz\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
                                % (name, value))
    body = (b"preamble\r\n" + part(b"key", b"foo.txt") + part(b"file", b"first") +
            part(b"key", b"other") + part(b"file", b"second") + part(b"x", b"y" * 100000) +
            b"--xyz--\r\nepilogue")
    answer = requests.post(poster.url, data=body, timeout=30, verify=poster.server.ca_file() or True,
                           headers={"Content-Type": b"multipart/form-data; boundary=" + boundary})
    assert answer.status_code == 204, answer.content
    assert get(client, bucket) == b"first"
    assert [o["Key"] for o in client.list_objects_v2(Bucket=bucket)["Contents"]] == ["foo.txt"]


def test_ignored_and_extra_fields(bucket, poster):
    assert poster.post(poster.signed(**{"x-ignore-foo": "bar"})).status_code == 204
    assert code_of(poster.post(poster.signed(**{"x-amz-meta-foo": "bar"}))) == (403, "AccessDenied")
    allowed = poster.signed(["starts-with", "$x-amz-meta-foo", "bar"],
                          **{"x-amz-meta-foo": "barclamp"})
    assert poster.post(allowed).status_code == 204


def test_metadata_tags_and_checksums(client, bucket, poster):
    client.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    tagging = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
    digest = base64.b64encode(hashlib.sha256(b"bar").digest()).decode()
    answer = poster.post({"key": "foo.txt", "x-amz-meta-foo": "barclamp", "tagging": tagging,
                        "x-amz-checksum-sha256": digest, "Cache-Control": "no-store"})
    assert answer.status_code == 204, answer.content
    head = client.head_object(Bucket=bucket, Key="foo.txt", ChecksumMode="ENABLED")
    assert (head["Metadata"], head["CacheControl"]) == ({"foo": "barclamp"}, "no-store")
    assert head["ChecksumSHA256"] == digest
    tags = client.get_object_tagging(Bucket=bucket, Key="foo.txt")["TagSet"]
    assert tags == [{"Key": "a", "Value": "b"}]
    answer = poster.post({"key": "foo.txt", "x-amz-checksum-sha256": digest}, ("x", b"other"))
    assert code_of(answer) == (400, "BadDigest")
    assert get(client, bucket) == b"bar"


def test_sizes(client, bucket, poster):
    limits = lambda low, high: poster.policy([
        {"bucket": bucket}, ["starts-with", "$key", "foo"], ["content-length-range", low, high]])
    assert poster.post({"key": "foo", **limits(3, 3)}).status_code == 204
    assert code_of(poster.post({"key": "foo", **limits(0, 2)})) == (400, "EntityTooLarge")
    assert code_of(poster.post({"key": "foo", **limits(512, 1000)})) == (400, "EntityTooSmall")
    assert code_of(poster.post({"key": "foo", **limits(-1, 1000)}))[0] == 400
    assert code_of(poster.post({"key": "foo", **limits(1000, 5)}))[0] == 400
    one = poster.policy([{"bucket": bucket}, ["starts-with", "$key", "foo"],
                       ["content-length-range", 512]])
    assert code_of(poster.post({"key": "foo", **one}))[0] == 400
    assert get(client, bucket, "foo") == b"bar"


def test_what_is_refused_with_400(client, bucket, poster):
    def refused(fields, file=("foo.txt", b"bar")):
        answer = poster.post(fields, file)
        assert answer.status_code == 400, answer.content
    usual = poster.usual()
    fields = poster.signed()
    refused({k: v for k, v in fields.items() if k != "key"})
    refused({k: v for k, v in fields.items() if k != "signature"})
    refused({k: v for k, v in fields.items() if k != "policy"})
    refused(fields, None)
    refused({**fields, **poster.policy(usual, expiration=None)})
    refused({**fields, **poster.policy(usual, expiration="tomorrow")})
    refused({**fields, **poster.policy(usual, expiration=str(datetime.datetime.now()))})
    refused({**fields, **poster.policy(usual, conditions=None)})
    refused({**fields, **poster.policy(usual, conditions=None, CONDITIONS=usual)})
    until = "2040-01-01T00:00:00Z"
    refused({**fields, **poster.policy(usual, expiration=None, EXPIRATION=until)})
    refused({**fields, **poster.policy([{}])})
    refused({**fields, **poster.policy([])})
    refused({**fields, **poster.policy([["eq", "$key"]])})
    refused({**fields, **poster.policy([["like", "$key", "foo"]])})
    refused({**fields, **poster.policy([{"key": 5}])})
    refused({**fields, **poster.sign("{")})
    refused({**fields, **poster.sign("[1]")})
    refused({**fields, "key": "\udcff".encode("utf-8", "surrogateescape")})
    refused({**fields, "x-ignore-long": "x" * 21000})
    assert client.list_objects_v2(Bucket=bucket).get("Contents") is None


def test_what_is_refused_with_403(client, bucket, poster):
    def refused(fields):
        answer = poster.post(fields)
        assert answer.status_code == 403, answer.content
    usual = poster.usual()
    fields = poster.signed()
    refused({**fields, "AWSAccessKeyId": "nobodys-key"})
    refused({**fields, "signature": fields["signature"][::-1]})
    refused({**fields, **poster.policy(usual, expires=-600)})
    refused({**fields, "key": "bar.txt"})
    refused({**fields, "acl": "public-read"})
    refused({**fields, **poster.policy(usual[1:])})
    refused({**fields, **poster.policy([{"bucket": "another"}, *usual[1:]])})
    refused({**fields, **poster.policy([*usual, ["starts-with", "$x-amz-meta-foo", "bar"]])})
    # a field of the name does not stand for the bucket it goes to
    refused({**fields, **poster.policy([{"bucket": "another"}, *usual[1:]]), "bucket": "another"})
    assert client.list_objects_v2(Bucket=bucket).get("Contents") is None


def test_a_second_key_does_not_pass_by_the_policy(client, bucket, poster):
    fields = poster.signed()
    for keys in (("foo.txt", "bar.txt"), ("bar.txt", "foo.txt")):
        files = [("key", key) for key in keys]
        files += [(n, v) for n, v in fields.items() if n != "key"] + [("file", ("f", b"x"))]
        answer = requests.post(poster.url, files=files, timeout=30,
                               verify=poster.server.ca_file() or True)
        assert answer.status_code == 403
    assert client.list_objects_v2(Bucket=bucket).get("Contents") is None


@pytest.mark.parametrize("content_type, body, status", [
    ("application/x-www-form-urlencoded", b"key=foo", 412),
    ("multipart/form-data", b"--x--", 412),
    ("multipart/form-data; boundary=x", b"", 400),
    ("multipart/form-data; boundary=x", b"--x--\r\n", 400),
    ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data; name=key\r\n\r\na",
     400),
    ("multipart/form-data; boundary=x", b"--x\r\nno colon\r\n\r\na\r\n--x--", 400),
    ("multipart/form-data; boundary=x", b"--xGARBAGE\r\n\r\na\r\n--x--", 400),
    ("multipart/form-data; boundary=x", b"--x\r\nA: " + b"b" * 10000, 400),
    ('multipart/form-data; boundary="x"',
     b'--x\r\nContent-Disposition: form-data; name=key\r\n\r\nfoo\r\n--x\r\n'
     b'Content-Disposition: form-data; name=file\r\n\r\nbar\r\n--x', 400),
    ('multipart/form-data; charset=y; boundary="x"',
     b'--x  \r\ncontent-disposition: form-data; name=key\r\n\r\nfoo\r\n--x\r\n'
     b'Content-Disposition: form-data; name="file"; filename="a\\"b"\r\n\r\nbar\r\n--x--', 204),
])
def test_odd_forms(client, bucket, poster, content_type, body, status):
    client.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    answer = requests.post(poster.url, data=body, headers={"Content-Type": content_type}, timeout=30,
                           verify=poster.server.ca_file() or True)
    assert answer.status_code == status, answer.content
    keys = [o["Key"] for o in client.list_objects_v2(Bucket=bucket).get("Contents", [])]
    assert keys == (["foo"] if status == 204 else [])


def test_interrupted_form_stores_nothing(client, server, bucket, poster):
    client.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
    body = (b'--x\r\nContent-Disposition: form-data; name=key\r\n\r\nfoo\r\n--x\r\n'
            b'Content-Disposition: form-data; name=file\r\n\r\n' + b"z" * MIB)
    with server.connect() as connection:
        connection.send(f"POST /{bucket} HTTP/1.1\r\nHost: {server.netloc}\r\nContent-Type: "
                        "multipart/form-data; boundary=x\r\nContent-Length: 2000000\r\n\r\n".encode()
                        + body)
    assert client.list_objects_v2(Bucket=bucket).get("Contents") is None

"""Details of answers that clients depend on and that no other file holds."""
import pytest

from s3util import code_of, error_of, keys_of, prefixes_of, texts, tree


def put(client, bucket, *keys):
    for key in keys:
        client.put_object(Bucket=bucket, Key=key, Body=b"x")


@pytest.mark.parametrize("target", ["", "/k"])
def test_expected_owner_of_anonymous_callers(client, server, bucket, target):
    client.put_bucket_acl(Bucket=bucket, ACL="public-read")
    client.put_object(Bucket=bucket, Key="k", Body=b"x", ACL="public-read")
    for owner, status in (("0" * 64, 403), (None, 200)):
        head = f"x-amz-expected-bucket-owner: {owner}\r\n" if owner else ""
        with server.connect() as connection:
            connection.send(f"GET /{bucket}{target} HTTP/1.1\r\nHost: {server.netloc}\r\n"
                            f"{head}\r\n".encode())
            answer = connection.answer()
        assert answer.status == status, answer.body


def test_prefixes_in_the_order_of_their_bytes(client, raw, bucket):
    """However they are printed: %2B sorts behind /, + does not."""
    put(client, bucket, "foo+1/bar", "foo/bar/xyzzy", "quux ab/thud", "asdf+b")
    for kind in ("", "list-type=2&"):
        for coding in ("", "encoding-type=url&"):
            root = tree(raw("GET", f"/{bucket}?delimiter=%2F&{coding}{kind}").body)
            expected = ["foo%2B1/", "foo/", "quux%20ab/"] if coding else ["foo+1/", "foo/", "quux ab/"]
            assert texts(root, "CommonPrefixes/Prefix") == expected
    page = client.list_objects_v2(Bucket=bucket, Delimiter="/", MaxKeys=2)
    assert (keys_of(page), prefixes_of(page)) == (["asdf+b"], ["foo+1/"])
    page = client.list_objects_v2(Bucket=bucket, Delimiter="/",
                                  ContinuationToken=page["NextContinuationToken"])
    assert prefixes_of(page) == ["foo/", "quux ab/"]


def test_prefix_of_a_first_list_is_never_encoded(client, raw, bucket):
    """boto3 decodes it in version 2 only."""
    for method in (client.list_objects, client.list_objects_v2):
        assert method(Bucket=bucket, Prefix="\n")["Prefix"] == "\n"
    body = raw("GET", f"/{bucket}?encoding-type=url&prefix=%0A").body
    assert b"<Prefix>&#xA;</Prefix>" in body or b"<Prefix>&#10;</Prefix>" in body
    assert tree(raw("GET", f"/{bucket}?encoding-type=url&list-type=2&prefix=%0A").body).findtext(
        "Prefix") == "%0A"


@pytest.mark.parametrize("kind", ["", "list-type=2&", "versions=&"])
def test_empty_parameters_are_none(client, raw, bucket, kind):
    put(client, bucket, "a/1", "b")
    root = tree(raw("GET", f"/{bucket}?delimiter=&prefix=&{kind}").body)
    assert texts(root, "Contents/Key") + texts(root, "Version/Key") == ["a/1", "b"]
    assert root.find("Delimiter") is None and root.find("CommonPrefixes") is None
    root = tree(raw("GET", f"/{bucket}?delimiter=-&{kind}").body)
    assert root.findtext("Delimiter") == "-"


def test_start_after_is_echoed_and_ignored_behind_a_token(client, raw, bucket):
    put(client, bucket, "a", "b", "c")
    page = client.list_objects_v2(Bucket=bucket, StartAfter="a", MaxKeys=1)
    assert (keys_of(page), page["StartAfter"], page["KeyCount"]) == (["b"], "a", 1)
    page = client.list_objects_v2(Bucket=bucket, StartAfter="b", MaxKeys=5,
                                  ContinuationToken=page["NextContinuationToken"])
    assert (keys_of(page), page["StartAfter"]) == (["c"], "b")
    assert "NextContinuationToken" not in page
    root = tree(raw("GET", f"/{bucket}?continuation-token=&list-type=2").body)
    assert root.findtext("ContinuationToken") == ""


def test_no_versions_no_elements(client, raw, bucket):
    root = tree(raw("GET", f"/{bucket}?versions=").body)
    assert root.find("Version") is None and root.find("DeleteMarker") is None
    answer = client.list_object_versions(Bucket=bucket)
    assert "Versions" not in answer and "DeleteMarkers" not in answer


def test_times_of_lists_have_milliseconds(client, raw, bucket):
    put(client, bucket, "k")
    for kind in ("", "list-type=2&", "versions=&"):
        root = tree(raw("GET", f"/{bucket}?{kind}").body)
        when = (texts(root, "Contents/LastModified") + texts(root, "Version/LastModified"))[0]
        assert len(when) == len("2026-01-01T00:00:00.000Z") and when[19] == "." and when[-1] == "Z"
    assert client.head_object(Bucket=bucket, Key="k")["LastModified"].microsecond == 0


@pytest.mark.parametrize("method, header, value, name", [
    ("GET", "If-Match", '"x"', "If-Match"),
    ("GET", "If-Unmodified-Since", "Mon, 01 Jan 2001 00:00:00 GMT", "If-Unmodified-Since"),
    ("PUT", "If-None-Match", "*", "If-None-Match"), ("PUT", "If-Match", '"x"', "If-Match")])
def test_a_failed_condition_is_named(client, raw, bucket, method, header, value, name):
    put(client, bucket, "k")
    answer = raw(method, f"/{bucket}/k", headers=[(header, value)])
    assert (answer.status, code_of(answer)) == (412, "PreconditionFailed")
    assert error_of(answer)["Condition"] == name
    assert raw("HEAD", f"/{bucket}/k", headers=[("If-Match", '"x"')]).body == b""


def test_not_modified_has_its_headers_and_no_body(client, raw, bucket):
    put(client, bucket, "k")
    tag = client.head_object(Bucket=bucket, Key="k")["ETag"]
    answer = raw("GET", f"/{bucket}/k", headers=[("If-None-Match", tag)])
    assert (answer.status, answer.body) == (304, b"")
    assert answer.headers["ETag"] == tag and answer.headers["Last-Modified"]


@pytest.mark.parametrize("state", ["Enabled", "Suspended"])
def test_mfa_delete_off_is_accepted(raw, client, bucket, state):
    body = (f"<VersioningConfiguration><Status>{state}</Status><MfaDelete>Disabled</MfaDelete>"
            "</VersioningConfiguration>").encode()
    assert raw("PUT", f"/{bucket}?versioning=", body=body).status == 200
    assert client.get_bucket_versioning(Bucket=bucket)["Status"] == state

"""Lists of objects: spec items 27 to 38; public cases B23, B24, B35, B41 to B49."""
import urllib.parse

import pytest

from s3util import code_of, keys_of, prefixes_of, refused, texts, tree


def fill(client, bucket, keys):
    for key in keys:
        client.put_object(Bucket=bucket, Key=key, Body=b"")


def all_pages(client, operation, bucket, **arguments):
    keys, prefixes, count = [], [], 0
    for page in client.get_paginator(operation).paginate(Bucket=bucket, **arguments):
        keys += keys_of(page)
        prefixes += prefixes_of(page)
        count += 1
        assert count < 1000
    return keys, prefixes


def test_order_is_by_bytes(client, bucket):
    keys = ["\ue000", "\uffee", "\U00010000", "A", "a", "é", "a!", "a/", "a0", "B"]
    fill(client, bucket, keys)
    expected = sorted(keys, key=lambda key: key.encode())
    assert keys_of(client.list_objects_v2(Bucket=bucket)) == expected
    assert keys_of(client.list_objects(Bucket=bucket)) == expected


@pytest.mark.parametrize("operation", ["list_objects", "list_objects_v2"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_pages(client, bucket, operation, size):
    keys = sorted(f"{a}/{b}" for a in "abc" for b in "xyz") + ["d", "e/"]
    fill(client, bucket, keys)
    page = {"PaginationConfig": {"PageSize": size}}
    assert all_pages(client, operation, bucket, **page) == (keys, [])
    assert all_pages(client, operation, bucket, Delimiter="/", **page) == (
        ["d"], ["a/", "b/", "c/", "e/"])
    assert all_pages(client, operation, bucket, Delimiter="/", Prefix="b/", **page) == (
        ["b/x", "b/y", "b/z"], [])


def test_truncation(client, bucket):
    fill(client, bucket, ["a/1", "a/2", "b/1", "c"])
    page = client.list_objects_v2(Bucket=bucket, Delimiter="/", MaxKeys=2)
    assert page["IsTruncated"] and page["KeyCount"] == 2
    assert prefixes_of(page) == ["a/", "b/"]
    rest = client.list_objects_v2(Bucket=bucket, Delimiter="/", MaxKeys=2,
                                  ContinuationToken=page["NextContinuationToken"])
    assert keys_of(rest) == ["c"] and not rest["IsTruncated"]
    assert "NextContinuationToken" not in rest
    assert rest["ContinuationToken"] == page["NextContinuationToken"]
    exact = client.list_objects_v2(Bucket=bucket, MaxKeys=4)
    assert not exact["IsTruncated"]


def test_next_marker_only_with_a_delimiter(client, bucket):
    fill(client, bucket, ["a/1", "a/2", "b", "c"])
    page = client.list_objects(Bucket=bucket, MaxKeys=1)
    assert page["IsTruncated"] and "NextMarker" not in page and page["Marker"] == ""
    page = client.list_objects(Bucket=bucket, MaxKeys=1, Delimiter="/")
    assert page["NextMarker"] == "a/"
    page = client.list_objects(Bucket=bucket, MaxKeys=1, Delimiter="/", Marker="a/")
    assert keys_of(page) == ["b"] and page["NextMarker"] == "b"
    assert keys_of(client.list_objects(Bucket=bucket, Marker="b")) == ["c"]
    assert keys_of(client.list_objects(Bucket=bucket, Marker="b0")) == ["c"]
    assert keys_of(client.list_objects(Bucket=bucket, Marker="zzz")) == []


def test_starting_points(client, bucket):
    fill(client, bucket, [f"a/{i}" for i in range(1, 10)] + ["b/1"])

    def start(prefix, after, **more):
        return client.list_objects_v2(Bucket=bucket, Prefix=prefix, StartAfter=after, **more)

    assert keys_of(start("a/", "a/5")) == ["a/6", "a/7", "a/8", "a/9"]
    assert keys_of(start("a/", "a/5x")) == ["a/6", "a/7", "a/8", "a/9"]
    assert len(keys_of(start("a/", "a"))) == 9
    assert keys_of(start("a/", "b")) == []
    assert len(keys_of(start("a/", "0"))) == 9
    assert prefixes_of(start("a", "a/5", Delimiter="/")) in (["a/"], [])
    page = start("a/", "a/5", MaxKeys=1)
    again = start("a/", "a/8", MaxKeys=1, ContinuationToken=page["NextContinuationToken"])
    assert keys_of(again) == ["a/7"] and again["StartAfter"] == "a/8"


@pytest.mark.parametrize("value, keys, code", [
    ("0", 0, None), ("1", 1, None), ("1000", 3, None), ("1001", 3, None), ("100000", 3, None),
    ("2147483648", 3, None), ("9223372036854775808", 3, None), ("-1", 0, "InvalidArgument"),
    ("abc", 0, "InvalidArgument"),
])
def test_max_keys(raw, client, bucket, value, keys, code):
    fill(client, bucket, ["a", "b", "c"])
    for kind in ("", "list-type=2&", "versions=&"):
        answer = raw("GET", f"/{bucket}?{kind}max-keys={value}")
        if code:
            assert (answer.status, code_of(answer)) == (400, code)
            continue
        root = tree(answer.body)
        assert len(root.findall("Contents") + root.findall("Version")) == keys
        assert root.findtext("IsTruncated") == ("true" if value == "1" else "false")
        assert int(root.findtext("MaxKeys")) == min(int(value), 1000)


@pytest.mark.parametrize("delimiter, prefixes", [
    ("-", ["a-"]), ("ab", ["xab"]), ("%", ["p%"]), ("ü", ["qü"]), (" ", ["s "]), ("", []),
    ("nowhere", []),
])
def test_any_delimiter(client, bucket, delimiter, prefixes):
    fill(client, bucket, ["a-1", "a-2", "xab1", "p%1", "qü1", "s 1"])
    page = client.list_objects_v2(Bucket=bucket, Delimiter=delimiter)
    assert prefixes_of(page) == prefixes
    assert page.get("Delimiter", "") == delimiter


def test_url_encoding(raw, client, bucket):
    keys = ["a b", "a%b", "a+b", "a/ü", "q%r%s"]
    fill(client, bucket, keys)
    for kind, element in (("", "Contents"), ("list-type=2&", "Contents"), ("versions=&", "Version")):
        root = tree(raw("GET", f"/{bucket}?{kind}encoding-type=url").body)
        assert texts(root, f"{element}/Key") == ["a%20b", "a%25b", "a%2Bb", "a/%C3%BC", "q%25r%25s"]
        assert root.findtext("EncodingType") == "url"
    root = tree(raw("GET", f"/{bucket}?list-type=2&encoding-type=url&delimiter=%25&prefix=q"
                           "&start-after=a%20b").body)
    assert texts(root, "CommonPrefixes/Prefix") == ["q%25"]
    assert root.findtext("Delimiter") == "%25"
    assert root.findtext("StartAfter") == "a%20b"
    root = tree(raw("GET", f"/{bucket}?list-type=2&encoding-type=url&prefix=a%20").body)
    assert root.findtext("Prefix") == "a%20"
    root = tree(raw("GET", f"/{bucket}?encoding-type=url&prefix=a%20&marker=a%20").body)
    assert root.findtext("Prefix") == "a " and root.findtext("Marker") == "a%20"
    answer = raw("GET", f"/{bucket}?encoding-type=base64")
    assert (answer.status, code_of(answer)) == (400, "InvalidArgument")


def test_escaping(raw, client, bucket):
    keys = ["<x>", "a&b", "\"q'", "tab\tnewline\n"]
    fill(client, bucket, keys)
    for kind, element in (("", "Contents"), ("list-type=2&", "Contents"), ("versions=&", "Version")):
        root = tree(raw("GET", f"/{bucket}?{kind}").body)
        assert sorted(texts(root, f"{element}/Key")) == sorted(keys)


def test_etags_have_literal_quotes(raw, client, bucket):
    fill(client, bucket, [f"k{i}" for i in range(20)])
    body = raw("GET", f"/{bucket}?list-type=2").body
    assert b"&" not in body and body.count(b'<ETag>"') == 20


def test_owners(client, bucket):
    fill(client, bucket, ["a"])
    assert "Owner" not in client.list_objects_v2(Bucket=bucket)["Contents"][0]
    owner = client.list_objects_v2(Bucket=bucket, FetchOwner=True)["Contents"][0]["Owner"]
    assert owner["ID"] == client.list_buckets()["Owner"]["ID"]
    assert client.list_objects(Bucket=bucket)["Contents"][0]["Owner"] == owner


@pytest.mark.parametrize("token", ["garbage", "%00", "A" * 10000, "AAAAAAAAAAAAAAAAAAAAAAAA"])
def test_tokens_that_are_not_ours(raw, bucket, token):
    answer = raw("GET", f"/{bucket}?list-type=2&continuation-token={token}")
    assert (answer.status, code_of(answer)) == (400, "InvalidArgument")


def test_empty_token_is_echoed(raw, bucket):
    root = tree(raw("GET", f"/{bucket}?list-type=2&continuation-token=").body)
    assert root.find("ContinuationToken") is not None


def test_bad_list_type(raw, bucket):
    assert raw("GET", f"/{bucket}?list-type=3").status == 400


def test_missing_bucket(client):
    for call in (client.list_objects, client.list_objects_v2, client.list_object_versions):
        with refused(404, "NoSuchBucket"):
            call(Bucket="no-such-bucket-here")


def test_marker_of_another_encoding_ends(raw, client, bucket):
    """A client that sends NextMarker back undecoded gets a page, and never the same one again."""
    fill(client, bucket, [f"d {i}/x" for i in range(5)])
    marker, seen = "", []
    for _ in range(10):
        root = tree(raw("GET", f"/{bucket}?encoding-type=url&delimiter=/&max-keys=1&marker="
                        + urllib.parse.quote(marker, safe="")).body)
        seen += texts(root, "CommonPrefixes/Prefix")
        marker = urllib.parse.unquote(root.findtext("NextMarker") or "")
        if not marker:
            break
    assert [urllib.parse.unquote(prefix) for prefix in seen] == [f"d {i}/" for i in range(5)]

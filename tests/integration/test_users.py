"""Identities on one process: through its socket while it runs, in its directory when it does not;
what they may do, and that restarts change nothing (public cases B39, B120)."""
import json

import pytest

from fgw_server import run_fgw
from s3util import refused


@pytest.fixture(name="server")
def make_server(server_factory):
    return server_factory(form="embedded")


def verb(server, *words, code=0):
    done = run_fgw(*words, "--data", str(server.data), "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr


def client_of(server, user):
    return server.client(access_key=user["access_key"], secret_key=user["secret_key"])


def test_keys_live_through_restarts_and_end_at_once(server):
    bob = verb(server, "user", "add", "bob", "--email", "bob@example.com")
    second = verb(server, "key", "add", "bob")
    client = client_of(server, bob)
    client.create_bucket(Bucket="of-bob")
    client.put_object(Bucket="of-bob", Key="k", Body=b"mine")
    assert client.list_buckets()["Owner"]["ID"] == bob["id"]
    server.kill()
    server.start()
    client, other = client_of(server, bob), client_of(server, second)
    assert other.get_object(Bucket="of-bob", Key="k")["Body"].read() == b"mine"
    verb(server, "key", "disable", bob["access_key"])
    with refused(403, "InvalidAccessKeyId"):
        client.list_buckets()
    assert other.list_buckets()["Buckets"][0]["Name"] == "of-bob"
    verb(server, "key", "remove", second["access_key"])
    with refused(403, "InvalidAccessKeyId"):
        other.list_buckets()
    assert [key["disabled"] for key in verb(server, "key", "list", "bob")["keys"]] == [True]
    server.restart()
    with refused(403, "InvalidAccessKeyId"):
        client_of(server, bob).list_buckets()


def test_what_policies_allow(server):
    root = server.client()
    root.create_bucket(Bucket="of-root")
    root.put_object(Bucket="of-root", Key="k", Body=b"x")
    plain, reader, writer = (
        client_of(server, verb(server, "user", "add", name, *options))
        for name, options in (("plain", ()), ("reader", ("--policy", "readonly")),
                              ("writer", ("--policy", "readwrite"))))
    with refused(409, "BucketAlreadyExists"):
        plain.create_bucket(Bucket="of-root")
    with refused(403, "AccessDenied"):
        plain.get_object(Bucket="of-root", Key="k")
    assert reader.get_object(Bucket="of-root", Key="k")["Body"].read() == b"x"
    for call in (lambda: reader.put_object(Bucket="of-root", Key="n", Body=b""),
                 lambda: reader.delete_object(Bucket="of-root", Key="k"),
                 lambda: reader.create_bucket(Bucket="of-reader")):
        with refused(403, "AccessDenied"):
            call()
    writer.put_object(Bucket="of-root", Key="n", Body=b"y")
    assert root.get_object(Bucket="of-root", Key="n")["Body"].read() == b"y"
    assert run_fgw("user", "add", "x", "--policy", "/etc/passwd", "--data",
                   str(server.data)).returncode == 2


def test_who_owns_buckets_is_not_removed(server):
    eve = verb(server, "user", "add", "eve")
    client_of(server, eve).create_bucket(Bucket="of-eve")
    text = verb(server, "user", "remove", "eve", code=1)
    assert "user eve owns buckets, among them of-eve" in text and "--force" in text
    client_of(server, eve).put_object(Bucket="of-eve", Key="k", Body=b"still hers")
    verb(server, "user", "remove", "eve", "--force")
    with refused(403, "InvalidAccessKeyId"):
        client_of(server, eve).list_buckets()
    assert server.client().get_object(Bucket="of-eve", Key="k")["Body"].read() == b"still hers"
    verb(server, "user", "add", "finn")
    verb(server, "user", "remove", "finn")
    assert "does not exist" in verb(server, "user", "remove", "finn", code=1)
    assert "has no flag --force" in verb(server, "key", "list", "--force", code=2)


def test_the_same_verbs_without_a_process(server):
    verb(server, "user", "add", "carol", "--id", "carolid", "--access-key", "CAROLKEY",
         "--secret-key", "secretsecretsecret")
    assert "exists" in verb(server, "user", "add", "carol", code=1)
    server.stop()
    assert verb(server, "user", "show", "carol")["id"] == "carolid"
    dora = verb(server, "user", "add", "dora")
    verb(server, "key", "disable", "CAROLKEY")
    server.start()
    assert client_of(server, dora).list_buckets()["Buckets"] == []
    carol = {"access_key": "CAROLKEY", "secret_key": "secretsecretsecret"}
    with refused(403, "InvalidAccessKeyId"):
        client_of(server, carol).list_buckets()
    verb(server, "user", "remove", "dora")
    with refused(403, "InvalidAccessKeyId"):
        client_of(server, dora).list_buckets()
    assert [user["name"] for user in verb(server, "user", "list")["users"]] == ["carol"]
    assert "does not exist" in verb(server, "user", "show", "dora", code=1)

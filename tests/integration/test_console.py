"""The ops listener: the console's page, /api/ with and without a signature, and the verbs that use
it (--admin URL, status --ready)."""
import json
import pathlib
import re
import shutil
import subprocess
import time

import pytest

import rawhttp
import sigv4
from fgw_server import CLUSTER_SECRET, Process, admin_verb, free_port, run_fgw

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = TOP / "src" / "console" / "web" / "index.html"


def ask(server, method, target, body=b"", signer=None, **options):
    """One request to the ops listener."""
    host = f"{server.host}:{server.ops_port}"
    with rawhttp.RawConnection(server.host, server.ops_port, 10) as connection:
        if signer is None:
            connection.send(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n"
                            f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        else:
            connection.send(sigv4.request_bytes(signer, method, target, host, (), body, **options))
        return connection.answer(method)


def tell(server, method, target, body=None, signer=None, **options):
    answer = ask(server, method, target, b"" if body is None else json.dumps(body).encode(),
                 signer or server.signer(service="fgw"), **options)
    return answer.status, json.loads(answer.body)


# -- without a signature -------------------------------------------------------------------------

def test_the_page_is_whole_and_loads_nothing_else(server):
    answer = ask(server, "GET", "/")
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.body == PAGE.read_bytes()
    assert not re.findall(r"(?:src|href)=|https?://|@import|url\(", answer.body.decode())
    assert ask(server, "HEAD", "/").status == 200
    assert ask(server, "POST", "/").status == 405
    assert ask(server, "GET", "/nothing").status == 404


def test_status(server):
    answer = ask(server, "GET", "/api/status")
    status = json.loads(answer.body)
    assert answer.status == 200
    assert status["role"] == server.verb and status["ready"] and status["reasons"] == []
    assert status["metadata_ready"] and status["endpoint"] == f"{server.scheme}://{server.netloc}"
    if server.verb == "proxy":
        assert status["nodes"][0]["node"] == "kuri-1"
    else:
        assert status["total_bytes"] > status["free_bytes"] > 0


def test_metrics_as_json(server, client):
    client.list_buckets()
    metrics = json.loads(ask(server, "GET", "/api/metrics").body)
    assert metrics["fgw_ready"] == 1
    assert metrics['fgw_s3_requests_total{operation="ListBuckets",class="2xx"}'] >= 1
    text = ask(server, "GET", "/metrics").body.decode()
    names = {line.rsplit(" ", 1)[0] for line in text.splitlines()
             if not line.startswith("#") and "_bucket{" not in line}
    assert {name for name in names if not name.startswith("fgw_info")} <= set(metrics)


@pytest.mark.parametrize("method, target", [
    ("GET", "/api/buckets"), ("GET", "/api/users"), ("POST", "/api/users"), ("GET", "/api/keys"),
    ("DELETE", "/api/users/x"), ("POST", "/api/status"), ("GET", "/api/nothing")])
def test_everything_else_needs_a_signature(server, method, target):
    answer = ask(server, method, target)
    assert answer.status == 403 and json.loads(answer.body)["error"] == "AccessDenied"


# -- with one ------------------------------------------------------------------------------------

def test_the_admin_api_over_the_network(server, client, bucket):
    status, body = tell(server, "GET", "/api/buckets")
    assert status == 200 and bucket in [row["name"] for row in body["buckets"]]
    status, made = tell(server, "POST", "/api/users", {"name": "console user", "policy": "admin"})
    assert status == 400 and made["error"] == "InvalidArgument"
    status, made = tell(server, "POST", "/api/users", {"name": "ada", "policy": "admin"})
    assert status == 201
    ada = sigv4.Signer(made["access_key"], made["secret_key"], service="fgw")
    status, body = tell(server, "GET", "/api/keys?user=ada", signer=ada)
    assert status == 200 and [key["access_key"] for key in body["keys"]] == [made["access_key"]]
    assert tell(server, "GET", "/api/nothing")[0] == 404
    assert tell(server, "DELETE", "/api/users/ada") == (200, {"removed": "ada"})
    assert tell(server, "GET", "/api/users/ada")[0] == 404


def test_only_admins(server):
    status, made = tell(server, "POST", "/api/users", {"name": "bob", "policy": "readwrite"})
    assert status == 201
    bob = sigv4.Signer(made["access_key"], made["secret_key"], service="fgw")
    status, body = tell(server, "GET", "/api/buckets", signer=bob)
    assert status == 403 and "policy admin" in body["message"]
    assert tell(server, "DELETE", "/api/users/bob")[0] == 200


@pytest.mark.parametrize("change, error", [
    ({"service": "s3"}, "AuthorizationHeaderMalformed"),
    ({"region": "eu-nowhere-1"}, "AuthorizationHeaderMalformed"),
    ({"access_key": "NOSUCHKEY"}, "InvalidAccessKeyId"),
    ({"secret_key": "not-the-secret-key-at-all"}, "SignatureDoesNotMatch")])
def test_wrong_signatures(server, change, error):
    signer = server.signer(service="fgw")
    for name, value in change.items():
        setattr(signer, name, value)
    status, body = tell(server, "GET", "/api/users", signer=signer)
    assert status in (400, 403) and body["error"] == error


def test_the_signature_covers_the_body(server):
    host = f"{server.host}:{server.ops_port}"
    sent = sigv4.request_bytes(server.signer(service="fgw"), "POST", "/api/users", host, (),
                               b'{"name":"eve","policy":"none"}')
    with rawhttp.RawConnection(server.host, server.ops_port, 10) as connection:
        connection.send(sent.replace(b"none", b"evil"))
        answer = connection.answer("POST")
    assert answer.status == 400
    assert json.loads(answer.body)["error"] == "XAmzContentSHA256Mismatch"
    status, body = tell(server, "POST", "/api/users", {"name": "eve"}, mode=sigv4.UNSIGNED)
    assert status == 403 and "body's hash" in body["message"]


@pytest.mark.skipif(shutil.which("node") is None, reason="no node to run the page's script")
def test_the_page_signs_as_the_server_checks(server):
    script = re.search(r"// SHA-256.*?(?=\$\(\"keys\"\))", PAGE.read_text(encoding="utf-8"),
                       re.DOTALL).group()
    host = f"{server.host}:{server.ops_port}"
    program = (f"const location={{host:{json.dumps(host)}}};{script};"
               "for(const n of [0,1,55,56,63,64,65,1000])"
               "console.log(hex(sha256(new Uint8Array(n).fill(97))));"
               f"console.log(JSON.stringify(signed('/api/buckets',{json.dumps(server.access_key)},"
               f"{json.dumps(server.secret_key)},'us-east-1')))")
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True,
                          timeout=60)
    *digests, headers = done.stdout.splitlines()
    assert digests == [sigv4.sha256_hex(b"a" * n) for n in (0, 1, 55, 56, 63, 64, 65, 1000)]
    lines = "".join(f"{name}: {value}\r\n" for name, value in json.loads(headers).items())
    with rawhttp.RawConnection(server.host, server.ops_port, 10) as connection:
        connection.send(f"GET /api/buckets HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n".encode())
        assert connection.answer("GET").status == 200


# -- the verbs -----------------------------------------------------------------------------------

def test_verbs_over_the_network(server, bucket):
    done = admin_verb(server, "bucket", "list", "--json")
    assert done.returncode == 0, done.stderr
    assert bucket in [row["name"] for row in json.loads(done.stdout)["buckets"]]
    done = admin_verb(server, "status")
    assert done.returncode == 0 and re.search(rf"^role +{server.verb}$", done.stdout, re.MULTILINE)
    done = admin_verb(server, "user", "add", "net", "--policy", "readonly")
    assert done.returncode == 0, done.stderr
    assert admin_verb(server, "user", "remove", "net").returncode == 0


@pytest.mark.parametrize("arguments, keys, code, says", [
    ((), {"secret": "not-the-secret-key-at-all"}, 1, "signature"),
    (("--admin", "https://127.0.0.1:1"), {}, 2, "--admin takes http://HOST:PORT"),
    (("--admin", "http://127.0.0.1"), {}, 2, "--admin takes http://HOST:PORT"),
    (("--admin", "http://127.0.0.1:1"), {}, 3, "http://127.0.0.1:1 does not answer")])
def test_what_stops_a_verb(server, arguments, keys, code, says):
    done = admin_verb(server, "user", "list", **keys) if not arguments else \
        run_fgw("user", "list", *arguments, env={"FGW_ROOT_ACCESS_KEY": server.access_key,
                                                 "FGW_ROOT_SECRET_KEY": server.secret_key})
    assert done.returncode == code and says in done.stderr, done.stderr


def test_a_verb_without_keys(server):
    done = run_fgw("user", "list", "--admin", f"http://{server.host}:{server.ops_port}")
    assert done.returncode == 2 and "--admin needs FGW_ROOT_ACCESS_KEY" in done.stderr


def test_care_of_the_data_over_the_network(server):
    if server.verb == "proxy":
        pytest.skip("optional: a proxy has no data directory")
    done = admin_verb(server, "scrub", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["damaged"] == 0, done.stderr
    done = admin_verb(server, "sweep", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["failed"] is None, done.stderr
    done = admin_verb(server, "recover")
    assert done.returncode == 2 and "works on the data directory itself" in done.stderr
    done = run_fgw("sweep", "--admin", "http://127.0.0.1:1", env={
        "FGW_ROOT_ACCESS_KEY": server.access_key, "FGW_ROOT_SECRET_KEY": server.secret_key})
    assert done.returncode != 0 and "http://127.0.0.1:1 does not answer" in done.stderr


def ready(port, *arguments):
    return run_fgw("status", "--ready", *arguments, env={"FGW_OPS_LISTEN": f"0.0.0.0:{port}"})


def test_status_ready(server):
    done = ready(server.ops_port)
    assert (done.returncode, done.stdout) == (0, "ready\n")
    assert json.loads(ready(server.ops_port, "--json").stdout)["ready"] is True
    done = ready(free_port())
    assert done.returncode == 3 and "nothing answers at 127.0.0.1:" in done.stderr
    address = f"http://{server.host}:{server.ops_port}"
    assert run_fgw("status", "--ready", "--admin", address).stdout == "ready\n"
    done = run_fgw("status", "--ready", env={"FGW_OPS_LISTEN": ""})
    assert done.returncode == 2


def test_status_ready_of_a_process_that_waits(tmp_path):
    port = free_port()
    process = Process(tmp_path, "proxy", {
        "FGW_S3_LISTEN": f"127.0.0.1:{free_port()}", "FGW_OPS_LISTEN": f"127.0.0.1:{port}",
        "FGW_ROOT_ACCESS_KEY": "root", "FGW_ROOT_SECRET_KEY": "sixteen-or-longer",
        "FGW_CQL_HOSTS": f"127.0.0.1:{free_port()}", "FGW_CLUSTER_SECRET": CLUSTER_SECRET})
    process.launch()
    try:
        end = time.monotonic() + 30
        done = ready(port)
        while time.monotonic() < end and "database: " not in done.stdout:
            time.sleep(0.2)
            done = ready(port)
        assert done.returncode == 3 and done.stdout.startswith("not ready\n"), done
        assert "  database: " in done.stdout
        with rawhttp.RawConnection("127.0.0.1", port, 10) as connection:
            connection.send(b"GET /api/status HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = connection.answer("GET")
        assert answer.status == 503 and b"see /readyz" in answer.body
    finally:
        process.kill()

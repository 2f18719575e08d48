"""minio-go: minio_go/main.go, built for the run."""
import os
import pathlib
import subprocess

import pytest

import foreign

pytestmark = pytest.mark.full
SOURCE = pathlib.Path(__file__).parent / "minio_go"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    go = foreign.find("go", optional=True)
    output = tmp_path_factory.mktemp("minio_go") / "minio_go"
    done = subprocess.run([go, "build", "-o", str(output), "."], cwd=SOURCE, env=os.environ,
                          capture_output=True, text=True, timeout=800, check=False)
    if done.returncode != 0 and "main.go" not in done.stderr:
        pytest.skip(f"optional: go could not build: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    return output


def test_sdk(program, server, bucket, tmp_path):
    environment = foreign.keys_in_environment(server)
    if server.ca_file():
        environment["SSL_CERT_FILE"] = server.ca_file()
    client = foreign.Client(server, tmp_path, environment)
    secure = "true" if server.scheme == "https" else "false"
    assert client.run(program, server.netloc, secure, bucket).split()[-1] == "versions"

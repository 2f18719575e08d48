"""The AWS SDK for JavaScript (node): aws_js/main.js, with its packages fetched for the run."""
import os
import pathlib
import shutil
import subprocess

import pytest

import foreign

pytestmark = pytest.mark.full
SOURCE = pathlib.Path(__file__).parent / "aws_js"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A folder with main.js and node_modules."""
    node, npm = foreign.find("node", optional=True), foreign.find("npm", optional=True)
    folder = tmp_path_factory.mktemp("aws_js")
    for name in ("package.json", "main.js"):
        shutil.copy(SOURCE / name, folder)
    done = subprocess.run([npm, "install", "--no-audit", "--no-fund", "--ignore-scripts"],
                          cwd=folder, env=os.environ, capture_output=True, text=True, timeout=600,
                          check=False)
    if done.returncode != 0:
        pytest.skip(f"optional: npm could not fetch the SDK: {done.stderr[-300:]}")
    return node, folder


def test_sdk(program, server, bucket, tmp_path):
    node, folder = program
    environment = foreign.keys_in_environment(server)
    if server.ca_file():
        environment["NODE_EXTRA_CA_CERTS"] = server.ca_file()
    client = foreign.Client(server, tmp_path, environment)
    assert client.run(node, folder / "main.js", server.endpoint, bucket).split()[-1] == "versions"

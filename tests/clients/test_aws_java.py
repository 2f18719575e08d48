"""The AWS SDKs for Java, versions 1 and 2: aws_java/, with their packages fetched for the run."""
import os
import pathlib
import shutil
import subprocess

import pytest

import foreign

pytestmark = pytest.mark.full
SOURCE = pathlib.Path(__file__).parent / "aws_java"


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    maven = foreign.find("mvn", optional=True)
    folder = tmp_path_factory.mktemp("aws_java")
    shutil.copy(SOURCE / "pom.xml", folder)
    done = subprocess.run([maven, "-B", "-q", "-ntp", "dependency:copy-dependencies",
                           "-DoutputDirectory=lib"], cwd=folder, env=os.environ,
                          capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        pytest.skip(f"optional: mvn could not fetch the SDKs: {done.stdout[-300:]}")
    return folder / "lib"


def trust(server, folder):
    """Options for java to trust the server's authority."""
    if not server.ca_file():
        return []
    store = folder / "trust.p12"
    subprocess.run([foreign.find("keytool"), "-importcert", "-noprompt", "-alias", "fgw", "-file",
                    server.ca_file(), "-keystore", str(store), "-storetype", "PKCS12", "-storepass",
                    "changeit"], capture_output=True, check=True, timeout=60)
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=changeit"]


@pytest.mark.parametrize("program, last_step", [("First", "links"), ("Second", "versions")])
def test_sdk(packages, server, bucket, tmp_path, program, last_step):
    client = foreign.Client(server, tmp_path, foreign.keys_in_environment(server))
    said = client.run(foreign.find("java"), *trust(server, tmp_path), "-cp", f"{packages}/*",
                      SOURCE / f"{program}.java", server.endpoint, bucket)
    assert said.split()[-1] == last_step

"""Other people's programs run against a server: found on PATH, given a clean environment and a home
folder of their own, so that no configuration of the caller leaks in."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

LIMIT_S = 300
LEAKING = ("AWS_", "RCLONE_", "RESTIC_", "FGW_", "RIBS_", "XDG_", "NODE_", "GO")


def find(name, optional=False):
    """The path of a program: beside the interpreter of the tests, else on PATH; skips the test
    when there is none. optional: not among the packages of tools/packages.txt."""
    here = os.path.dirname(sys.executable)
    path = shutil.which(name, path=os.pathsep.join([here, os.environ.get("PATH", "")]))
    if path is None:
        pytest.skip(f"{'optional: ' if optional else ''}no program {name}")
    return path


class Client:
    """Runs one program in `folder` with an environment of its own."""

    def __init__(self, server, folder, environment=(), inherit=()):
        """inherit: names of the caller's environment to keep although they would leak in."""
        self.server = server
        self.folder = pathlib.Path(folder)
        self.home = self.folder / "home"
        self.home.mkdir(parents=True, exist_ok=True)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(LEAKING) or name in inherit}
        for name in list(self.environment):
            if name.lower() in ("http_proxy", "https_proxy", "all_proxy"):
                del self.environment[name]
        self.environment.update(HOME=str(self.home), LANG="C.UTF-8", LC_ALL="C.UTF-8")
        self.environment.update(environment)

    def try_run(self, *command, stdin=None, limit_s=LIMIT_S):
        """To its end: a CompletedProcess with text."""
        return subprocess.run([str(part) for part in command], cwd=self.folder, check=False,
                              env=self.environment, input=stdin, capture_output=True, text=True,
                              timeout=limit_s)

    def run(self, *command, stdin=None, limit_s=LIMIT_S):
        """What it wrote; fails the test when it did not end with 0."""
        done = self.try_run(*command, stdin=stdin, limit_s=limit_s)
        assert done.returncode == 0, (f"{' '.join(map(str, command))}\nended with "
                                      f"{done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def curl(self, url, *options):
        trust = ["--cacert", self.server.ca_file()] if self.server.ca_file() else []
        return self.run(find("curl"), "-sS", "--fail-with-body", *trust, *options, url)


def keys_in_environment(server):
    """What the SDKs read."""
    values = {"AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key,
              "AWS_DEFAULT_REGION": "us-east-1", "AWS_REGION": "us-east-1",
              "AWS_EC2_METADATA_DISABLED": "true"}
    return values


def make_tree(folder, rng, sizes=(0, 1, 1000, 70000, 1200000)):
    """A folder of files with odd names; their relative names -> bytes."""
    names = ["a.txt", "with blank.txt", "deep/er/x+y.bin", "deep/ü-字.txt", "deep/100%.dat"]
    made = {}
    for name, size in zip(names, sizes):
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        made[name] = rng.randbytes(size)
        path.write_bytes(made[name])
    return made


def read_tree(folder):
    folder = pathlib.Path(folder)
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}

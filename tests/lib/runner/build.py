"""Builds a preset."""
import os
import re

from .common import RESULTS, TOP, call, say, show_tail

# Ninja's lines about steps that went well, and compiler command lines.
PROGRESS = re.compile(r"^(\[\d+/\d+\] |\S*(ccache|/c\S+) \S*(cc|clang) |: && )")
LIMIT_S = 40 * 60


def configure(run, preset):
    """True when the preset has a current build folder."""
    return step(run, preset, ["cmake", "--preset", preset, "--log-level=WARNING"])


def build(run, preset, targets=()):
    """True when the preset is built; a failed build is one failure."""
    say(f"build {preset}")
    targets = ["--target", *targets] if targets else []
    return configure(run, preset) and step(
        run, preset, ["cmake", "--build", f"build/{preset}", "-j", str(os.cpu_count() or 2),
                      *targets, "--", "-k", "10"])


def step(run, preset, command):
    log = os.path.join(RESULTS, f"build-{preset}.log")
    code = call(command, LIMIT_S, output=log)
    if code == 0:
        return True
    show_tail(log, without=PROGRESS)
    run.fail(f"build {preset}", "too slow" if code is None else f"exit code {code}",
             " ".join(command))
    return False

"""Builds a preset."""
import os
import re

from .common import RESULTS, TOP, call, say, show_tail

# Ninja's lines about steps that went well, and compiler command lines.
PROGRESS = re.compile(r"^(\[\d+/\d+\] |\S*(ccache|/c\S+) \S*(cc|clang) |: && )")
LIMIT_S = 40 * 60


def build(run, preset, targets=()):
    """True when the preset is built; a failed build is one failure."""
    say(f"build {preset}")
    folder = os.path.join("build", preset)
    configured = os.path.exists(os.path.join(TOP, folder, "build.ninja"))
    steps = [] if configured else [["cmake", "--preset", preset, "--log-level=WARNING"]]
    targets = ["--target", *targets] if targets else []
    steps.append(["cmake", "--build", folder, "-j", str(os.cpu_count() or 2), *targets, "--",
                  "-k", "10"])
    for step in steps:
        log = os.path.join(RESULTS, f"build-{preset}.log")
        code = call(step, LIMIT_S, output=log)
        if code != 0:
            show_tail(log, without=PROGRESS)
            run.fail(f"build {preset}", "too slow" if code is None else f"exit code {code}",
                     " ".join(step))
            return False
    return True

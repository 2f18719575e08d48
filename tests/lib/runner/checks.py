"""The fast checks of the tree, each one test."""
import os

from .common import TOP, call, say

FAST = ("check_layers", "check_banned", "check_caps")


def run(run):
    say("checks")
    for name in FAST:
        path = os.path.join("tools", name)
        if not os.path.exists(os.path.join(TOP, path)):
            continue
        code = call([path], 120, quiet=True)
        if code == 0:
            run.ok()
        else:
            run.fail(path, "the tree breaks its rules (see above)", path)

"""The fast checks of the tree, each one test."""
import os

from .common import TOP, call, say

FAST = ("check_layers", "check_banned", "check_caps")
WITH_A_BUILD = ("check_docs",)


def run(run, names=FAST):
    say(" ".join(names))
    for name in names:
        path = os.path.join("tools", name)
        if not os.path.exists(os.path.join(TOP, path)):
            continue
        code = call([path], 120, quiet=True)
        if code == 0:
            run.ok()
        else:
            run.fail(path, "the tree breaks its rules (see above)", path)

"""Fixtures of the fault tests: see tests/lib/fixtures.py."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from fixtures import *  # noqa: E402,F401,F403

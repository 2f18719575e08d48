"""Fixtures of the tests with other people's clients: those of the integration tests. Each form of
the server (FGW_TEST_FORM=tls: over TLS) is another run of the same tests."""
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from fixtures import *  # noqa: E402,F401,F403


def pytest_collection_modifyitems(items):
    for item in items:
        if os.path.dirname(str(item.path)) == os.path.dirname(os.path.abspath(__file__)):
            item.add_marker(pytest.mark.clients)
            item.add_marker(pytest.mark.timeout(900))

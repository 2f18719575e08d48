"""One real Cassandra for the whole run, when a test wants one: its address in FGW_TEST_CASSANDRA."""
import contextlib
import os


@contextlib.contextmanager
def started_if_needed(run, suites):
    yield

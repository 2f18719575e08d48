"""Lists on a Cassandra that refuses to pass many removed rows (its guard stands at 100,000)."""
import pathlib
import subprocess

import pytest

import cassandra_fixture
import cassandra_server
import fgw_server

pytestmark = [pytest.mark.slow, pytest.mark.full]
PROGRAM = pathlib.Path(fgw_server.binary()).parent / "tests/contract/meta/cql_tombstones"


class GuardedCassandra(cassandra_server.Cassandra):
    def _write_configuration(self):
        super()._write_configuration()
        path = self.folder / "conf" / "cassandra.yaml"
        path.write_text(path.read_text() + "tombstone_warn_threshold: 20\n"
                        "tombstone_failure_threshold: 40\n")


@pytest.mark.timeout(600)
def test_lists_pass_over_removed_rows(tmp_path):
    cassandra_fixture.skip_if_unavailable()
    with GuardedCassandra(tmp_path) as server:
        done = subprocess.run([str(PROGRAM)], stdin=subprocess.DEVNULL, env={
            **fgw_server.clean_environment(), "FGW_TEST_CQL_HOSTS": server.address},
            capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "READ_TOO_MANY_TOMBSTONES" in done.stderr  # it did refuse

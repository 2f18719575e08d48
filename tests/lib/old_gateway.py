"""What the Go gateway does with a keyspace at its start: golang-migrate's Cassandra driver, as far as
it decides whether the gateway runs (github.com/golang-migrate/migrate, database/cassandra)."""

KNOWN = [1753962462, 1754293669, 1756288741, 1756300000, 1769890615]
NIL_VERSION = -1


class Refused(Exception):
    """The gateway ends with this."""


def version(session, keyspace):
    """An arbitrary row; a query that fails looks like an empty database."""
    try:
        rows = list(session.execute(
            f"SELECT version, dirty FROM {keyspace}.schema_migrations LIMIT 1"))
    except Exception:  # pylint: disable=broad-except
        return NIL_VERSION, False
    return (rows[0].version, rows[0].dirty) if rows else (NIL_VERSION, False)


def start(session, keyspace):
    """The versions it would run; Refused when it would not start."""
    session.execute(f"CREATE TABLE IF NOT EXISTS {keyspace}.schema_migrations "
                    "(version bigint PRIMARY KEY, dirty boolean)")
    found, dirty = version(session, keyspace)
    if dirty:
        raise Refused(f"Dirty database version {found}. Fix and force version.")
    if found != NIL_VERSION and found not in KNOWN:
        raise Refused(f"no migration found for version {found}")
    return [known for known in KNOWN if known > found]

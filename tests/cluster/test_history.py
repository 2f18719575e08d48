"""The checker of the chaos run finds what it is there to find."""
import math

import history
from history import DELETE, GET, MISSING, OK, PUT, REFUSED, UNKNOWN, Operation


def op(kind, start, end, result=OK, value=None, expects=None):
    return Operation(kind, "k", 0, start, math.inf if result == UNKNOWN else end, result, value,
                     expects)


def test_what_is_in_order_is_explained():
    assert history.explain([op(PUT, 0, 1, value="a"), op(GET, 2, 3, value="a"),
                            op(DELETE, 4, 5), op(GET, 6, 7, MISSING)])
    # side by side: either order
    assert history.explain([op(PUT, 0, 5, value="a"), op(PUT, 0, 5, value="b"),
                            op(GET, 6, 7, value="a"), op(GET, 8, 9, value="a")])
    assert history.explain([op(PUT, 0, 1, value="a"), op(PUT, 2, 9, value="b"),
                            op(GET, 3, 4, value="a"), op(GET, 5, 6, value="b")])


def test_a_lost_or_stale_value_is_found():
    assert not history.explain([op(PUT, 0, 1, value="a"), op(GET, 2, 3, MISSING)])
    assert not history.explain([op(PUT, 0, 1, value="a"), op(PUT, 2, 3, value="b"),
                                op(GET, 4, 5, value="a")])
    assert not history.explain([op(PUT, 0, 9, value="a"), op(PUT, 0, 9, value="b"),
                                op(GET, 10, 11, value="a"), op(GET, 12, 13, value="b")])
    # seen once, then gone again
    assert not history.explain([op(PUT, 0, 1, value="a"), op(PUT, 2, 20, value="b"),
                                op(GET, 3, 4, value="b"), op(GET, 5, 6, value="a")])


def test_an_unanswered_write_may_or_may_not_have_happened():
    lost = op(PUT, 2, 3, UNKNOWN, value="b")
    assert history.explain([op(PUT, 0, 1, value="a"), lost, op(GET, 4, 5, value="a"),
                            op(GET, 6, 7, value="b")])
    assert history.explain([op(PUT, 0, 1, value="a"), lost, op(GET, 4, 5, value="a")])
    assert not history.explain([op(PUT, 0, 1, value="a"), lost, op(GET, 4, 5, value="b"),
                                op(GET, 6, 7, value="a")])
    assert not history.explain([op(GET, 0, 1, value="b"), lost])


def test_conditions_count():
    assert history.explain([op(PUT, 0, 9, value="a", expects="*"),
                            op(PUT, 0, 9, REFUSED, value="b", expects="*")])
    assert not history.explain([op(PUT, 0, 9, value="a", expects="*"),
                                op(PUT, 0, 9, value="b", expects="*")])
    assert not history.explain([op(PUT, 0, 1, value="a"), op(PUT, 2, 3, value="b", expects="x")])
    assert not history.explain([op(PUT, 0, 1, REFUSED, value="a", expects="*")])
    assert history.explain([op(PUT, 0, 1, value="a"), op(PUT, 2, 3, value="b", expects="a"),
                            op(PUT, 4, 5, REFUSED, value="c", expects="a"),
                            op(GET, 6, 7, value="b")])


def test_a_history_survives_its_file(tmp_path):
    kept = history.History()
    operation = kept.begin(PUT, "k", 1, value="a")
    history.finish(operation, OK)
    kept.begin(GET, "k", 2)
    kept.save(tmp_path / "history")
    assert history.load(tmp_path / "history").operations == kept.operations
    assert history.check(kept) == ([], 0)

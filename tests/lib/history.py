"""What clients did and saw, and whether one order of it explains everything: a linearizability checker
for keys that are registers with conditional writes (Wing and Gong's search with a memory).

An operation has a start, an end (None: no answer, it may have taken effect at any later time or
never) and a result. The state of a key is its ETag, or None while there is no object.
"""
import dataclasses
import json
import math
import threading
import time

PUT, DELETE, GET = "put", "delete", "get"
OK, REFUSED, MISSING, UNKNOWN = "ok", "refused", "missing", "unknown"
STEPS_MAX = 400_000


@dataclasses.dataclass
class Operation:
    kind: str
    key: str
    client: int
    start: float
    end: float = math.inf
    result: str = UNKNOWN
    value: str | None = None    # ETag written, or seen by a GET
    expects: str | None = None  # If-Match; "*": If-None-Match: *
    why: str | None = None      # of an operation without a result: what the client was told

    def after(self, state):
        """(possible, state afterwards) when it takes effect at `state`."""
        if self.kind == GET:
            return (state == self.value if self.result == OK else state is None), state
        met = (state is None) if self.expects == "*" else self.expects in (None, state)
        if self.kind == DELETE:
            return True, None
        if self.result == OK:
            return met, self.value
        if self.result == REFUSED:
            return not met, state
        if self.result == MISSING:
            return state is None, state
        return True, (self.value if met else state)


class History:
    """Filled by many threads."""

    def __init__(self):
        self.operations, self.lock = [], threading.Lock()

    def begin(self, kind, key, client, **what):
        operation = Operation(kind, key, client, time.monotonic(), **what)
        with self.lock:
            self.operations.append(operation)
        return operation

    def by_key(self):
        keys = {}
        for operation in self.operations:
            keys.setdefault(operation.key, []).append(operation)
        return keys

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            for operation in sorted(self.operations, key=lambda op: op.start):
                line = dataclasses.asdict(operation)
                line["end"] = None if math.isinf(operation.end) else operation.end
                file.write(json.dumps(line) + "\n")


def load(path):
    history = History()
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = json.loads(line)
            fields["end"] = math.inf if fields["end"] is None else fields["end"]
            history.operations.append(Operation(**fields))
    return history


def finish(operation, result, value=None):
    operation.result = result
    if value is not None:
        operation.value = value
    operation.end = math.inf if result == UNKNOWN else time.monotonic()


def explain(operations):
    """True: some order explains them; False: none does; None: too many to tell."""
    # reads without an answer say nothing
    operations = sorted((op for op in operations if op.kind != GET or op.result != UNKNOWN),
                        key=lambda op: op.start)
    known = sum(1 << i for i, op in enumerate(operations) if op.result != UNKNOWN)
    seen, stack, steps = set(), [(0, None)], 0
    while stack:
        done, state = stack.pop()
        if done & known == known:
            return True
        if (done, state) in seen:
            continue
        seen.add((done, state))
        steps += 1
        if steps > STEPS_MAX:
            return None
        horizon = min(op.end for i, op in enumerate(operations) if not done >> i & 1)
        # what has no answer is tried last
        for wanted_known in (False, True):
            for i, op in enumerate(operations):
                if op.start > horizon:
                    break
                if done >> i & 1 or (op.result != UNKNOWN) != wanted_known:
                    continue
                possible, after = op.after(state)
                if possible and (after != state or op.result != UNKNOWN):
                    stack.append((done | 1 << i, after))
    return False


def check(history):
    """Keys that no order explains, and how many were too long to tell."""
    bad, undecided = [], 0
    for key, operations in history.by_key().items():
        verdict = explain(operations)
        undecided += verdict is None
        if verdict is False:
            bad.append(key)
    return bad, undecided

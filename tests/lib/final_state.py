"""What must be true of a cluster that is whole again and that nobody writes to: every blob that an object
names has R copies, held for that object by the stores the row means, and nothing else is held.

`blobs` is {key: [(cid, size), ...]}, for a multipart object one entry a part.

What can be demanded when: a store that names a blob is told of its end by a hint (a release), and a
write that got no name (its client, proxy or store died in between) tells nobody; its holds are the
sweeper's, after two looks two hours apart. So counts are compared after a sweep with that age turned
down (`swept`), and not before; of objects that are deleted while nothing is the matter the hints alone
must free everything. An upload that is open or completing names its parts on any set: end it first.
"""
import collections
import time

import stores

LIMIT_S = 180


def wait_for(found, what, limit_s=LIMIT_S):
    """Until `found` finds nothing that is wrong; what it found last is told."""
    end = time.monotonic() + limit_s
    while wrong := found():
        assert time.monotonic() < end, f"{what}: {len(wrong)}, such as {wrong[:5]}"
        time.sleep(1)


def lacking(cluster, blobs, replicas):
    """(key, cid, copies) of blobs with fewer copies, by asking each store."""
    copies = stores.copies_of(cluster.nodes, {(key, cid): (cid, size) for key, named in blobs.items()
                                              for cid, size in named})
    return [(*blob, count) for blob, count in copies.items() if count < replicas]


def differences(cluster, blobs, replicas):
    """Where holds and names differ: (what, key, cid, node or number of holds)."""
    wrong, held = [], collections.Counter()
    for node in cluster.nodes:
        for hold in node.fgw("node", "reconcile", "--all")[1]["holds"]:
            held[hold["key"], hold["cid"], hold["size"]] += 1
            if hold["named"] != "here":
                wrong.append((f"named {hold['named']}", hold["key"], hold["cid"], node.name))
    wanted = collections.Counter()
    for key, named in blobs.items():
        for cid, size in named:
            wanted[key, cid, size] += replicas
    for what in sorted(set(held) | set(wanted)):
        if held[what] != wanted[what]:
            wrong.append((f"held by {held[what]} stores, not {wanted[what]}", *what))
    return wrong


def restart(cluster, **settings):
    """All storage nodes at once, each in order."""
    bad = [node.name for node in cluster.nodes if not node.stop()]
    assert bad == [], f"{bad} did not end with 0"
    for node in cluster.nodes:
        node.extra = settings
        node.start()
    for node in cluster.nodes:
        node.wait_ready(LIMIT_S)
    cluster.wait_settled(LIMIT_S)


def swept(cluster, blobs, replicas):
    """The sweeper frees what got no name, and of what has one exactly the wanted holds stay."""
    def wrong():
        for node in cluster.nodes:
            # more than a thousand without a name are freed when somebody says so
            node.fgw("sweep", "--approve", check=False)
        return differences(cluster, blobs, replicas)

    restart(cluster, FGW_SWEEP_GRACE="1s", FGW_TEST_HOLD_AGE_MS="1000",
            FGW_TEST_DATABASE_GOOD_MS="1000")
    wait_for(wrong, "holds and names differ after the sweep")
    # from here on nothing goes but what a release says
    restart(cluster)


def emptied(cluster):
    """All objects are deleted: no hold, and no byte of a block or list, is left."""
    def left():
        wrong = differences(cluster, {}, 0)
        for node in cluster.nodes:
            if live := node.metrics()["fgw_storage_live_bytes"]:
                wrong.append(("bytes are alive", node.name, live))
        return wrong

    wait_for(left, "something is held when all is deleted")

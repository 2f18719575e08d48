"""S3 while its database is stopped, killed, hung or slow: 503 with Retry-After instead of waiting for
ever, recovery without a restart, nothing acknowledged is lost, load is shed and memory stays."""
import concurrent.futures
import hashlib
import itertools
import threading
import time

import pytest

import fgw_server
import sigv4
import ycql_proxy

pytestmark = pytest.mark.slow
BUCKET = "bucket"


def serving(address, folder, **settings):
    server = fgw_server.new_server("embedded", folder, {
        "FGW_META": "cql", "FGW_CQL_HOSTS": address, "FGW_CQL_NODE_KEYSPACE": "none",
        "FGW_CQL_KEYSPACE": "fgw_away_" + hashlib.md5(str(folder).encode()).hexdigest()[:10],
        "FGW_CLUSTER_SECRET": fgw_server.CLUSTER_SECRET, "FGW_CQL_TIMEOUT": "5s", **settings})
    server.start(wait=False)
    assert server.wait_ready(120)
    server.client().create_bucket(Bucket=BUCKET)
    return server


class Load:
    """Threads that PUT new keys and GET acknowledged ones, each request on a connection of its own."""

    def __init__(self, server, threads):
        self.server, self.threads = server, threads
        self.numbers = itertools.count()
        self.acknowledged = {}
        self.results = []  # (at, seconds, method, status, code, retry_after)
        self.ending = threading.Event()
        self.began = time.monotonic()
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.futures = [self.pool.submit(self.run) for _ in range(threads)]

    def run(self):
        while not self.ending.is_set():
            number = next(self.numbers)
            key, body = f"key-{number}", b"%d " % number * 50
            if self.request("PUT", key, body) == 200:
                self.acknowledged[key] = body
                if number % 3 == 0:
                    self.request("GET", key)

    def request(self, method, key, body=b""):
        began = time.monotonic()
        try:
            with self.server.connect(timeout=120) as connection:
                connection.send(sigv4.request_bytes(self.server.signer(), method,
                                                    f"/{BUCKET}/{key}", self.server.netloc, (), body))
                answer = connection.answer(method)
            status = answer.status
            code = answer.body if status >= 300 else b""
            retry = answer.headers.get("Retry-After") is not None
        except OSError as error:
            status, code, retry = 0, repr(error).encode(), False
        self.results.append((began - self.began, time.monotonic() - began, method, status, code,
                             retry))
        return status

    def end(self):
        self.ending.set()
        for future in self.futures:
            future.result(150)
        self.pool.shutdown()

    def between(self, begin, end):
        return [result for result in self.results if begin <= result[0] < end]

    def now(self):
        return time.monotonic() - self.began

    def check_acknowledged(self):
        """Everything that was answered with 200 is there."""
        missing = []
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            def look(item):
                answer = self.server.raw("GET", f"/{BUCKET}/{item[0]}")
                if answer.status != 200 or answer.body != item[1]:
                    missing.append((item[0], answer.status))
            list(pool.map(look, self.acknowledged.items()))
        assert missing == []


def check_refusals(results, longest_s):
    """Only successes and refusals of the right kind, none of them late."""
    for _, seconds, method, status, code, retry in results:
        assert status in (200, 503), (method, status, code)
        assert seconds < longest_s, (method, status, seconds)
        if status == 503:
            assert retry
            assert b"<Code>ServiceUnavailable</Code>" in code or b"<Code>SlowDown</Code>" in code


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["stopped", pytest.param("killed", marks=pytest.mark.full)])
def test_database_comes_and_goes(own_database, tmp_path, how):
    server = serving(own_database.address, tmp_path)
    load = Load(server, 6)
    try:
        time.sleep(4)
        (own_database.stop if how == "stopped" else own_database.kill)()
        gone = load.now()
        time.sleep(8)
        back = load.now()
        own_database.start()
        ready = load.now()
        time.sleep(10)
        end = load.now()
    finally:
        load.end()
        if own_database.process is None:
            own_database.start()
    try:
        check_refusals(load.results, 12)
        away = load.between(gone + 1, back)
        assert {result[3] for result in away if result[2] == "PUT"} == {503}
        assert len(away) > 20  # refused at once, not after a time-out each
        after = load.between(ready + 6, end)
        assert after
        assert {result[3] for result in after} == {200}
        print({"acknowledged": len(load.acknowledged), "refused": len(away),
               "slowest_s": round(max(result[1] for result in load.results), 2)})
        load.check_acknowledged()
        server.check()
    finally:
        server.stop()


@pytest.mark.full
@pytest.mark.timeout(300)
def test_database_hangs(cassandra, tmp_path, rng):
    """Connections stay, answers do not come: the breaker refuses, and it is over when they do."""
    with ycql_proxy.YcqlProxy(cassandra.address, rng.randrange(2**31)) as proxy:
        server = serving(proxy.address, tmp_path)
        load = Load(server, 6)
        try:
            time.sleep(3)
            proxy.hang()
            hung = load.now()
            time.sleep(15)
            proxy.resume()
            resumed = load.now()
            time.sleep(20)
            end = load.now()
        finally:
            load.end()
        check_refusals(load.results, 15)
        assert {result[3] for result in load.between(hung + 2, resumed - 6)
                if result[2] == "PUT"} == {503}
        assert {result[3] for result in load.between(resumed + 14, end)} == {200}
        load.check_acknowledged()
        server.check()
        server.stop()
        cassandra.drop_keyspace(server.settings["FGW_CQL_KEYSPACE"])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("done", [True, pytest.param(False, marks=pytest.mark.full)],
                         ids=["done", "not_done"])
def test_write_without_answers_has_one_deadline(cassandra, tmp_path, rng, done):
    """Twice FGW_CQL_TIMEOUT over all statements of a write: two without an answer, and no third."""
    with ycql_proxy.YcqlProxy(cassandra.address, rng.randrange(2**31)) as proxy:
        server = serving(proxy.address, tmp_path, FGW_CQL_TIMEOUT="2s")
        try:
            wait_until_all_pass(server)
            proxy.arm("lost" if done else "held", 100, r"(INSERT INTO|UPDATE) \S*\.objects\b")
            for key in (f"one-deadline-{i}" for i in range(100)):
                answer = server.raw("PUT", f"/{BUCKET}/{key}", body=b"x")
                assert answer.status == 503
                if proxy.counts["lost"] + proxy.counts["held"] > 0:
                    break  # else the machine was slow before it came to that
            assert answer.headers.get("Retry-After") is not None
            assert b"not known whether the operation took effect" in answer.body
            assert 1 <= proxy.counts["lost"] + proxy.counts["held"] <= 2
            proxy.disarm()
            wait_until_all_pass(server)
            assert server.raw("GET", f"/{BUCKET}/{key}").status == (200 if done else 404)
            server.check()
        finally:
            server.stop()
            cassandra.drop_keyspace(server.settings["FGW_CQL_KEYSPACE"])


def seconds_of(results):
    """Median, 90 % and longest of their durations, for people who look."""
    times = sorted(result[1] for result in results)
    return [round(times[int(len(times) * part)], 1) for part in (0.5, 0.9)] + \
        [round(times[-1], 1)] if times else []


def wait_until_all_pass(server, limit_s=60):
    """Ten writes and reads in a row that are answered with 200: the load is over, so is the shedding."""
    end, good = time.monotonic() + limit_s, 0
    while good < 10:
        assert time.monotonic() < end, "still refusing"
        put = server.raw("PUT", f"/{BUCKET}/after-{good}", body=b"x").status
        got = server.raw("GET", f"/{BUCKET}/after-{good}").status
        good = good + 1 if put == got == 200 else 0


def resident_kib(server):
    text = open(f"/proc/{server.process.process.pid}/status", encoding="utf-8").read()
    return int(text.split("VmRSS:")[1].split()[0])


@pytest.mark.full
@pytest.mark.timeout(300)
def test_slow_database_sheds_load(cassandra, tmp_path, rng, monkeypatch):
    """At 2 s an answer more comes in than can go out: SlowDown, not a queue that grows."""
    monkeypatch.setenv("ASAN_OPTIONS", "quarantine_size_mb=4")
    with ycql_proxy.YcqlProxy(cassandra.address, rng.randrange(2**31)) as proxy:
        server = serving(proxy.address, tmp_path, FGW_CQL_TIMEOUT="10s")
        proxy.latency_ms = 2000
        load = Load(server, 400)
        try:
            time.sleep(15)
            first = resident_kib(server)
            time.sleep(25)
            second = resident_kib(server)
        finally:
            load.end()
        proxy.latency_ms = 0
        shed = [result for result in load.results if b"<Code>SlowDown</Code>" in result[4]]
        print({"requests": len(load.results), "shed": len(shed), "rss_kib": (first, second),
               "acknowledged": len(load.acknowledged), "shed_s": seconds_of(shed),
               "passed_s": seconds_of([result for result in load.results if result[3] == 200])})
        check_refusals(load.results, 120)
        assert shed
        assert second < first * 1.3 + 30000
        wait_until_all_pass(server)
        load.check_acknowledged()
        server.check()
        server.stop()
        cassandra.drop_keyspace(server.settings["FGW_CQL_KEYSPACE"])

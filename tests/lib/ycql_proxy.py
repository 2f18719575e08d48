#!/usr/bin/env python3
"""A proxy that makes a Cassandra look like YugabyteDB's YCQL, and misbehave as YCQL does.

usage: tests/lib/ycql_proxy.py HOST:PORT [--port N] [--seed N] [--rates NAME=PERMILLE,...]

Always on: OPTIONS, release and schema version, system tables as YugabyteDB shows them; errors in
0x2200 with "(ql error N)"; columns of refused conditional statements; 0x000A for trailing bytes and
other versions; refusal of UNSET and of texts outside the common subset. What FGW must never send is
listed in `violations`.

Faults, by `rates` (per mille, drawn from the seed) or armed one by one; `counts` tells how often
each happened, so that a test can assert it. On requests:
  unprepared       EXECUTE is answered with 0x2500
  overloaded       0x1001, nothing done
  timeout_before   a write is answered with -300 and was not done
  timeout_after    the same, but it was done
  timeout_late     the same, and it is done `late_ms` afterwards
  hidden_retry     a conditional write is done twice within the server: the second answer counts
  short_page       a page of at most three rows
  lost             done, and never answered
  held             not sent on before release_held()
On answers:
  empty_page       a page without rows and with more to come
  prefix           warnings and a custom payload in front
  event            SCHEMA_CHANGE or a burst of MOVED_NODE on stream -1 in front
  bytewise         in segments of one byte
  cut              the connection ends in the middle of the frame
  slow             `slow_ms` late
After DDL, for `stale_ms`: stale_table (0x2500 to EXECUTE, -301 to QUERY), stale_catalog (the answer
system_schema gave before).
`skew_ms` gives plain writes through a node the time of a coordinator whose clock is wrong by so much
(conditional ones have the ballots of one clock). `spare_ddl` keeps the faults of requests from DDL. `latency_ms` delays every answer; hang(node) leaves a node's requests without answer; with nodes=2
the second one listens on 127.0.0.2, both on one Cassandra.
Standard library only.
"""
import argparse
import asyncio
import collections
import itertools
import os
import random
import re
import signal
import struct
import sys
import threading
import time
import traceback
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import ycql_frames as wire  # noqa: E402
import ycql_text as texts  # noqa: E402

SCHEMA_VERSION = uuid.UUID("00000000-0000-0000-0000-000000000000").bytes
EMPTY_MARK = b"ycql-empty-page:"
OWN_STREAM = 20000
USUAL = {"unprepared": 10, "overloaded": 4, "timeout_before": 8, "timeout_after": 8,
         "hidden_retry": 10, "short_page": 60, "empty_page": 80, "prefix": 30, "event": 20,
         "bytewise": 5, "stale_table": 100, "stale_catalog": 150}
WRITES = ("write", "lwt", "ddl")


class Request:
    """One request under way, found again by its stream."""

    def __init__(self, opcode, stream, text=""):
        self.opcode, self.stream, self.text = opcode, stream, text
        self.kind, self.table = texts.kind_of(text), texts.table_of(text)
        self.params = None
        self.columns = []  # of the bind markers
        self.frame = b""
        self.asked_state = None
        self.retried = False
        self.lost = False
        self.unanswered = False


class Upstream:
    """A connection of the proxy's own, for questions about tables."""

    def __init__(self, address):
        self.address, self.lock, self.streams = address, asyncio.Lock(), None

    async def query(self, text):
        async with self.lock:
            if self.streams is None:
                self.streams = await asyncio.open_connection(*self.address)
                await self._ask(wire.STARTUP, struct.pack(">H", 1) + wire.put_string(
                    "CQL_VERSION") + wire.put_string("3.0.0"))
            body = text.encode()
            answer = await self._ask(wire.QUERY, struct.pack(">i", len(body)) + body + struct.pack(
                ">HB", wire.QUORUM, 0))
            return wire.Rows(wire.Reader(answer[4:]))

    async def _ask(self, opcode, body):
        reader, writer = self.streams
        writer.write(wire.frame(opcode, 0, body, version=4))
        _, flags, _, opcode, size = wire.HEADER.unpack(await reader.readexactly(9))
        body = wire.without_prefixes(flags, await reader.readexactly(size))
        if opcode == wire.ERROR:
            raise RuntimeError(f"the proxy's own question: {body!r}")
        return body


class Connection:
    """One client connection and the one to Cassandra behind it."""

    def __init__(self, proxy, node, reader, writer):
        self.proxy, self.node, self.reader, self.writer = proxy, node, reader, writer
        self.requests = {}
        self.up_reader = self.up_writer = None
        self.writing = asyncio.Lock()
        self.tasks = set()

    # -- life -------------------------------------------------------------------------------------

    async def run(self):
        try:
            self.up_reader, self.up_writer = await asyncio.open_connection(*self.proxy.upstream)
            self.spawn(self.answers())
            while True:
                head = await self.reader.readexactly(9)
                version, flags, stream, opcode, size = wire.HEADER.unpack(head)
                if version != 4:
                    await self.send(self.error(stream, 0x000A, "Invalid or unsupported protocol "
                                               f"version ({version}); supported: 4"))
                    return
                body = await self.reader.readexactly(size)
                await self.request(flags, stream, opcode, body)
        except (OSError, asyncio.IncompleteReadError):
            pass
        except Exception:  # pylint: disable=broad-except
            self.proxy.broken(traceback.format_exc())
        finally:
            self.close()

    def spawn(self, coroutine):
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def close(self):
        for task in list(self.tasks):
            if task is not asyncio.current_task():
                task.cancel()
        for writer in (self.writer, self.up_writer):
            if writer is not None:
                writer.close()

    # -- to the client ----------------------------------------------------------------------------

    @staticmethod
    def error(stream, code, text, extra=b""):
        return wire.frame(wire.ERROR, stream, struct.pack(">i", code) + wire.put_string(text) + extra)

    async def send(self, data, step=None):
        """step: in segments of so many bytes."""
        try:
            async with self.writing:
                for at in range(0, len(data), step or len(data)):
                    self.writer.write(data[at:at + (step or len(data))])
                    await self.writer.drain()
                    if step:
                        await asyncio.sleep(0)
        except (OSError, RuntimeError):
            self.close()

    async def deliver(self, opcode, stream, body):
        """An answer, with what may befall it on its way."""
        proxy, flags = self.proxy, 0
        if self.node in proxy.hanging:
            return
        if proxy.latency_ms:
            await asyncio.sleep(proxy.latency_ms / 1000)
        if opcode in (wire.RESULT, wire.ERROR) and proxy.hit("prefix"):
            flags = 0x0C
            body = (struct.pack(">H", 1) + wire.put_string("a warning of the server") +
                    struct.pack(">H", 1) + wire.put_string("k") + wire.put_bytes(b"v") + body)
        data = wire.frame(opcode, stream, body, flags=flags)
        if proxy.hit("event"):
            data = self.event() + data
        if proxy.hit("cut"):
            await self.send(data[:max(1, len(data) // 2)])
            self.close()
            return
        if proxy.hit("slow"):
            await asyncio.sleep(proxy.slow_ms / 1000)
        await self.send(data, 1 if len(data) < 400 and proxy.hit("bytewise") else None)

    def event(self):
        one = wire.put_string("SCHEMA_CHANGE") + b"".join(map(wire.put_string, (
            "CREATED", "TABLE", "elsewhere", "t")))
        moved = (wire.put_string("TOPOLOGY_CHANGE") + wire.put_string("MOVED_NODE") +
                 b"\x04\x7f\x00\x00\x01" + struct.pack(">i", 9042))
        bodies = [one] if self.proxy.random.random() < 0.5 else [moved] * 5
        return b"".join(wire.frame(wire.EVENT, -1, body) for body in bodies)

    # -- requests ---------------------------------------------------------------------------------

    async def request(self, flags, stream, opcode, body):
        self.proxy.counts["requests"] += 1
        if flags:
            self.proxy.violation(f"frame flags {flags:#x}")
        try:
            await self.understand(stream, opcode, body)
        except wire.Malformed as wrong:
            self.proxy.violation(f"opcode {opcode:#x}: {wrong}")
            await self.send(self.error(stream, 0x000A, str(wrong)))

    async def understand(self, stream, opcode, body):
        reader = wire.Reader(body)
        if opcode == wire.OPTIONS:
            await self.deliver(wire.SUPPORTED, stream, supported())
        elif opcode == wire.REGISTER:
            for _ in range(reader.u16()):
                if reader.string() not in ("TOPOLOGY_CHANGE", "STATUS_CHANGE", "SCHEMA_CHANGE"):
                    raise wire.Malformed("Invalid event type")
            await self.deliver(wire.READY, stream, b"")
        elif opcode in (wire.STARTUP, wire.AUTH_RESPONSE):
            self.forward(Request(opcode, stream), body)
        elif opcode == wire.BATCH:
            await self.batch(stream, body)
        elif opcode == wire.PREPARE:
            request = Request(opcode, stream, reader.long_string())
            reader.end()
            await self.statement(request, body)
        elif opcode == wire.QUERY:
            request = Request(opcode, stream, reader.long_string())
            request.params = wire.Params(reader)
            await self.statement(request, None)
        elif opcode == wire.EXECUTE:
            identity = reader.short_bytes()
            text, columns = self.proxy.prepared.get(identity, ("", []))
            request = Request(opcode, stream, text)
            request.identity, request.columns = identity, columns
            request.params = wire.Params(reader)
            await self.statement(request, None)
        else:
            raise wire.Malformed(f"Unknown opcode {opcode}")

    async def batch(self, stream, body):
        """Not atomic, INSERT, UPDATE and DELETE only, none of them conditional."""
        reader = wire.Reader(body)
        reader.u8()
        for _ in range(reader.u16()):
            if reader.u8() == 0:
                text = reader.long_string()
            else:
                text, _ = self.proxy.prepared.get(reader.short_bytes(), ("", []))
            for _ in range(reader.u16()):
                reader.bytes()
            if texts.kind_of(text) != "write":
                self.proxy.violation(f"in a batch: {text}")
        reader.u16()
        if reader.u8() & 0x10:
            reader.u16()
        reader.end()
        self.forward(Request(wire.BATCH, stream, "INSERT"), body)

    async def statement(self, request, body):
        proxy, params = self.proxy, request.params
        rule = texts.forbidden(request.text)
        if rule is not None:
            proxy.violation(f"{rule}: {request.text}")
            await self.refuse(request, 0x2000, "Feature Not Supported", -13)
            return
        if texts.refused_replication(request.text):
            proxy.counts["replication_refused"] += 1
            await self.refuse(request, 0x2200, "Invalid Arguments. Invalid replication", -200)
            return
        if params is not None:
            self.check_params(request)
            if params.unset:
                await self.refuse(request, 0x2200, "Invalid Arguments. Unset value", -304)
                return
        if await self.system_table(request) or await self.injected(request):
            return
        if params is not None:
            self.rewrite(request)
            body = self.encode(request)
        if request.opcode != wire.PREPARE and proxy.hit("held", request.text):
            proxy.held.append((self, request, body))
            return
        request.unanswered = request.opcode != wire.PREPARE and proxy.hit("lost", request.text)
        self.forward(request, body)
        if request.lost:
            proxy.counts["sent_then_lost"] += 1

    def check_params(self, request):
        params = request.params
        if params.flags & ~0x1d:
            self.proxy.violation(f"query flags {params.flags:#x}")
        if params.consistency != wire.QUORUM:
            self.proxy.violation(f"consistency {params.consistency}: {request.text}")
        if request.kind == "select" and params.page_size is None:
            self.proxy.violation(f"no page size: {request.text}")
        if request.kind == "lwt" and params.serial != wire.SERIAL:
            self.proxy.violation(f"serial consistency {params.serial}: {request.text}")
        if params.unset:
            self.proxy.violation(f"UNSET: {request.text}")

    async def refuse(self, request, code, title, number):
        await self.deliver(wire.ERROR, request.stream, struct.pack(">i", code) + wire.put_string(
            texts.message(title, request.text, number)))

    async def system_table(self, request):
        """Answers what YugabyteDB does not have; False: go on."""
        found = re.match(r"system\.(\w+)$", request.table)
        if request.kind != "select" or not found or found.group(1) in ("local", "peers"):
            return False
        self.proxy.counts["unknown_system_table"] += 1
        if found.group(1) == "peers_v2":
            await self.deliver(wire.ERROR, request.stream,
                               struct.pack(">i", 0) + wire.put_string("Unknown system table"))
        else:
            await self.deliver(wire.RESULT, request.stream, struct.pack(">i", wire.VOID))
        return True

    async def injected(self, request):
        """Answers by itself when a fault says so."""
        proxy, text = self.proxy, request.text
        own = not request.table.startswith("system")
        if request.opcode == wire.EXECUTE and (
                proxy.hit("unprepared", text) or
                (own and proxy.is_stale(request.table) and proxy.hit("stale_table", text))):
            await self.deliver(wire.ERROR, request.stream, struct.pack(
                ">i", 0x2500) + wire.put_string("Unprepared query. No such prepared statement") +
                struct.pack(">H", len(request.identity)) + request.identity)
            return True
        if request.opcode == wire.QUERY and own and request.kind != "ddl" and proxy.is_stale(
                request.table) and proxy.hit("stale_table", text):
            await self.refuse(request, 0x2200, "Object Not Found", -301)
            return True
        if request.opcode != wire.PREPARE and proxy.hit("overloaded", text):
            await self.deliver(wire.ERROR, request.stream, struct.pack(">i", 0x1001) +
                               wire.put_string("CQL shutting down or out of memory"))
            return True
        if request.opcode == wire.PREPARE or request.kind not in WRITES:
            return False
        if proxy.hit("timeout_before", text):
            await self.answer_deadline(request)
            return True
        if proxy.hit("timeout_late", text):
            await self.answer_deadline(request)
            self.spawn(self.send_late(request))
            return True
        request.lost = proxy.hit("timeout_after", text)
        return False

    async def answer_deadline(self, request):
        await self.deliver(wire.ERROR, request.stream, struct.pack(">i", 0x2200) + wire.put_string(
            texts.deadline(request.text)))

    async def send_late(self, request):
        await asyncio.sleep(self.proxy.late_ms / 1000)
        late = Request(request.opcode, OWN_STREAM + next(self.proxy.numbers) % 10000, request.text)
        late.params, late.identity = request.params, getattr(request, "identity", b"")
        self.up_writer.write(wire.frame(late.opcode, late.stream, self.encode(late), version=4))

    def rewrite(self, request):
        params = request.params
        request.asked_state = params.paging_state
        if params.paging_state is not None and params.paging_state.startswith(EMPTY_MARK):
            state = params.paging_state[len(EMPTY_MARK):]
            params.paging_state = request.asked_state = state or None
        if request.kind == "write" and self.node in self.proxy.skew_ms:
            self.proxy.counts["skewed"] += 1
            params.timestamp = time.time_ns() // 1000 + self.proxy.skew_ms[self.node] * 1000
        if request.kind == "select" and (params.page_size or 0) > 3 and not \
                request.table.startswith("system") and self.proxy.hit("short_page", request.text):
            params.page_size = 1 + self.proxy.random.randrange(3)

    def encode(self, request):
        body = request.params.encode()
        if request.opcode == wire.EXECUTE:
            return struct.pack(">H", len(request.identity)) + request.identity + body
        text = request.text.encode()
        return struct.pack(">i", len(text)) + text + body

    def forward(self, request, body):
        request.frame = wire.frame(request.opcode, request.stream, body, version=4)
        self.requests[request.stream] = request
        self.up_writer.write(request.frame)

    # -- answers ----------------------------------------------------------------------------------

    async def answers(self):
        try:
            while True:
                head = await self.up_reader.readexactly(9)
                _, flags, stream, opcode, size = wire.HEADER.unpack(head)
                body = wire.without_prefixes(flags, await self.up_reader.readexactly(size))
                request = self.requests.pop(stream, None)
                if request is None:
                    continue  # of a late write
                if self.proxy.latency_ms or self.proxy.rates.get("slow"):
                    self.spawn(self.answer(request, opcode, body))
                else:
                    await self.answer(request, opcode, body)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
        except Exception:  # pylint: disable=broad-except
            self.proxy.broken(traceback.format_exc())
            self.close()

    async def answer(self, request, opcode, body):
        proxy = self.proxy
        if request.kind == "ddl" and opcode == wire.RESULT:
            proxy.changed(request.text)
        if request.unanswered:
            return
        if request.lost:
            await self.answer_deadline(request)
            return
        if opcode == wire.ERROR:
            body = self.translate(request, body)
        elif opcode == wire.RESULT:
            kind = struct.unpack(">i", body[:4])[0]
            if kind == wire.PREPARED and request.opcode == wire.PREPARE:
                identity, columns = wire.prepared_id_and_names(body)
                proxy.prepared[identity] = (request.text, columns)
            elif kind == wire.ROWS:
                body = await self.rows(request, body)
                if body is None:
                    return
        await self.deliver(opcode, request.stream, body)

    @staticmethod
    def translate(request, body):
        reader = wire.Reader(body)
        code, said = reader.i32(), reader.string()
        if code in (0x2500, 0x000A, 0x0100, 0x1001):
            return body
        code, said = texts.translated(code, said, request.text)
        return struct.pack(">i", code) + wire.put_string(said)

    async def rows(self, request, body):
        """The body as YugabyteDB would have it; None: not answered yet."""
        proxy = self.proxy
        rows = wire.Rows(wire.Reader(body[4:]))
        if request.kind == "lwt":
            applied = rows.rows[0][rows.names().index("[applied]")] == b"\x01"
            if applied and not request.retried and proxy.hit("hidden_retry", request.text):
                request.retried = True
                self.requests[request.stream] = request
                self.up_writer.write(request.frame)
                return None
            if not applied:
                await self.project(request, rows)
        elif request.table.startswith("system."):
            self.as_yugabyte(request, rows)
        elif request.table.startswith("system_schema."):
            return proxy.catalog_answer(request, rows.encode())
        elif request.kind == "select" and proxy.hit("empty_page", request.text):
            rows.rows = []
            rows.paging_state = EMPTY_MARK + (request.asked_state or b"")
        return rows.encode()

    async def project(self, request, rows):
        """Refused: the key's columns and those of the condition; of an INSERT the key's only."""
        if len(rows.columns) == 1:
            return  # there is no row
        self.proxy.counts["lwt_projected"] += 1
        keys = await self.proxy.keys_of(request.table)
        if re.match(r"\s*INSERT\b", request.text, re.IGNORECASE):
            rows.keep(["[applied]", *keys])
            return
        for (name, kind), value in zip(request.columns, request.params.values):
            if name in keys and name not in rows.names():
                rows.columns.append((name, kind))
                for row in rows.rows:
                    row.append(value)

    def as_yugabyte(self, request, rows):
        proxy = self.proxy
        rows.set_cells("schema_version", SCHEMA_VERSION)
        rows.set_cells("release_version", b"3.9-SNAPSHOT")
        rows.set_cells("cluster_name", b"local cluster")
        rows.set_cells("cql_version", b"3.4.2")
        if request.table == "system.peers":
            cells = {"data_center": b"datacenter1", "schema_version": SCHEMA_VERSION}
            others = [host for host in proxy.hosts if host != proxy.hosts[self.node]]
            rows.rows = []
            for host in [*others, *proxy.announced]:
                address = bytes(map(int, host.split(".")))
                rows.rows.append([address if name in ("peer", "rpc_address") else cells.get(name)
                                  for name in rows.names()])


def supported():
    options = {"COMPRESSION": ["lz4", "snappy"], "CQL_VERSION": ["3.0.0", "3.4.2"]}
    out = struct.pack(">H", len(options))
    for name, values in options.items():
        out += wire.put_string(name) + struct.pack(">H", len(values))
        out += b"".join(map(wire.put_string, values))
    return out


class YcqlProxy:
    """Runs in a thread of its own between start() and close(); also a context manager.

    upstream: "host:port". rates: see the file's head; USUAL is a mild mixture that a correct client
    gets through. announced: addresses system.peers tells besides the proxy's own.
    """

    def __init__(self, upstream, seed=0, rates=None, nodes=1, announced=(), port=0):
        host, upstream_port = upstream.rsplit(":", 1)
        self.upstream = (host, int(upstream_port))
        self.random = random.Random(seed)
        self.rates = dict(rates or {})
        self.hosts = [f"127.0.0.{i + 1}" for i in range(nodes)]
        self.announced = list(announced)
        self.port = port
        self.late_ms, self.slow_ms, self.stale_ms, self.latency_ms = 400, 2000, 1500, 0
        self.spare_ddl = False
        self.skew_ms = {}
        self.hanging = set()
        self.held = []
        self.counts = collections.Counter()
        self.violations = []
        self.prepared = {}
        self.numbers = itertools.count()
        self._armed = []
        self._changed = {}
        self._catalog = {}
        self._keys = {}
        self._connections = set()
        self._servers = {}
        self._own = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    # -- for tests --------------------------------------------------------------------------------

    @property
    def address(self):
        return ",".join(f"{host}:{self.port}" for host in self.hosts)

    def start(self):
        self._thread.start()
        self._wait(self._listen())
        return self

    def close(self):
        if not self._loop.is_closed():
            self._wait(self._stop())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    __enter__ = start

    def __exit__(self, *_):
        self.close()

    def set_rates(self, **rates):
        self.rates = rates

    def arm(self, fault, times=1, text=""):
        """The next `times` statements that match the expression `text` meet it."""
        self._armed.append([fault, times, re.compile(text, re.IGNORECASE)])

    def disarm(self):
        self._armed.clear()

    def hang(self, node=0):
        """Requests of the node stay without answer, connections stay open."""
        self.hanging.add(node)

    def resume(self, node=0):
        self.hanging.discard(node)

    def release_held(self):
        """Sends on what was held."""
        self._wait(self._release())

    def cut_all(self, node=None):
        """Ends all connections (of a node)."""
        self._wait(self._cut(node))

    def shut(self, node=0):
        """The node refuses connections and has none."""
        self._wait(self._shut(node))

    def open(self, node=0):
        self._wait(self._listen_on(node))

    # -- for connections --------------------------------------------------------------------------

    def hit(self, fault, text=""):
        for armed in self._armed:
            if armed[0] == fault and armed[1] > 0 and armed[2].search(text):
                armed[1] -= 1
                self.counts[fault] += 1
                return True
        if self.spare_ddl and texts.kind_of(text) == "ddl":
            return False
        rate = self.rates.get(fault, 0)
        if rate and self.random.random() * 1000 < rate:
            self.counts[fault] += 1
            return True
        return False

    def violation(self, text):
        self.counts["violations"] += 1
        if len(self.violations) < 100:
            self.violations.append(text)

    def broken(self, text):
        """A mistake of the proxy itself."""
        self.violation("the proxy itself: " + text)

    def changed(self, text):
        self.counts["ddl"] += 1
        self._changed[texts.table_of(text)] = time.monotonic()
        self._keys.pop(texts.table_of(text), None)

    def is_stale(self, table):
        return time.monotonic() - self._changed.get(table, -1e9) < self.stale_ms / 1000

    def catalog_answer(self, request, body):
        """What this question was answered with before, for a while after DDL."""
        before = self._catalog.get(request.text)
        recent = any(time.monotonic() - at < self.stale_ms / 1000 for table, at in
                     self._changed.items() if table.rsplit(".", 1)[-1] in request.text)
        if before is not None and before != body and recent and self.hit("stale_catalog"):
            return before
        self._catalog[request.text] = body
        return body

    async def keys_of(self, table):
        if table not in self._keys:
            keyspace, name = table.split(".")
            rows = await self._own.query(
                "SELECT column_name, kind FROM system_schema.columns WHERE keyspace_name = "
                f"'{keyspace}' AND table_name = '{name}'")
            self._keys[table] = [column.decode() for column, kind in rows.rows
                                 if kind in (b"partition_key", b"clustering")]
        return self._keys[table]

    # -- in its thread ----------------------------------------------------------------------------

    def _wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _listen(self):
        self._own = Upstream(self.upstream)
        for node in range(len(self.hosts)):
            await self._listen_on(node)

    async def _listen_on(self, node):
        async def serve(reader, writer):
            connection = Connection(self, node, reader, writer)
            self._connections.add(connection)
            try:
                await connection.run()
            finally:
                self._connections.discard(connection)

        server = await asyncio.start_server(serve, self.hosts[node], self.port)
        self._servers[node] = server
        self.port = server.sockets[0].getsockname()[1]

    async def _release(self):
        for connection, request, body in self.held:
            connection.forward(request, body)
        self.held.clear()

    async def _cut(self, node):
        for connection in list(self._connections):
            if node is None or connection.node == node:
                connection.close()
        await asyncio.sleep(0)

    async def _shut(self, node):
        self._servers.pop(node).close()
        await self._cut(node)

    async def _stop(self):
        for server in self._servers.values():
            server.close()
        await self._cut(None)
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def parse_rates(text):
    if text == "usual":
        return USUAL
    return {name: float(value) for name, value in
            (part.split("=") for part in text.split(",") if part)}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("upstream")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rates", type=parse_rates, default={})
    parser.add_argument("--spare-ddl", action="store_true")
    arguments = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    with YcqlProxy(arguments.upstream, arguments.seed, arguments.rates,
                   port=arguments.port) as proxy:
        proxy.spare_ddl = arguments.spare_ddl
        print(proxy.address, flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
        print(dict(proxy.counts), *proxy.violations, sep="\n")


if __name__ == "__main__":
    main()

"""Disks as they may look after a power cut, made from what tests/fault/recorder.c wrote down.

The model of a disk: bytes written to a file are certain only once a sync of it that began later has
ended; until then every 4 KiB page (now and then every sector) of every write is there or not by
itself. Names come and go in the order in which they were changed (file systems keep a journal), but
how far is certain only up to the last change in a directory that was synced. Nothing is certain
because a file was synced whose name was not.
"""
import os
import struct
from dataclasses import dataclass, field

HEAD = struct.Struct("<cIQQII")
O_CREAT, O_TRUNC, KEEP_SIZE, O_DIRECTORY = 0o100, 0o1000, 1, 0o200000
PAGE, SECTOR = 4096, 512


def events(path):
    """(type, fd, a, b, first, second) one after the other."""
    with open(path, "rb") as file:
        data = file.read()
    at, found = 0, []
    while at < len(data):
        kind, fd, a, b, first, second = HEAD.unpack_from(data, at)
        at += HEAD.size
        found.append((kind, fd, a, b, data[at:at + first], data[at + first:at + first + second]))
        at += first + second
    return found


@dataclass(eq=False)
class File:
    durable: bytearray = field(default_factory=bytearray)
    pending: list = field(default_factory=list)  # ("w", offset, bytes), ("t", size), ("a", size)

    def settle(self, count):
        for change in self.pending[:count]:
            apply(self.durable, change)
        del self.pending[:count]


def apply(content, change):
    if change[0] == "w":
        put(content, change[1], change[2])
    elif change[0] == "t":
        if change[1] < len(content):
            del content[change[1]:]
        else:
            content.extend(bytes(change[1] - len(content)))
    elif change[1] > len(content):
        content.extend(bytes(change[1] - len(content)))


def put(content, offset, data):
    if offset > len(content):
        content.extend(bytes(offset - len(content)))
    content[offset:offset + len(data)] = data


class Disk:
    """The state after a prefix of the events."""

    def __init__(self, root):
        self.root = root
        self.names = {}  # path -> File, or None for a directory: as the process sees it
        self.changes = []  # of names, in order
        self.certain = 0  # of them durable
        self.certain_names = {}  # after those
        self.fds = {}
        self.syncs = {}
        self.marks = []

    def relative(self, path):
        return os.path.relpath(path.decode(), self.root)

    def change(self, change):
        alter(self.names, change)
        self.changes.append(change)

    def step(self, event):
        kind, fd, a, b, first, second = event
        handler = getattr(self, "on_" + {b"S": "synced", b"s": "sync"}.get(kind, kind.decode()))
        handler(fd, a, b, first, second)

    def on_o(self, fd, flags, _b, path, _second):
        path = self.relative(path)
        if path not in self.names and (flags & O_CREAT or path == "."):
            self.change(("create", path, File() if flags & O_CREAT else None))
        elif flags & O_TRUNC and self.names[path] is not None:
            self.names[path].pending.append(("t", 0))
        self.fds[fd] = (path, self.names.get(path))

    def on_c(self, fd, *_rest):
        self.fds.pop(fd, None)

    def on_w(self, fd, offset, _b, data, _second):
        self.fds[fd][1].pending.append(("w", offset, data))

    def on_t(self, fd, size, *_rest):
        self.fds[fd][1].pending.append(("t", size))

    def on_a(self, fd, size, mode, *_rest):
        if not mode & KEEP_SIZE:
            self.fds[fd][1].pending.append(("a", size))

    def on_sync(self, fd, number, *_rest):
        path, file = self.fds[fd]
        self.syncs[number] = (path, file, len(file.pending) if file else len(self.changes))

    def on_synced(self, _fd, number, *_rest):
        path, file, count = self.syncs.pop(number)
        if file is not None:
            # a sync that began later and ended sooner took some of them
            others = [key for key, value in self.syncs.items() if value[1] is file]
            count = min(count, len(file.pending))
            file.settle(count)
            for key in others:
                left = max(0, self.syncs[key][2] - count)
                self.syncs[key] = (self.syncs[key][0], file, left)
            return
        last = max((i + 1 for i in range(self.certain, count) if path in folders(self.changes[i])),
                   default=self.certain)
        for change in self.changes[self.certain:last]:
            alter(self.certain_names, change)
        self.certain = last

    def on_r(self, _fd, _a, _b, source, target):
        self.change(("rename", self.relative(source), self.relative(target)))

    def on_l(self, _fd, _a, _b, source, target):
        self.change(("create", self.relative(target), self.names[self.relative(source)]))

    def on_u(self, _fd, _a, _b, path, _second):
        self.change(("remove", self.relative(path)))

    on_d = on_u

    def on_m(self, _fd, _a, _b, path, _second):
        self.change(("create", self.relative(path), None))

    def on_k(self, _fd, _a, _b, line, _second):
        self.marks.append(line.decode().split())

    # -- what may be left -------------------------------------------------------------------------

    def write_out(self, folder, mode, rng):
        """mode: "all" that was written is there, "none" that was not synced, or "some"."""
        uncertain = len(self.changes) - self.certain
        kept = {"all": uncertain, "none": 0}.get(mode, rng.randint(0, uncertain))
        names = dict(self.certain_names)
        for change in self.changes[self.certain:self.certain + kept]:
            alter(names, change)
        os.makedirs(folder)
        os.chmod(folder, 0o700)
        for path, file in sorted(names.items()):
            target = os.path.join(folder, path)
            if file is None:
                os.makedirs(target, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as out:
                out.write(remains(file, mode, rng))
            os.chmod(target, 0o600)

    def expected(self):
        """key -> states it may be in."""
        states = {}
        for what, key, state in self.marks:
            before = states.get(key, {"absent"})
            states[key] = {state} if what == "done" else before | {state}
        return states


def folders(change):
    return {os.path.dirname(path) or "." for path in change[1:] if isinstance(path, str)}


def alter(names, change):
    if change[0] == "create":
        names[change[1]] = change[2]
    elif change[0] == "remove":
        names.pop(change[1], None)
    else:
        names[change[2]] = names.pop(change[1])


def remains(file, mode, rng):
    content = bytearray(file.durable)
    if mode == "none":
        return content
    grain = SECTOR if rng.random() < 0.2 else PAGE
    share = rng.choice((0.1, 0.5, 0.9))
    for change in file.pending:
        if mode == "all":
            apply(content, change)
        elif change[0] != "w":
            if rng.random() < 0.5:
                apply(content, change)
        else:
            offset, data = change[1], change[2]
            end = offset + len(data)
            while offset < end:
                stop = min(end, (offset // grain + 1) * grain)
                if rng.random() < share:
                    put(content, offset, data[offset - change[1]:stop - change[1]])
                offset = stop
    return content


def torn(event, rng):
    """A write of which only the beginning was done."""
    kind, fd, a, _b, first, second = event
    if kind != b"w" or len(first) < 2:
        return None
    first = first[:rng.randrange(1, len(first))]
    return kind, fd, a, len(first), first, second

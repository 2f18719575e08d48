"""A door on the way to a server: forwards connections while open; shut, it refuses new ones and has
closed those there were; stalled, it keeps them and lets no byte through; slow, each piece takes its
time; cutting, each connection ends after some bytes, in the middle of whatever it was."""
import contextlib
import random
import socket
import threading
import time


class Gate:
    def __init__(self, target):
        host, port = target.rsplit(":", 1)
        self.target = (host, int(port))
        self.lock = threading.Lock()
        self.flow = threading.Event()
        self.flow.set()
        self.pairs = set()
        self.delay_s, self.cut_bytes = 0, None
        self.listener = None
        probe = socket.create_server(("127.0.0.1", 0))
        self.port = probe.getsockname()[1]
        probe.close()
        self.open()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def open(self):
        self.delay_s, self.cut_bytes = 0, None
        self.flow.set()
        if self.listener is None:
            self.listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
            threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def stall(self):
        self.flow.clear()

    def slow(self, delay_s):
        self.delay_s = delay_s

    def cut(self, most_bytes, rng=random):
        """Connections that send end after at most so many further bytes; drawn anew for each."""
        self.cut_bytes = lambda: rng.randrange(1, most_bytes)

    def shut(self):
        self.flow.set()
        listener, self.listener = self.listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self.lock:
            pairs, self.pairs = self.pairs, set()
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    close = shut

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(self.target, 5)
                server.settimeout(None)
            except OSError:
                if self.listener is not listener:
                    return
                continue
            pair = (client, server)
            with self.lock:
                self.pairs.add(pair)
            for source, sink in (pair, pair[::-1]):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source, sink):
        left = None
        try:
            while data := source.recv(65536):
                self.flow.wait()
                time.sleep(self.delay_s)
                cut = self.cut_bytes
                left = None if cut is None else cut() if left is None else left
                if left is not None and left <= len(data):
                    sink.sendall(data[:left])
                    break
                left = None if left is None else left - len(data)
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

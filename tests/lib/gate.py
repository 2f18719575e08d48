"""A door on the way to a server: forwards connections while open; shut, it refuses new ones and has
closed those there were; stalled, it keeps them and lets no byte through."""
import contextlib
import socket
import threading


class Gate:
    def __init__(self, target):
        host, port = target.rsplit(":", 1)
        self.target = (host, int(port))
        self.lock = threading.Lock()
        self.flow = threading.Event()
        self.flow.set()
        self.pairs = set()
        self.listener = None
        probe = socket.create_server(("127.0.0.1", 0))
        self.port = probe.getsockname()[1]
        probe.close()
        self.open()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def open(self):
        self.flow.set()
        if self.listener is None:
            self.listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
            threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def stall(self):
        self.flow.clear()

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
        try:
            while data := source.recv(65536):
                self.flow.wait()
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

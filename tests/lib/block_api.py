"""A client of the block API (docs/formats/block-api.md), to ask one store what it has: written from
the format page alone. Standard library only, AES included: frames here are short."""
import base64
import contextlib
import hashlib
import hmac
import os
import socket
import struct

AUTH, READ, LEAVES, HEALTH, ANSWER, DATA, WORKING = 1, 10, 11, 12, 128, 129, 130
OK, NOT_FOUND = 0, 1


class BlockApiError(AssertionError):
    """The store broke the protocol or went away."""


def _sbox():
    box, p, q = [0x63] + [0] * 255, 1, 1
    while True:
        p ^= (p << 1) ^ (0x11B if p & 0x80 else 0)
        p &= 0xFF
        q ^= q << 1
        q ^= q << 2
        q ^= q << 4
        q &= 0xFF
        q ^= 0x09 if q & 0x80 else 0
        turned = q
        for shift in (1, 2, 3, 4):
            turned ^= (q << shift | q >> (8 - shift)) & 0xFF
        box[p] = turned ^ 0x63
        if p == 1:
            return bytes(box)


SBOX = _sbox()


def _double(x):
    return ((x << 1) ^ (0x1B if x & 0x80 else 0)) & 0xFF


class Aes256:
    """Encryption of single blocks (FIPS 197)."""

    def __init__(self, key):
        words = [key[i:i + 4] for i in range(0, 32, 4)]
        factor = 1
        for i in range(8, 60):
            word = words[-1]
            if i % 8 == 0:
                word = bytes(SBOX[b] for b in word[1:] + word[:1])
                word = bytes([word[0] ^ factor]) + word[1:]
                factor = _double(factor)
            elif i % 8 == 4:
                word = bytes(SBOX[b] for b in word)
            words.append(bytes(a ^ b for a, b in zip(word, words[i - 8])))
        self.rounds = [b"".join(words[i:i + 4]) for i in range(0, 60, 4)]

    def encrypt(self, block):
        state = bytes(a ^ b for a, b in zip(block, self.rounds[0]))
        for number, key in enumerate(self.rounds[1:], 1):
            state = bytes(SBOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16))
            if number < 14:
                mixed = bytearray()
                for c in range(0, 16, 4):
                    column = state[c:c + 4]
                    whole = column[0] ^ column[1] ^ column[2] ^ column[3]
                    mixed += bytes(column[i] ^ whole ^ _double(column[i] ^ column[(i + 1) % 4])
                                   for i in range(4))
                state = bytes(mixed)
            state = bytes(a ^ b for a, b in zip(state, key))
        return state


class Mac:
    """The tag of AES-256-GCM over an empty plaintext (NIST SP 800-38D)."""

    def __init__(self, key, direction):
        self.aes, self.direction, self.counter = Aes256(key), direction, 0
        self.h = int.from_bytes(self.aes.encrypt(bytes(16)), "big")

    def _times_h(self, x):
        z, v = 0, self.h
        for bit in range(127, -1, -1):
            if x >> bit & 1:
                z ^= v
            v = (v >> 1) ^ (0xE1 << 120 if v & 1 else 0)
        return z

    def tag(self, data):
        nonce = self.direction + struct.pack(">Q", self.counter) + b"\0\0\0\1"
        self.counter += 1
        y = 0
        for at in range(0, len(data), 16):
            y = self._times_h(y ^ int.from_bytes(data[at:at + 16].ljust(16, b"\0"), "big"))
        y = self._times_h(y ^ len(data) * 8 << 64)
        return bytes(a ^ b for a, b in zip(y.to_bytes(16, "big"), self.aes.encrypt(nonce)))


def _hkdf(key, salt, info, size):
    prk = hmac.digest(salt, key, hashlib.sha256)
    out, block = b"", b""
    while len(out) < size:
        block = hmac.digest(prk, block + info + bytes([len(out) // 32 + 1]), hashlib.sha256)
        out += block
    return out[:size]


class BlockApi:
    def __init__(self, host, port, secret, timeout=5):
        self.socket = socket.create_connection((host, port), timeout)
        self.stream = self.socket.makefile("rb")
        self.socket.sendall(b"GET /_fgw/v1/session HTTP/1.1\r\nHost: node\r\n"
                            b"Connection: Upgrade\r\nUpgrade: fgw-block/1\r\n\r\n")
        if b" 101 " not in self.stream.readline():
            raise BlockApiError("no upgrade")
        while self.stream.readline() not in (b"\r\n", b""):
            pass
        hello = b"FGWC\1\x09\0\0" + os.urandom(32)
        self.socket.sendall(hello)
        answer = self.stream.read(64)
        if len(answer) != 64 or answer[:4] != b"FGWS" or answer[4] == 0:
            raise BlockApiError(f"server hello {answer!r}")
        self.store_id = answer[8:24]
        self.epoch = struct.unpack("<Q", answer[24:32])[0]
        keys = _hkdf(secret.encode(), hello + answer, b"fgw-block/1 channel", 64)
        self.sending, self.receiving = Mac(keys[:32], b"C2S\0"), Mac(keys[32:], b"S2C\0")
        self.call(AUTH, b"")

    def close(self):
        self.stream.close()
        self.socket.close()

    def send(self, kind, payload):
        frame = struct.pack("<IBBH", len(payload), kind, 0, 0) + payload
        self.socket.sendall(frame + self.sending.tag(frame))

    def receive(self):
        head = self.stream.read(8)
        if len(head) != 8:
            raise BlockApiError("the store closed the connection")
        size, kind, _, _ = struct.unpack("<IBBH", head)
        payload, tag = self.stream.read(size), self.stream.read(16)
        if not hmac.compare_digest(self.receiving.tag(head + payload), tag):
            raise BlockApiError("wrong tag")
        return kind, payload

    def call(self, kind, body):
        """(status, extra) of a request without data."""
        self.send(kind, struct.pack("<16sQQQ", self.store_id, self.epoch, 0, 0) + body)
        while True:
            kind, payload = self.receive()
            if kind == ANSWER:
                status, text, extra = struct.unpack("<HHI", payload[:8])
                return status, payload[32 + text:32 + text + extra]
            if kind != WORKING:
                raise BlockApiError(f"frame {kind}")

    def has(self, cid, size):
        """Does the store have the blob of this CID (text or 36 bytes)?"""
        status, _ = self.call(LEAVES, cid_bytes(cid) + struct.pack("<QQ", size, 0))
        if status not in (OK, NOT_FOUND):
            raise BlockApiError(f"status {status}")
        return status == OK


def cid_bytes(cid):
    if isinstance(cid, bytes):
        return cid
    return base64.b32decode(cid[1:].upper() + "=" * (-len(cid[1:]) % 8))


@contextlib.contextmanager
def opened(member, secret):
    api = BlockApi("127.0.0.1", member.port, secret)
    try:
        yield api
    finally:
        api.close()

"""A certificate authority and certificates for localhost, made with the openssl program."""
import pathlib
import subprocess

NAMES = "subjectAltName=DNS:localhost,DNS:*.localhost,IP:127.0.0.1,IP:127.0.0.2,IP:::1"

# Python 3.13 looks as RFC 5280 wants it: who signed, and what the keys are for.
STRICT = "authorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def make_certificates(folder, days=30):
    """Writes ca.crt, server.key, server.crt and server.pem (key, certificate, authority)."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", days, "-subj",
            "/CN=fgw-test-ca", "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout",
            folder / "ca.key", "-out", folder / "ca.crt")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout",
            folder / "server.key", "-out", folder / "server.csr")
    (folder / "names").write_text(f"{NAMES}\n{STRICT}\n")
    openssl("x509", "-req", "-in", folder / "server.csr", "-CA", folder / "ca.crt", "-CAkey",
            folder / "ca.key", "-CAcreateserial", "-days", days, "-extfile", folder / "names",
            "-out", folder / "server.crt")
    parts = [folder / name for name in ("server.key", "server.crt", "ca.crt")]
    (folder / "server.pem").write_text("".join(part.read_text() for part in parts))
    return folder

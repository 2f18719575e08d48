"""Small things the S3 tests share."""
import base64
import contextlib
import hashlib
import os
import xml.etree.ElementTree as ElementTree
import zlib

import botocore.exceptions
import pytest

HELLO_MD5 = "5d41402abc4b2a76b9719d911017c592"
HELLO_CHECKSUMS = {
    "crc32": "NhCmhg==",
    "crc32c": "mnG7TA==",
    "crc64nvme": "M3eFcAZSQlc=",
    "sha1": "qvTGHdzF6KLavt4PO0gs2a6pQ00=",
    "sha256": "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=",
}


@contextlib.contextmanager
def refused(status, code=None):
    """The boto3 call inside must be answered with this status and S3 code."""
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        yield caught
    response = caught.value.response
    assert response["ResponseMetadata"]["HTTPStatusCode"] == status
    if code is not None:
        assert response["Error"]["Code"] == code


def error_of(answer):
    """Elements of the error document of a raw answer."""
    root = ElementTree.fromstring(answer.body)
    assert root.tag == "Error"
    return {child.tag: child.text for child in root}


def code_of(answer):
    return error_of(answer)["Code"]


def refusal_of(call, *arguments, **named):
    """The boto3 call must be refused: (status, S3 code)."""
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(*arguments, **named)
    response = caught.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


def status_and_code(answer):
    """Of a raw answer with an XML body; the code is None when it is no error."""
    return answer.status, ElementTree.fromstring(answer.body).findtext("Code")


def bytes_of(size, seed=1):
    """Bytes without a repeat in sight; the same for the same arguments."""
    block = hashlib.sha256(bytes([seed])).digest() * 1024
    data = bytearray()
    for i in range(size // len(block) + 1):
        data += i.to_bytes(8, "big") + block[8:]
    return bytes(data[:size])


def disk_bytes(data):
    """What the groups of a data directory take on the disk; files may go meanwhile."""
    total = 0
    for name in os.listdir(data / "groups"):
        with contextlib.suppress(FileNotFoundError):
            total += os.stat(data / "groups" / name).st_blocks * 512
    return total


def tree(body):
    """An XML body without its namespace."""
    root = ElementTree.fromstring(body)
    for element in root.iter():
        element.tag = element.tag.rsplit("}", 1)[-1]
    return root


def texts(root, path):
    return [element.text or "" for element in root.findall(path)]


def md5_base64(data):
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def crc32_base64(data):
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


def keys_of(page):
    return [entry["Key"] for entry in page.get("Contents", [])]


def prefixes_of(page):
    return [entry["Prefix"] for entry in page.get("CommonPrefixes", [])]

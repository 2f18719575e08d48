// The AWS SDK for JavaScript against a bucket: node main.js ENDPOINT BUCKET. Ends with 0 when all held.
import assert from "node:assert/strict";
import crypto from "node:crypto";
import { Readable } from "node:stream";
import * as s3 from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";

const [endpoint, Bucket] = process.argv.slice(2);
const client = new s3.S3Client({ endpoint, region: "us-east-1", forcePathStyle: true, maxAttempts: 1 });
const send = (name, input) => client.send(new s3[`${name}Command`]({ Bucket, ...input }));
const bytesOf = async (input) => Buffer.from(await (await send("GetObject", input)).Body.transformToByteArray());

async function objects() {
  for (const Key of ["plain", "a b", "a+b", "ü/字/😀", "!'()*~-._", "a%20b"]) {
    await send("PutObject", { Key, Body: Key, Metadata: { color: "blue" }, ContentType: "text/x-odd" });
    assert.equal((await bytesOf({ Key })).toString(), Key);
    const head = await send("HeadObject", { Key, ChecksumMode: "ENABLED" });
    assert.equal(head.Metadata.color, "blue");
    assert.equal(head.ContentType, "text/x-odd");
    assert.ok(head.ChecksumCRC32);
  }
  assert.equal((await bytesOf({ Key: "plain", Range: "bytes=1-3" })).toString(), "lai");
  await send("CopyObject", { Key: "copy", CopySource: `${Bucket}/${encodeURIComponent("a+b")}` });
  assert.equal((await bytesOf({ Key: "copy" })).toString(), "a+b");
  await assert.rejects(bytesOf({ Key: "missing" }), { name: "NoSuchKey" });
  await assert.rejects(send("HeadObject", { Key: "missing" }), { name: "NotFound" });
  await assert.rejects(send("PutObject", { Key: "plain", Body: "x", IfNoneMatch: "*" }),
    { name: "PreconditionFailed" });
}

async function checksums() {
  for (const ChecksumAlgorithm of ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"]) {
    await send("PutObject", { Key: "sum", Body: "hello", ChecksumAlgorithm });
    assert.equal((await bytesOf({ Key: "sum", ChecksumMode: "ENABLED" })).toString(), "hello");
  }
}

async function streams() {
  const data = crypto.randomBytes(300000);
  await send("PutObject", { Key: "stream", Body: Readable.from([data.subarray(0, 1000), data.subarray(1000)]),
    ContentLength: data.length });
  assert.ok((await bytesOf({ Key: "stream" })).equals(data));
}

async function parts() {
  const data = crypto.randomBytes(20 * 1024 * 1024);
  const upload = new Upload({ client, params: { Bucket, Key: "big", Body: Readable.from([data]) } });
  const done = await upload.done();
  assert.match(done.ETag, /-4"$/);
  assert.ok((await bytesOf({ Key: "big" })).equals(data));
}

async function lists() {
  const found = [];
  for await (const page of s3.paginateListObjectsV2({ client, pageSize: 2 }, { Bucket })) {
    found.push(...page.Contents.map((row) => row.Key));
  }
  assert.deepEqual(found, [...found].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
  assert.equal(found.length, 10);
  const page = await send("ListObjectsV2", { Delimiter: "/" });
  assert.deepEqual(page.CommonPrefixes.map((row) => row.Prefix), ["ü/"]);
  const gone = await send("DeleteObjects", { Delete: { Objects: found.map((Key) => ({ Key })) } });
  assert.equal(gone.Deleted.length, 10);
  assert.equal((await send("ListObjectsV2", {})).KeyCount, 0);
}

async function links() {
  const put = await getSignedUrl(client, new s3.PutObjectCommand({ Bucket, Key: "a b/link" }), { expiresIn: 60 });
  assert.equal((await fetch(put, { method: "PUT", body: "by link" })).status, 200);
  const get = await getSignedUrl(client, new s3.GetObjectCommand({ Bucket, Key: "a b/link" }), { expiresIn: 60 });
  assert.equal(await (await fetch(get)).text(), "by link");
}

async function versions() {
  await send("PutBucketVersioning", { VersioningConfiguration: { Status: "Enabled" } });
  const { VersionId } = await send("PutObject", { Key: "v", Body: "one" });
  await send("PutObject", { Key: "v", Body: "two" });
  assert.equal((await bytesOf({ Key: "v", VersionId })).toString(), "one");
  await send("DeleteObject", { Key: "v" });
  const listed = await send("ListObjectVersions", { Prefix: "v" });
  assert.equal(listed.Versions.length, 2);
  assert.equal(listed.DeleteMarkers.length, 1);
}

for (const step of [objects, checksums, streams, parts, lists, links, versions]) {
  await step();
  console.log(step.name);
}

// The minio-go client against a bucket: minio_go HOST:PORT SECURE BUCKET. Ends with 0 when all held.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

var (
	client *minio.Client
	bucket string
	ctx    = context.Background()
)

func check(err error, what string) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v (%+v)\n", what, err, minio.ToErrorResponse(err))
		os.Exit(1)
	}
}

func want(holds bool, format string, arguments ...any) {
	if !holds {
		fmt.Fprintf(os.Stderr, format+"\n", arguments...)
		os.Exit(1)
	}
}

func get(key string, options minio.GetObjectOptions) []byte {
	object, err := client.GetObject(ctx, bucket, key, options)
	check(err, "get "+key)
	data, err := io.ReadAll(object)
	check(err, "read "+key)
	return data
}

func put(key string, data []byte, size int64, options minio.PutObjectOptions) minio.UploadInfo {
	info, err := client.PutObject(ctx, bucket, key, bytes.NewReader(data), size, options)
	check(err, "put "+key)
	return info
}

func objects() {
	for _, key := range []string{"plain", "a b", "a+b", "ü/字/😀", "!'()*~-._", "a%20b"} {
		put(key, []byte(key), int64(len(key)), minio.PutObjectOptions{
			UserMetadata: map[string]string{"Color": "blue"}, ContentType: "text/x-odd"})
		want(string(get(key, minio.GetObjectOptions{})) == key, "other bytes in %s", key)
		info, err := client.StatObject(ctx, bucket, key, minio.StatObjectOptions{})
		check(err, "stat "+key)
		want(info.UserMetadata["Color"] == "blue" && info.ContentType == "text/x-odd", "%+v", info)
	}
	_, err := client.StatObject(ctx, bucket, "missing", minio.StatObjectOptions{})
	want(minio.ToErrorResponse(err).Code == "NoSuchKey", "missing: %v", err)
	ranged := minio.GetObjectOptions{}
	check(ranged.SetRange(1, 3), "range")
	want(string(get("plain", ranged)) == "lai", "range")
	_, err = client.CopyObject(ctx, minio.CopyDestOptions{Bucket: bucket, Object: "copy"},
		minio.CopySrcOptions{Bucket: bucket, Object: "a+b"})
	check(err, "copy")
	want(string(get("copy", minio.GetObjectOptions{})) == "a+b", "copy has other bytes")
}

// Streaming signatures over plain HTTP, trailing checksums over TLS.
func parts() {
	data := make([]byte, 20<<20)
	_, err := rand.Read(data)
	check(err, "random")
	info := put("big", data, int64(len(data)), minio.PutObjectOptions{PartSize: 5 << 20})
	want(strings.HasSuffix(info.ETag, "-4"), "ETag %s", info.ETag)
	want(bytes.Equal(get("big", minio.GetObjectOptions{}), data), "big has other bytes")
	put("unknown", data[:6<<20], -1, minio.PutObjectOptions{PartSize: 5 << 20})
	want(bytes.Equal(get("unknown", minio.GetObjectOptions{}), data[:6<<20]), "unknown size")
	_, err = client.ComposeObject(ctx, minio.CopyDestOptions{Bucket: bucket, Object: "composed"},
		minio.CopySrcOptions{Bucket: bucket, Object: "big"},
		minio.CopySrcOptions{Bucket: bucket, Object: "plain"})
	check(err, "compose")
	want(bytes.Equal(get("composed", minio.GetObjectOptions{}), append(data, "plain"...)),
		"composed has other bytes")
}

func checksums() {
	for _, sum := range []minio.ChecksumType{minio.ChecksumCRC32, minio.ChecksumCRC32C,
		minio.ChecksumCRC64NVME, minio.ChecksumSHA1, minio.ChecksumSHA256} {
		put("sum", []byte("hello"), 5, minio.PutObjectOptions{Checksum: sum})
		want(string(get("sum", minio.GetObjectOptions{Checksum: true})) == "hello", "%v", sum)
	}
	put("md5", []byte("hello"), 5, minio.PutObjectOptions{SendContentMd5: true})
}

func lists() {
	var found []string
	for row := range client.ListObjects(ctx, bucket, minio.ListObjectsOptions{Recursive: true,
		MaxKeys: 2}) {
		check(row.Err, "list")
		found = append(found, row.Key)
	}
	want(len(found) == 12, "%q", found)
	rows := make(chan minio.ObjectInfo, len(found))
	for _, key := range found {
		rows <- minio.ObjectInfo{Key: key}
	}
	close(rows)
	for failed := range client.RemoveObjects(ctx, bucket, rows, minio.RemoveObjectsOptions{}) {
		check(failed.Err, "remove "+failed.ObjectName)
	}
	for row := range client.ListObjects(ctx, bucket, minio.ListObjectsOptions{}) {
		want(false, "still there: %s", row.Key)
	}
}

func links() {
	put("a b+c", []byte("by link"), 7, minio.PutObjectOptions{})
	url, err := client.PresignedGetObject(ctx, bucket, "a b+c", time.Minute, nil)
	check(err, "presign")
	answer, err := http.Get(url.String())
	check(err, "get by link")
	data, err := io.ReadAll(answer.Body)
	check(err, "read by link")
	want(answer.StatusCode == 200 && string(data) == "by link", "%d %s", answer.StatusCode, data)
}

func versions() {
	check(client.EnableVersioning(ctx, bucket), "versioning")
	first := put("v", []byte("one"), 3, minio.PutObjectOptions{})
	put("v", []byte("two"), 3, minio.PutObjectOptions{})
	want(string(get("v", minio.GetObjectOptions{VersionID: first.VersionID})) == "one", "version")
	check(client.RemoveObject(ctx, bucket, "v", minio.RemoveObjectOptions{}), "remove")
	count := 0
	for row := range client.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: "v",
		WithVersions: true}) {
		check(row.Err, "list versions")
		count++
	}
	want(count == 3, "%d versions", count)
}

func main() {
	var err error
	client, err = minio.New(os.Args[1], &minio.Options{Creds: credentials.NewEnvAWS(),
		Secure: os.Args[2] == "true", TrailingHeaders: true, MaxRetries: 1})
	check(err, "new")
	bucket = os.Args[3]
	steps := []struct {
		name string
		step func()
	}{{"objects", objects}, {"parts", parts}, {"checksums", checksums}, {"lists", lists},
		{"links", links}, {"versions", versions}}
	for _, each := range steps {
		each.step()
		fmt.Println(each.name)
	}
}

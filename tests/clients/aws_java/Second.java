// The AWS SDK for Java, version 2, against a bucket: java Second.java ENDPOINT BUCKET.

import java.io.ByteArrayInputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import software.amazon.awssdk.core.ResponseBytes;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.core.sync.ResponseTransformer;
import software.amazon.awssdk.core.async.AsyncRequestBody;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.S3Configuration;
import software.amazon.awssdk.services.s3.model.*;
import software.amazon.awssdk.services.s3.presigner.S3Presigner;

public class Second {
    static String bucket;
    static URI endpoint;
    static S3Client client;

    static void check(boolean held, String what) {
        if (!held) {
            throw new AssertionError(what);
        }
    }

    static byte[] read(String key) {
        return client.getObjectAsBytes(b -> b.bucket(bucket).key(key)).asByteArray();
    }

    static String text(String key) {
        return new String(read(key), StandardCharsets.UTF_8);
    }

    static void objects() {
        for (String key : List.of("plain", "a b", "a+b", "ü/字/😀", "!'()*~-._", "a%20b", "x//y")) {
            client.putObject(b -> b.bucket(bucket).key(key).metadata(Map.of("color", "blue"))
                                   .contentType("text/x-odd"), RequestBody.fromString(key));
            check(text(key).equals(key), key);
            HeadObjectResponse head = client.headObject(b -> b.bucket(bucket).key(key));
            check(head.metadata().get("color").equals("blue"), "metadata of " + key);
            check(head.contentType().equals("text/x-odd"), "content type of " + key);
        }
        ResponseBytes<GetObjectResponse> range =
            client.getObjectAsBytes(b -> b.bucket(bucket).key("plain").range("bytes=1-3"));
        check(range.asUtf8String().equals("lai"), "range");
        client.copyObject(b -> b.sourceBucket(bucket).sourceKey("a+b").destinationBucket(bucket)
                                .destinationKey("copy"));
        check(text("copy").equals("a+b"), "copy");
        try {
            read("missing");
            check(false, "missing");
        } catch (NoSuchKeyException expected) {
            check(expected.statusCode() == 404, "status of missing");
        }
        try {
            client.putObject(b -> b.bucket(bucket).key("plain").ifNoneMatch("*"),
                             RequestBody.fromString("x"));
            check(false, "If-None-Match");
        } catch (S3Exception expected) {
            check(expected.awsErrorDetails().errorCode().equals("PreconditionFailed"),
                  "code of If-None-Match");
        }
    }

    static void checksums() {
        for (ChecksumAlgorithm algorithm : List.of(ChecksumAlgorithm.CRC32, ChecksumAlgorithm.CRC32_C,
                                                   ChecksumAlgorithm.SHA1, ChecksumAlgorithm.SHA256)) {
            client.putObject(b -> b.bucket(bucket).key("sum").checksumAlgorithm(algorithm),
                             RequestBody.fromString("hello"));
            String got = client.getObjectAsBytes(b -> b.bucket(bucket).key("sum")
                                                       .checksumMode(ChecksumMode.ENABLED)).asUtf8String();
            check(got.equals("hello"), "checksum " + algorithm);
        }
    }

    static void streams() {
        byte[] data = new byte[300_000];
        new Random(1).nextBytes(data);
        client.putObject(b -> b.bucket(bucket).key("stream"),
                         RequestBody.fromInputStream(new ByteArrayInputStream(data), data.length));
        check(Arrays.equals(read("stream"), data), "stream");
    }

    /* the asynchronous client splits, and sends checksums in trailers */
    static void parts() {
        byte[] data = new byte[20 * 1024 * 1024 + 7];
        new Random(2).nextBytes(data);
        try (S3AsyncClient async = S3AsyncClient.builder().endpointOverride(endpoint).region(Region.US_EAST_1)
                 .forcePathStyle(true).multipartEnabled(true).build()) {
            async.putObject(b -> b.bucket(bucket).key("big"), AsyncRequestBody.fromBytes(data)).join();
        }
        HeadObjectResponse head = client.headObject(b -> b.bucket(bucket).key("big"));
        check(head.eTag().endsWith("-3\""), "parts: " + head.eTag());
        check(Arrays.equals(read("big"), data), "big");
    }

    static void lists() {
        List<String> found = new ArrayList<>();
        client.listObjectsV2Paginator(b -> b.bucket(bucket).maxKeys(2)).contents()
              .forEach(row -> found.add(row.key()));
        check(found.size() == 11, "keys: " + found);
        ListObjectsV2Response page = client.listObjectsV2(b -> b.bucket(bucket).delimiter("/"));
        check(page.commonPrefixes().size() == 2, "prefixes: " + page.commonPrefixes());
        List<ObjectIdentifier> all =
            found.stream().map(key -> ObjectIdentifier.builder().key(key).build()).toList();
        DeleteObjectsResponse gone =
            client.deleteObjects(b -> b.bucket(bucket).delete(d -> d.objects(all)));
        check(gone.deleted().size() == found.size(), "deleted");
        check(client.listObjectsV2(b -> b.bucket(bucket)).keyCount() == 0, "empty");
    }

    static void links() throws Exception {
        try (S3Presigner presigner = S3Presigner.builder().endpointOverride(endpoint).region(Region.US_EAST_1)
                 .serviceConfiguration(S3Configuration.builder().pathStyleAccessEnabled(true).build())
                 .build()) {
            URL put = presigner.presignPutObject(p -> p.signatureDuration(Duration.ofMinutes(1))
                .putObjectRequest(b -> b.bucket(bucket).key("a b/link"))).url();
            HttpURLConnection connection = (HttpURLConnection) put.openConnection();
            connection.setRequestMethod("PUT");
            connection.setDoOutput(true);
            connection.getOutputStream().write("by link".getBytes(StandardCharsets.UTF_8));
            check(connection.getResponseCode() == 200, "put by link");
            URL get = presigner.presignGetObject(p -> p.signatureDuration(Duration.ofMinutes(1))
                .getObjectRequest(b -> b.bucket(bucket).key("a b/link"))).url();
            check(new String(get.openStream().readAllBytes(), StandardCharsets.UTF_8).equals("by link"),
                  "get by link");
        }
    }

    static void versions() {
        client.putBucketVersioning(b -> b.bucket(bucket)
            .versioningConfiguration(v -> v.status(BucketVersioningStatus.ENABLED)));
        String first = client.putObject(b -> b.bucket(bucket).key("v"), RequestBody.fromString("one"))
                             .versionId();
        client.putObject(b -> b.bucket(bucket).key("v"), RequestBody.fromString("two"));
        String got = client.getObject(b -> b.bucket(bucket).key("v").versionId(first),
                                      ResponseTransformer.toBytes()).asUtf8String();
        check(got.equals("one"), "first version");
        client.deleteObject(b -> b.bucket(bucket).key("v"));
        ListObjectVersionsResponse listed =
            client.listObjectVersions(b -> b.bucket(bucket).prefix("v"));
        check(listed.versions().size() == 2 && listed.deleteMarkers().size() == 1, "versions");
    }

    public static void main(String[] arguments) throws Exception {
        endpoint = URI.create(arguments[0]);
        bucket = arguments[1];
        client = S3Client.builder().endpointOverride(endpoint).region(Region.US_EAST_1).forcePathStyle(true).build();
        objects();
        checksums();
        streams();
        parts();
        lists();
        links();
        versions();
        System.out.println("versions");
    }
}

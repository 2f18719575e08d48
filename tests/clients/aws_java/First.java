// The AWS SDK for Java, version 1 (what many installed programs still bring along), against a bucket:
// java First.java ENDPOINT BUCKET. Its streams go out in signed chunks.

import com.amazonaws.client.builder.AwsClientBuilder.EndpointConfiguration;
import com.amazonaws.services.s3.AmazonS3;
import com.amazonaws.services.s3.AmazonS3ClientBuilder;
import com.amazonaws.services.s3.model.*;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Random;

public class First {
    static String bucket;
    static AmazonS3 client;

    static void check(boolean held, String what) {
        if (!held) {
            throw new AssertionError(what);
        }
    }

    static byte[] read(String key) throws IOException {
        try (S3Object object = client.getObject(bucket, key)) {
            return object.getObjectContent().readAllBytes();
        }
    }

    static void objects() throws IOException {
        for (String key : List.of("plain", "a b", "a+b", "ü/字/😀", "!'()*~-._", "a%20b")) {
            client.putObject(bucket, key, key);
            check(new String(read(key), StandardCharsets.UTF_8).equals(key), key);
        }
        ObjectMetadata metadata = new ObjectMetadata();
        byte[] data = new byte[300_000];
        new Random(1).nextBytes(data);
        metadata.setContentLength(data.length);
        metadata.addUserMetadata("color", "blue");
        client.putObject(bucket, "stream", new ByteArrayInputStream(data), metadata);
        check(Arrays.equals(read("stream"), data), "stream");
        check(client.getObjectMetadata(bucket, "stream").getUserMetadata().get("color").equals("blue"),
              "metadata");
        S3Object range = client.getObject(new GetObjectRequest(bucket, "plain").withRange(1, 3));
        check(new String(range.getObjectContent().readAllBytes(), StandardCharsets.UTF_8).equals("lai"),
              "range");
        client.copyObject(bucket, "a+b", bucket, "copy");
        check(new String(read("copy"), StandardCharsets.UTF_8).equals("a+b"), "copy");
        check(!client.doesObjectExist(bucket, "missing"), "missing");
    }

    static void parts() throws IOException {
        byte[] data = new byte[11 * 1024 * 1024];
        new Random(2).nextBytes(data);
        String id = client.initiateMultipartUpload(new InitiateMultipartUploadRequest(bucket, "big"))
                          .getUploadId();
        List<PartETag> done = new ArrayList<>();
        int size = 6 * 1024 * 1024;
        for (int number = 1, at = 0; at < data.length; number++, at += size) {
            int length = Math.min(size, data.length - at);
            done.add(client.uploadPart(new UploadPartRequest().withBucketName(bucket).withKey("big")
                .withUploadId(id).withPartNumber(number).withPartSize(length)
                .withInputStream(new ByteArrayInputStream(data, at, length))).getPartETag());
        }
        client.completeMultipartUpload(new CompleteMultipartUploadRequest(bucket, "big", id, done));
        check(Arrays.equals(read("big"), data), "big");
    }

    static void lists() {
        List<String> found = new ArrayList<>();
        ListObjectsV2Request request = new ListObjectsV2Request().withBucketName(bucket).withMaxKeys(2);
        ListObjectsV2Result page;
        do {
            page = client.listObjectsV2(request);
            page.getObjectSummaries().forEach(row -> found.add(row.getKey()));
            request.setContinuationToken(page.getNextContinuationToken());
        } while (page.isTruncated());
        check(found.size() == 9, "keys: " + found);
        DeleteObjectsResult gone = client.deleteObjects(
            new DeleteObjectsRequest(bucket).withKeys(found.toArray(new String[0])));
        check(gone.getDeletedObjects().size() == found.size(), "deleted");
    }

    static void links() throws IOException {
        client.putObject(bucket, "a b/link", "by link");
        byte[] got = client.generatePresignedUrl(bucket, "a b/link",
            new Date(System.currentTimeMillis() + 60_000)).openStream().readAllBytes();
        check(new String(got, StandardCharsets.UTF_8).equals("by link"), "link");
    }

    public static void main(String[] arguments) throws IOException {
        bucket = arguments[1];
        client = AmazonS3ClientBuilder.standard().withPathStyleAccessEnabled(true)
            .withEndpointConfiguration(new EndpointConfiguration(arguments[0], "us-east-1")).build();
        objects();
        parts();
        lists();
        links();
        System.out.println("links");
    }
}

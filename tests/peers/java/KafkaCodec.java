import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ProtoUtils;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.SchemaException;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.record.LogEntry;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Records;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;

/**
 * Kafka's own codec as a target of wirekit fuzz: {@code java KafkaCodec FILE [API VERSION]} (docs/peers.md).
 *
 * FILE holds one frame with its size, a request, or the response of an API and version. The values of its fields are
 * printed as JSON; record sets are read, with their checksums, and left out. The exit status is 1 where Kafka's classes
 * refuse the frame with one of the errors that they have for it, and 2 for any other exception.
 */
public final class KafkaCodec {
    public static void main(String[] arguments) throws Exception {
        ByteBuffer frame = ByteBuffer.wrap(Files.readAllBytes(Path.of(arguments[0])));
        try {
            System.out.println(arguments.length == 1 ? request(body(frame)) : response(body(frame), arguments));
        } catch (KafkaException | IllegalArgumentException error) {
            refuse(error);
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(2);
        }
    }

    private static void refuse(Exception error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            System.err.println(cause);
        }
        System.exit(1);
    }

    private static ByteBuffer body(ByteBuffer frame) {
        if (frame.remaining() < 4 || frame.getInt() != frame.remaining()) {
            throw new SchemaException("the size is not that of the frame");
        }
        return frame.slice();
    }

    private static String request(ByteBuffer data) {
        if (data.remaining() > 4 && data.getShort(0) == ApiKeys.CONTROLLED_SHUTDOWN_KEY.id && data.getShort(2) == 0) {
            return "{}"; // a header without a client id, which only the broker's Scala classes read
        }
        RequestHeader header = RequestHeader.parse(data);
        ApiKeys.forId(header.apiKey());
        String fields = "\"api_key\": " + header.apiKey() + ", \"api_version\": " + header.apiVersion()
            + ", \"correlation_id\": " + header.correlationId();
        String body = json(ProtoUtils.parseRequest(header.apiKey(), header.apiVersion(), data));
        return "{" + fields + (header.clientId().isEmpty() ? "" : ", \"client_id\": " + quoted(header.clientId()))
            + ", \"body\": " + body + "}"; // null is "" for these classes
    }

    private static String response(ByteBuffer data, String[] arguments) {
        int number = ResponseHeader.parse(data).correlationId();
        int api = ApiKeys.valueOf(arguments[1].toUpperCase()).id;
        Struct body = ProtoUtils.parseResponse(api, Integer.parseInt(arguments[2]), data);
        return "{\"correlation_id\": " + number + ", \"body\": " + json(body) + "}";
    }

    private static String json(Object value) {
        if (value instanceof Struct) {
            return fields((Struct) value);
        }
        if (value instanceof Object[]) {
            StringBuilder list = new StringBuilder();
            for (Object element : (Object[]) value) {
                list.append(list.length() == 0 ? "" : ", ").append(json(element));
            }
            return "[" + list + "]";
        }
        if (value instanceof ByteBuffer) {
            StringBuilder hex = new StringBuilder();
            for (ByteBuffer bytes = ((ByteBuffer) value).duplicate(); bytes.hasRemaining();) {
                hex.append(String.format("%02x", bytes.get()));
            }
            return '"' + hex.toString() + '"';
        }
        return value instanceof String ? quoted((String) value) : String.valueOf(value);
    }

    private static String fields(Struct struct) {
        StringBuilder object = new StringBuilder();
        for (Field field : struct.schema().fields()) {
            Object value = struct.get(field);
            if (value instanceof Records) {
                for (LogEntry entry : ((MemoryRecords) value).deepEntries()) {
                    entry.record().ensureValid();
                }
                continue;
            }
            String shown = value instanceof Struct ? fields((Struct) value) : null; // a part that has a name only here
            String member = shown == null ? quoted(field.name) + ": " + json(value) : shown.substring(1, shown.length() - 1);
            object.append(object.length() == 0 ? "" : ", ").append(member);
        }
        return "{" + object + "}";
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            quoted.append(each < ' ' || each == '"' || each == '\\' || each > '~' ? String.format("\\u%04x", (int) each) : each);
        }
        return quoted.append('"').toString();
    }
}

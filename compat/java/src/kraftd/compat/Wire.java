package kraftd.compat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;

/** One plain connection: requests given as JSON, answers as bytes and as JSON. */
final class Wire implements AutoCloseable {
    private static final String MESSAGES = "org.apache.kafka.common.message.";
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Socket socket;
    private final DataInputStream in;
    private int correlation = 1;

    Wire(String host, int port) throws IOException {
        socket = new Socket(host, port);
        socket.setSoTimeout(60_000);
        in = new DataInputStream(socket.getInputStream());
    }

    /** What went out and came back, without the headers. */
    record Exchange(byte[] request, byte[] response, String json) {
        String requestHex() {
            return HexFormat.of().formatHex(request);
        }

        String responseHex() {
            return HexFormat.of().formatHex(response);
        }
    }

    Exchange call(String api, short version, String requestJson) throws Exception {
        ApiKeys key = keyOf(api);
        // A version that this release does not know is sent with the body of its newest one.
        short known = (short) Math.min(version, key.latestVersion(true));
        Object data = Class.forName(MESSAGES + api + "RequestDataJsonConverter")
            .getMethod("read", JsonNode.class, short.class)
            .invoke(null, JSON.readTree(requestJson), known);
        byte[] body = bytes(MessageUtil.toByteBufferAccessor((Message) data, known).buffer());
        byte[] header = header(key, version);
        send(header, body);
        byte[] answer = receive();
        ByteBuffer buffer = ByteBuffer.wrap(answer);
        ResponseHeader.parse(buffer, key.responseHeaderVersion(known));
        byte[] response = bytes(buffer.slice());
        return new Exchange(body, response, json(api, key, known, response));
    }

    static ApiKeys keyOf(String api) {
        for (ApiKeys key : ApiKeys.values()) {
            if (key.messageType.name.equals(api)) {
                return key;
            }
        }
        throw new IllegalArgumentException("no API is called " + api);
    }

    private byte[] header(ApiKeys key, short version) throws IOException {
        RequestHeader header = new RequestHeader(key, version, "replay", correlation++);
        return bytes(MessageUtil.toByteBufferAccessor(header.data(), header.headerVersion()).buffer());
    }

    private void send(byte[] header, byte[] body) throws IOException {
        ByteBuffer frame = ByteBuffer.allocate(4 + header.length + body.length);
        frame.putInt(header.length + body.length).put(header).put(body);
        socket.getOutputStream().write(frame.array());
    }

    private byte[] receive() throws IOException {
        byte[] answer = new byte[in.readInt()];
        in.readFully(answer);
        return answer;
    }

    private static String json(String api, ApiKeys key, short version, byte[] body) throws Exception {
        try {
            return json(api, key, version, ByteBuffer.wrap(body));
        } catch (RuntimeException e) {
            // An ApiVersions request of an unknown version is answered in the oldest form.
            return json(api, key, (short) 0, ByteBuffer.wrap(body));
        }
    }

    private static String json(String api, ApiKeys key, short version, ByteBuffer body)
            throws Exception {
        ApiMessage message = key.messageType.newResponse();
        message.read(new ByteBufferAccessor(body), version);
        if (body.hasRemaining()) {
            throw new IllegalStateException(body.remaining() + " bytes are left over");
        }
        return Class.forName(MESSAGES + api + "ResponseDataJsonConverter")
            .getMethod("write", message.getClass(), short.class)
            .invoke(null, message, version).toString();
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    /** True when the other side ended the connection instead of answering. */
    static boolean isClosed(Throwable error) {
        return error instanceof EOFException || error instanceof java.net.SocketException;
    }
}

package kraftd.bench;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.message.ApiVersionsRequestData;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;

/** One plain connection that sends a request and waits for its answer: no client in between. */
final class Connection implements AutoCloseable {
    private final Socket socket;
    private final DataInputStream in;
    private final Map<Short, Short> newest = new HashMap<>();
    private int correlation = 1;

    Connection(int port) throws IOException {
        // Java answers late while it reads a large snapshot.
        this(port, Servers.PATIENCE_MINUTES * 60_000);
    }

    /** No answer may take longer than {@code patienceMs}. */
    Connection(int port, int patienceMs) throws IOException {
        socket = new Socket("localhost", port);
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(patienceMs);
        in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
        ApiVersionsRequestData request = new ApiVersionsRequestData()
            .setClientSoftwareName("bench").setClientSoftwareVersion("1");
        ApiVersionsResponseData answer = (ApiVersionsResponseData) call(request, (short) 3);
        answer.apiKeys().forEach(api -> newest.put(api.apiKey(), api.maxVersion()));
    }

    /** Asks in the newest version that both sides know. */
    ApiMessage call(ApiMessage request) throws IOException {
        ApiKeys api = ApiKeys.forId(request.apiKey());
        Short served = newest.get(request.apiKey());
        if (served == null) {
            throw new IOException(api + " is not served");
        }
        return call(request, (short) Math.min(served, api.latestVersion()));
    }

    private ApiMessage call(ApiMessage request, short version) throws IOException {
        ApiKeys api = ApiKeys.forId(request.apiKey());
        int number = correlation++;
        RequestHeader header = new RequestHeader(api, version, "bench", number);
        ByteBuffer head =
            MessageUtil.toByteBufferAccessor(header.data(), header.headerVersion()).buffer();
        ByteBuffer body = MessageUtil.toByteBufferAccessor(request, version).buffer();
        int length = head.remaining() + body.remaining();
        ByteBuffer frame = ByteBuffer.allocate(4 + length).putInt(length).put(head).put(body);
        socket.getOutputStream().write(frame.array());

        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        int answered =
            ResponseHeader.parse(buffer, api.responseHeaderVersion(version)).correlationId();
        if (answered != number) {
            throw new IllegalStateException("asked " + number + ", answered " + answered);
        }
        ApiMessage answer = api.messageType.newResponse();
        answer.read(new ByteBufferAccessor(buffer), version);
        return answer;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}

package kraftd.compat;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Stands in front of one node's listener, passes frames on both ways and notes each of them. */
final class Proxy implements AutoCloseable {
    private final Recording recording;
    private final int server;
    private final int target;
    private final ServerSocket listening;
    private final List<Socket> open = new ArrayList<>();

    /** Listens on a free port for node {@code server}, whose own port is {@code target}. */
    Proxy(Recording recording, int server, int target) throws IOException {
        this.recording = recording;
        this.server = server;
        this.target = target;
        listening = new ServerSocket(0, 50, InetAddress.getByName("localhost"));
        daemon(this::accept);
    }

    int port() {
        return listening.getLocalPort();
    }

    private static void daemon(Runnable body) {
        Thread thread = new Thread(body);
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        while (!listening.isClosed()) {
            try {
                Socket client = listening.accept();
                try {
                    serve(client, new Socket("localhost", target));
                } catch (IOException e) {
                    // The node is not there: neither is its listener.
                    client.close();
                }
            } catch (IOException e) {
                // Closed, or a client that went away at once.
            }
        }
    }

    private void serve(Socket client, Socket node) throws IOException {
        client.setTcpNoDelay(true);
        node.setTcpNoDelay(true);
        synchronized (open) {
            open.add(client);
            open.add(node);
        }
        int connection = recording.connection();
        daemon(() -> pass(client, node, frame -> recording.request(connection, server, frame)));
        daemon(() -> pass(node, client, frame -> recording.answer(connection, frame)));
    }

    private static void pass(Socket from, Socket to, Consumer<byte[]> note) {
        try (from; to) {
            DataInputStream in = new DataInputStream(from.getInputStream());
            OutputStream out = to.getOutputStream();
            while (true) {
                byte[] frame = new byte[in.readInt()];
                in.readFully(frame);
                note.accept(frame);
                out.write(ByteBuffer.allocate(4 + frame.length).putInt(frame.length).put(frame).array());
            }
        } catch (IOException e) {
            // Either side ended the connection; now both have.
        }
    }

    @Override
    public void close() throws IOException {
        listening.close();
        synchronized (open) {
            for (Socket socket : open) {
                socket.close();
            }
        }
    }
}

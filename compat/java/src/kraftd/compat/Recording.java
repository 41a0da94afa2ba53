package kraftd.compat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.common.protocol.ApiKeys;

/**
 * Frames in the order in which they passed a {@link Proxy}, and the steps between them. A request
 * is noted before it reaches the server and an answer before it reaches the client: what caused
 * another frame stands above it.
 */
final class Recording {
    /** A request, an answer or (without a frame) the name of a step. */
    private static final class Entry {
        final String text;
        final String api;
        final byte[] frame;
        boolean idle;

        Entry(String text, String api, byte[] frame) {
            this.text = text;
            this.api = api;
            this.frame = frame;
        }
    }

    /** The exchange under way on a connection, and what the ones before looked like. */
    private static final class Connection {
        final Map<Integer, Entry> asked = new HashMap<>();
        byte[] lastRequest;
        byte[] lastAnswer;
        int same;
    }

    /** So many equal exchanges in a row are kept: a long poll that brings nothing, a heartbeat. */
    private static final int SAME_KEPT = 1;

    private final long start = System.nanoTime();
    private final List<Entry> entries = new ArrayList<>();
    private final Map<Integer, Connection> connections = new HashMap<>();
    private final Map<String, Integer> answered = new HashMap<>();
    private int lastConnection;

    synchronized int connection() {
        lastConnection++;
        connections.put(lastConnection, new Connection());
        return lastConnection;
    }

    synchronized void step(String text) {
        System.out.println("  " + text);
        entries.add(new Entry("# step: " + text, null, null));
    }

    synchronized void request(int connection, int server, byte[] frame) {
        ByteBuffer buffer = ByteBuffer.wrap(frame);
        short key = buffer.getShort();
        short version = buffer.getShort();
        int correlation = buffer.getInt();
        String api = ApiKeys.hasId(key) ? ApiKeys.forId(key).messageType.name : "?";
        String cells = "%d\t%d\t%%s\t%s\t%d\t%d".formatted(connection, server, api, version,
            correlation);
        Entry entry = new Entry(stamped(cells, ">"), api, frame);
        connections.get(connection).asked.put(correlation, entry);
        entries.add(entry);
    }

    synchronized void answer(int connection, byte[] frame) {
        Connection on = connections.get(connection);
        Entry asked = on.asked.remove(ByteBuffer.wrap(frame).getInt());
        if (asked == null) {
            throw new IllegalStateException("an answer to nothing on connection " + connection);
        }
        String cells = asked.text.substring(asked.text.indexOf('\t') + 1).replace("\t>\t", "\t%s\t");
        Entry entry = new Entry(stamped(cells, "<"), asked.api, frame);
        entries.add(entry);
        answered.merge(asked.api, 1, Integer::sum);
        byte[] request = withoutCorrelation(asked.frame, 4);
        byte[] answer = withoutCorrelation(frame, 0);
        boolean same = Arrays.equals(request, on.lastRequest) && Arrays.equals(answer, on.lastAnswer);
        on.same = same ? on.same + 1 : 1;
        on.lastRequest = request;
        on.lastAnswer = answer;
        asked.idle = entry.idle = on.same > SAME_KEPT;
    }

    private String stamped(String cells, String way) {
        double seconds = (System.nanoTime() - start) / 1e9;
        return String.format(Locale.ROOT, "%.3f\t", seconds) + cells.formatted(way);
    }

    private static byte[] withoutCorrelation(byte[] frame, int at) {
        byte[] copy = frame.clone();
        Arrays.fill(copy, at, at + 4, (byte) 0);
        return copy;
    }

    /** How many requests of an API passed so far. */
    synchronized int asked(String api) {
        return (int) entries.stream()
            .filter(entry -> api.equals(entry.api) && entry.text.contains("\t>\t")).count();
    }

    /** How many answers to requests of an API passed so far. */
    synchronized int answered(String api) {
        return answered.getOrDefault(api, 0);
    }

    synchronized void write(Path file, String title) throws IOException {
        List<String> lines = new ArrayList<>(List.of("# " + title));
        for (Entry entry : entries) {
            if (entry.frame == null) {
                lines.add(entry.text);
            } else if (!entry.idle) {
                lines.add(entry.text + "\t" + HexFormat.of().formatHex(entry.frame));
            }
        }
        Files.createDirectories(file.getParent());
        Files.write(file, lines);
        System.out.println(file + ": " + lines.size() + " lines, " + Files.size(file) + " bytes");
    }
}

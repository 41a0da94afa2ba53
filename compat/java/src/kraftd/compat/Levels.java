package kraftd.compat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Plays a table of requests to a controller that nobody else asks, and says of each what was
 * answered and which records it wrote, read from the controller's own log.
 *
 * <p>The API "-" stands for what the controller wrote when it began, "await" for what it writes by
 * itself until there is a record with the text that stands in the place of the request, "pause" for
 * so many milliseconds, in which it may write what it likes.
 *
 * <p>Columns of the table: case, API, version, request. "{epoch:N}" stands for the epoch of broker
 * N, "{topic:NAME}" for a topic's id; the same stand for them in what is said.
 */
final class Levels {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Pattern ID = Pattern.compile("\"([A-Za-z0-9_-]{22})\"(?!:)");
    private static final String OWN_REGISTRATION =
        "REGISTER_CONTROLLER_RECORD .*\"controllerId\":1,.*";
    private static final Pattern EPOCH = Pattern.compile("\"brokerEpoch\":(\\d+)");

    /** A request with its outcome. */
    record Outcome(String title, String answer, String records) {}

    private final String host;
    private final int port;
    private final Path log;
    private final Map<String, String> epochs = new HashMap<>();
    private final Map<String, String> topics = new TreeMap<>();
    private final StringBuilder asked = new StringBuilder();
    private long next;

    private Levels(String host, int port, Path log) {
        this.host = host;
        this.port = port;
        this.log = log;
    }

    /** The outcomes in the order of the table. `log` is the folder of the metadata partition. */
    static List<Outcome> play(String host, int port, Path log, List<String[]> table)
            throws Exception {
        Levels levels = new Levels(host, port, log);
        levels.awaitStart();
        List<Outcome> outcomes = new ArrayList<>();
        for (String[] cells : table) {
            outcomes.add(levels.ask(cells));
        }
        return outcomes;
    }

    /** The first four cells of each line that is no comment, each case once. */
    static List<String[]> table(Path file) throws Exception {
        Map<String, String[]> rows = new java.util.LinkedHashMap<>();
        for (String line : Files.readAllLines(file)) {
            if (!line.startsWith("#") && !line.isBlank()) {
                String[] cells = line.split("\t", -1);
                rows.putIfAbsent(cells[0], cells);
            }
        }
        return new ArrayList<>(rows.values());
    }

    /** The controller leads and, where controllers register, has registered itself. */
    private void awaitStart() throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (true) {
            String all = String.join("\n", records(0));
            boolean leads = all.contains("metadata.version");
            boolean registers = !leads || level(all) >= 15;
            if (leads && (!registers || all.contains("REGISTER_CONTROLLER_RECORD"))) {
                return;
            }
            if (System.nanoTime() > end) {
                throw new IllegalStateException("no start within 60 s: " + all);
            }
            Thread.sleep(10);
        }
    }

    private static int level(String records) {
        Matcher found = Pattern.compile("\"metadata.version\",\"featureLevel\":(\\d+)")
            .matcher(records);
        if (!found.find()) {
            throw new IllegalStateException("no level in " + records);
        }
        return Integer.parseInt(found.group(1));
    }

    private Outcome ask(String[] cells) throws Exception {
        records(next);
        String request = cells[3];
        for (Map.Entry<String, String> epoch : epochs.entrySet()) {
            request = request.replace("\"{epoch:" + epoch.getKey() + "}\"", epoch.getValue());
        }
        for (Map.Entry<String, String> topic : topics.entrySet()) {
            request = request.replace("{topic:" + topic.getKey() + "}", topic.getValue());
        }
        // Of a broker or a topic that is not there.
        request = request.replaceAll("\"\\{epoch:\\d+}\"", "0")
            .replaceAll("\\{topic:\\w+}", "AAAAAAAAAAAAAAAAAAAAAA");
        asked.append(cells[3]);
        String answer = "";
        if (cells[1].equals("pause")) {
            Thread.sleep(Long.parseLong(cells[3]));
            records(next);
            return new Outcome(cells[0], answer, "");
        }
        if (cells[1].equals("await")) {
            return new Outcome(cells[0], answer, await(cells[3]));
        }
        if (cells[1].equals("-")) {
            // What it wrote by itself when it began.
            return new Outcome(cells[0], answer, written(0));
        }
        try (Wire wire = new Wire(host, port)) {
            answer = wire.call(cells[1], Short.parseShort(cells[2]), request).json();
        } catch (java.io.IOException e) {
            if (!Wire.isClosed(e)) {
                throw e;
            }
            answer = "closed";
        }
        learn(cells[1], request, answer);
        return new Outcome(cells[0], named(answer), written(next));
    }

    /**
     * The records from an offset on. Partitions that change for the same reason come in the order of
     * a hash map: here in that of their text.
     */
    private String written(long from) throws Exception {
        List<String> sorted = new ArrayList<>();
        List<String> changes = new ArrayList<>();
        for (String record : records(from)) {
            if (record.matches(OWN_REGISTRATION)) {
                // The controller registers itself when it finds the time.
                continue;
            }
            if (!record.startsWith("PARTITION_CHANGE_RECORD")) {
                sorted.addAll(changes.stream().sorted().toList());
                changes.clear();
                sorted.add(named(record));
            } else {
                changes.add(named(record));
            }
        }
        sorted.addAll(changes.stream().sorted().toList());
        return String.join(" ", sorted);
    }

    /** Waits until the controller by itself writes a record with this text; nothing else may come. */
    private String await(String text) throws Exception {
        long from = next;
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (true) {
            String written = written(from);
            if (written.contains(text)) {
                return written;
            }
            if (System.nanoTime() > end) {
                throw new IllegalStateException("not within 60 s: " + text + ", but " + written);
            }
            Thread.sleep(20);
        }
    }

    private void learn(String api, String request, String answer) throws Exception {
        if (api.equals("BrokerRegistration")) {
            JsonNode epoch = JSON.readTree(answer).get("brokerEpoch");
            if (epoch.asLong() >= 0) {
                epochs.put(JSON.readTree(request).get("brokerId").asText(), epoch.asText());
            }
        } else if (api.equals("CreateTopics")) {
            for (JsonNode topic : JSON.readTree(answer).get("topics")) {
                if (topic.get("errorCode").asInt() == 0) {
                    topics.put(topic.get("name").asText(), topic.get("topicId").asText());
                }
            }
        }
    }

    /** What differs from run to run gets a name. */
    private String named(String text) {
        String ids = ID.matcher(text).replaceAll(found -> {
            for (Map.Entry<String, String> topic : topics.entrySet()) {
                if (topic.getValue().equals(found.group(1))) {
                    return "\"<topic:" + topic.getKey() + ">\"";
                }
            }
            boolean ours = asked.indexOf(found.group(1)) >= 0
                || found.group(1).startsWith("AAAAAAAAAAAAAAAAAAAA");
            return ours ? Matcher.quoteReplacement(found.group()) : "\"<id>\"";
        });
        ids = ids.replace("\"port\":" + port, "\"port\":\"<port>\"");
        return EPOCH.matcher(ids).replaceAll(found -> {
            for (Map.Entry<String, String> epoch : epochs.entrySet()) {
                if (epoch.getValue().equals(found.group(1))) {
                    return "\"brokerEpoch\":\"<epoch:" + epoch.getKey() + ">\"";
                }
            }
            return found.group();
        });
    }

    /** The metadata records from an offset on; `next` is behind them then. */
    private List<String> records(long from) throws Exception {
        List<String> found = new ArrayList<>();
        File[] segments = log.toFile().listFiles((dir, name) -> name.endsWith(".log"));
        if (segments == null) {
            return found;
        }
        java.util.Arrays.sort(segments);
        for (File segment : segments) {
            try (FileRecords records = FileRecords.open(segment, false)) {
                for (RecordBatch batch : records.batches()) {
                    if (batch.lastOffset() < from) {
                        continue;
                    }
                    next = Math.max(next, batch.nextOffset());
                    if (!batch.isControlBatch()) {
                        for (Record record : batch) {
                            found.add(said(record));
                        }
                    }
                }
            }
        }
        return found;
    }

    private static String said(Record record) {
        ApiMessageAndVersion message = new MetadataRecordSerde()
            .read(new ByteBufferAccessor(record.value()), record.valueSize());
        MetadataRecordType type = MetadataRecordType.fromId(message.message().apiKey());
        return type.name() + " " + message.version() + " "
            + MetadataJsonConverters.writeJson(message.message(), message.version());
    }

    /** Arguments: host, port, folder of the metadata partition, table, file to write. */
    static void run(List<String> args) throws Exception {
        List<String> lines = new ArrayList<>();
        for (Outcome outcome : play(args.get(0), Integer.parseInt(args.get(1)),
                Path.of(args.get(2)), table(Path.of(args.get(3))))) {
            lines.add(outcome.title() + "\t" + outcome.answer() + "\t" + outcome.records());
        }
        Files.write(Path.of(args.get(4)), lines);
    }
}

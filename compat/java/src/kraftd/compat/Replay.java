package kraftd.compat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Sends each request of a table of cases to one node and writes the table again with the answers.
 * Columns: case, API, version, request, answer, request bytes, answer bytes. The first four are the
 * input; lines starting with '#' are kept. "{epoch}" in a request stands for the broker epoch that
 * was answered last, {topic} for the last topic id; "{epoch:5}" and {topic:NAME} for those of broker
 * 5 and of the topic of that name.
 */
public final class Replay {
    private static final Pattern EPOCH = Pattern.compile("\"brokerEpoch\":(\\d+)");
    private static final Pattern TOPIC = Pattern.compile("\"topicId\":\"([^\"]+)\"");

    private static final Pattern BROKER = Pattern.compile("\"brokerId\":(\\d+)");
    private static final Pattern NAMED =
        Pattern.compile("\"name\":\"([^\"]+)\",\"topicId\":\"([^\"]+)\"");

    private static final Map<String, String> known = new HashMap<>();
    private static String epoch = "-1";
    private static String topic = "AAAAAAAAAAAAAAAAAAAAAA";

    private static boolean resigned;

    private Replay() {}

    private static void remember(String request, String json) {
        Matcher epochs = EPOCH.matcher(json);
        if (epochs.find()) {
            epoch = epochs.group(1);
            Matcher broker = BROKER.matcher(request);
            if (broker.find()) {
                known.put("\"{epoch:" + broker.group(1) + "}\"", epoch);
            }
        }
        Matcher named = NAMED.matcher(json);
        while (named.find()) {
            known.put("{topic:" + named.group(1) + "}", named.group(2));
        }
        Matcher topics = TOPIC.matcher(json);
        if (json.contains("\"numPartitions\"") && topics.find()) {
            topic = topics.group(1);
        }
    }

    /** Arguments: host, port, table to read, table to write. */
    public static void main(String[] args) throws Exception {
        replay(args[0], Integer.parseInt(args[1]), Path.of(args[2]), Path.of(args[3]));
    }

    static void replay(String host, int port, Path cases, Path answers) throws Exception {
        List<String> out = new ArrayList<>();
        for (String line : Files.readAllLines(cases)) {
            out.add(line.startsWith("#") || line.isBlank() ? line : answer(host, port, line));
        }
        Files.write(answers, out);
    }

    /**
     * Asks again while nobody leads after an unknown error: a Java controller that meets an error
     * of its own resigns, and the case after it must not be answered with that.
     */
    private static Wire.Exchange askLeader(String host, int port, String[] cells) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (true) {
            try (Wire wire = new Wire(host, port)) {
                String request = cells[3].replace("\"{epoch}\"", epoch).replace("{topic}", topic);
                for (Map.Entry<String, String> each : known.entrySet()) {
                    request = request.replace(each.getKey(), each.getValue());
                }
                Wire.Exchange exchange = wire.call(cells[1], Short.parseShort(cells[2]), request);
                remember(request, exchange.json());
                boolean asked = !resigned || System.nanoTime() > end;
                if (asked || !exchange.json().contains("\"errorCode\":41")) {
                    resigned = exchange.json().contains("\"errorCode\":-1");
                    return exchange;
                }
            }
            Thread.sleep(100);
        }
    }

    private static String answer(String host, int port, String line) throws Exception {
        String[] cells = line.split("\t");
        String inputs = String.join("\t", List.of(cells).subList(0, 4));
        try {
            Wire.Exchange exchange = askLeader(host, port, cells);
            return String.join("\t", inputs, exchange.json(), exchange.requestHex(),
                exchange.responseHex());
        } catch (java.io.IOException e) {
            if (!Wire.isClosed(e)) {
                throw e;
            }
            return inputs + "\tclosed";
        }
    }
}

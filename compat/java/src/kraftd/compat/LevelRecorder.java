package kraftd.compat;

import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Records what a Java controller answers and writes at every metadata.version, to a table of
 * requests: see {@link Levels}. Behind the columns of the input stand the levels, the answer and the
 * records; a case has a line for each of its different outcomes.
 */
public final class LevelRecorder {
    private LevelRecorder() {}

    /**
     * Arguments: the table, which is written again with the outcomes, the session of brokers in
     * milliseconds, behind which lines of the configuration may stand, parted by semicolons, and the
     * levels; all of them without levels.
     */
    public static void main(String[] args) throws Exception {
        Path file = Path.of(args[0]);
        List<String> wanted = List.of(args).subList(2, args.length);
        List<String[]> table = Levels.table(file);
        Map<String, Map<String, List<Integer>>> outcomes = new LinkedHashMap<>();
        for (MetadataVersion version : MetadataVersion.VERSIONS) {
            String level = String.valueOf(version.featureLevel());
            if (wanted.isEmpty() ? version.isProduction() : wanted.contains(level)) {
                System.out.println(version);
                for (Levels.Outcome outcome : at(version, args[1], table)) {
                    outcomes.computeIfAbsent(outcome.title(), title -> new LinkedHashMap<>())
                        .computeIfAbsent(outcome.answer() + "\t" + outcome.records(),
                            text -> new ArrayList<>())
                        .add((int) version.featureLevel());
                }
            }
        }
        List<String> lines = new ArrayList<>();
        for (String[] cells : table) {
            outcomes.get(cells[0]).forEach((outcome, levels) -> lines.add(String.join("\t",
                cells[0], cells[1], cells[2], cells[3], ranges(levels), outcome)));
        }
        Files.write(file, lines);
        // Threads of the servers that were here must not hold the JVM.
        Runtime.getRuntime().halt(0);
    }

    private static String ranges(List<Integer> levels) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < levels.size(); i++) {
            int first = levels.get(i);
            while (i + 1 < levels.size() && levels.get(i + 1) == levels.get(i) + 1) {
                i++;
            }
            text.append(text.isEmpty() ? "" : ",").append(first)
                .append(first == levels.get(i) ? "" : "-" + levels.get(i));
        }
        return text.toString();
    }

    private static List<Levels.Outcome> at(
        MetadataVersion version, String settings, List<String[]> table
    ) throws Exception {
        Path dir = Files.createTempDirectory("level");
        int port = Servers.freePort();
        Properties lines = new Properties();
        lines.put("process.roles", "controller");
        lines.put("node.id", "1");
        lines.put("controller.listener.names", "CONTROLLER");
        lines.put("listeners", "CONTROLLER://localhost:" + port);
        lines.put("controller.quorum.voters", "1@localhost:" + port);
        lines.put("log.dirs", dir.resolve("data").toString());
        // Nothing but what is asked for is written.
        lines.put("metadata.max.idle.interval.ms", "0");
        String[] parts = settings.split(";");
        lines.put("broker.session.timeout.ms", parts[0]);
        for (String line : List.of(parts).subList(1, parts.length)) {
            lines.put(line.split("=")[0], line.split("=")[1]);
        }
        Path config = dir.resolve("server.properties");
        try (var out = Files.newOutputStream(config)) {
            lines.store(out, null);
        }
        int code = StorageTool.execute(new String[] {"format", "-c", config.toString(), "-t",
            Servers.CLUSTER, "-r", version.version()}, new PrintStream(System.err));
        if (code != 0) {
            throw new IllegalStateException("format at " + version + " ended with " + code);
        }
        KafkaRaftServer server = new KafkaRaftServer(KafkaConfig.fromProps(lines), Time.SYSTEM);
        server.startup();
        try {
            return Levels.play("localhost", port, dir.resolve("data/__cluster_metadata-0"), table);
        } finally {
            server.shutdown();
            server.awaitShutdown();
            Servers.remove(dir);
        }
    }
}

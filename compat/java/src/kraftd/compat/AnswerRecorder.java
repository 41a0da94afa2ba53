package kraftd.compat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.stream.Stream;

/**
 * Records the answers of a Java controller with one Java broker to tables of requests, and the
 * metadata log that came of a table that has one beside it.
 */
public final class AnswerRecorder {
    private static final String CONFIG = "# config: ";

    private AnswerRecorder() {}

    /** Arguments: jars, logging configurations, tables. Each table meets a new cluster. */
    public static void main(String[] args) throws Exception {
        for (int i = 2; i < args.length; i++) {
            record(Path.of(args[0]), Path.of(args[1]), Path.of(args[i]));
        }
    }

    /** The lines of the controller's configuration that a table asks for. */
    private static String[] extra(Path table) throws Exception {
        try (Stream<String> lines = Files.lines(table)) {
            return lines.filter(line -> line.startsWith(CONFIG))
                .map(line -> line.substring(CONFIG.length())).toArray(String[]::new);
        }
    }

    private static void record(Path jars, Path conf, Path table) throws Exception {
        try (Servers servers = new Servers(jars, conf)) {
            Path controller = servers.config("controller", servers.controllerLines(true, extra(table)));
            Path broker = servers.config("broker", servers.brokerLines(true));
            servers.format(controller, "--standalone");
            servers.format(broker);
            servers.start(controller);
            Process running = servers.start(broker);
            servers.awaitLog(broker, "Kafka Server started");
            Replay.replay("localhost", servers.controllerPort, table, table);
            Path log = table.resolveSibling(table.getFileName().toString().replace(".tsv", ".log"));
            if (Files.exists(log)) {
                Files.copy(servers.dir.resolve("controller/__cluster_metadata-0")
                    .resolve("00000000000000000000.log"), log, StandardCopyOption.REPLACE_EXISTING);
            }
            Servers.stop(running);
            System.out.println(table);
        }
    }
}

package kraftd.compat;

import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

/** A Java controller (node 1) and Java brokers in a directory of their own, for recordings. */
final class Servers implements AutoCloseable {
    static final String CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg";

    private static final int PATIENCE_S = 120;

    final Path dir;
    final int controllerPort;
    final int brokerPort;
    private final Path jars;
    private final Path conf;
    private final List<Process> processes = new ArrayList<>();

    Servers(Path jars, Path conf) throws IOException {
        this.jars = jars;
        this.conf = conf;
        dir = Files.createTempDirectory("recording");
        controllerPort = freePort();
        brokerPort = freePort();
    }

    private static int next = 10_000 + (int) (ProcessHandle.current().pid() * 40 % 20_000);

    /** A port that nobody listens on: recordings at the same time look at different places. */
    static int freePort() throws IOException {
        for (; ; ) {
            try (ServerSocket socket = new ServerSocket(next++)) {
                return socket.getLocalPort();
            } catch (IOException e) {
                // Taken: the next one.
            }
        }
    }

    Path config(String name, String... lines) throws IOException {
        Path file = dir.resolve(name + ".properties");
        Files.write(file, List.of(lines));
        return file;
    }

    String[] controllerLines(boolean dynamic, String... more) {
        List<String> lines = new ArrayList<>(List.of("process.roles=controller", "node.id=1",
            "controller.listener.names=CONTROLLER",
            "listeners=CONTROLLER://localhost:" + controllerPort,
            dynamic ? "controller.quorum.bootstrap.servers=localhost:" + controllerPort
                : "controller.quorum.voters=1@localhost:" + controllerPort,
            "log.dirs=" + dir.resolve("controller")));
        lines.addAll(List.of(more));
        return lines.toArray(String[]::new);
    }

    String[] brokerLines(boolean dynamic, String... more) {
        List<String> lines = new ArrayList<>(List.of("process.roles=broker", "node.id=2",
            "controller.listener.names=CONTROLLER",
            "listeners=PLAINTEXT://localhost:" + brokerPort,
            dynamic ? "controller.quorum.bootstrap.servers=localhost:" + controllerPort
                : "controller.quorum.voters=1@localhost:" + controllerPort,
            "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
            "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
            "transaction.state.log.num.partitions=1",
            "log.dirs=" + dir.resolve("broker")));
        lines.addAll(List.of(more));
        return lines.toArray(String[]::new);
    }

    void format(Path config, String... more) throws Exception {
        List<String> command = java(128, "tools", "kafka.tools.StorageTool", "format",
            "-c", config.toString(), "-t", CLUSTER);
        command.addAll(List.of(more));
        Process process = new ProcessBuilder(command).inheritIO().start();
        if (process.waitFor() != 0) {
            throw new IllegalStateException("format failed: " + command);
        }
    }

    Process start(Path config) throws IOException {
        Path log = dir.resolve(config.getFileName() + ".log");
        Process process = new ProcessBuilder(java(256, "server", "kafka.Kafka", config.toString()))
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
        processes.add(process);
        return process;
    }

    private List<String> java(int heap, String logging, String main, String... args) {
        Path log4j2 = conf.resolve("log4j2-" + logging + ".properties");
        Path log4j = conf.resolve("log4j-" + logging + ".properties");
        List<String> command = new ArrayList<>(List.of("java", "-Xmx" + heap + "m", "-Xss512k",
            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.configurationFile=" + log4j2,
            "-Dlog4j.configuration=" + log4j.toUri(), "-cp", jars + "/*", main));
        command.addAll(List.of(args));
        return command;
    }

    /** Waits until a line with this text is in the log that a configuration's server writes. */
    void awaitLog(Path config, String text) throws Exception {
        Path log = dir.resolve(config.getFileName() + ".log");
        await(text, () -> {
            try {
                return Files.exists(log) && Files.readString(log).contains(text);
            } catch (IOException e) {
                return false;
            }
        });
    }

    static void await(String what, BooleanSupplier condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("did not happen within " + PATIENCE_S + " s: " + what);
            }
            Thread.sleep(50);
        }
    }

    static void stop(Process process) throws InterruptedException {
        process.destroy();
        if (!process.waitFor(60, TimeUnit.SECONDS)) {
            process.destroyForcibly().waitFor();
        }
    }

    @Override
    public void close() throws Exception {
        for (Process process : processes) {
            process.destroyForcibly().waitFor();
        }
        remove(dir);
    }

    static void remove(Path root) throws IOException {
        if (Files.notExists(root)) {
            return;
        }
        try (Stream<Path> all = Files.walk(root)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }
}

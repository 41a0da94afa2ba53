package kraftd.bench;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A fresh directory with one controller and, if asked for, one Java broker. Closing removes all. */
final class Servers implements AutoCloseable {
    /** Which make of controller. */
    enum Make { KRAFTD, JAVA }

    /** Where things are: set once by {@link Bench}. */
    record Paths(Path kraftd, Path jars, Path logging, Path work) {}

    static final String CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg";
    /** What Kafka's own start script gives a server, but for the smaller heap. */
    private static final List<String> JVM = List.of("-Xmx512m", "-server", "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
        "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true");

    private final Paths paths;
    private final Make make;
    private final Path dir;
    final int port = freePort();
    private final List<Process> processes = new ArrayList<>();
    private final Thread hook = new Thread(this::remove);

    /** A directory that is formatted and not started. kraftd formats for both: so they start alike. */
    Servers(Paths paths, Make make, String... more) throws Exception {
        this.paths = paths;
        this.make = make;
        dir = Files.createTempDirectory(paths.work(), make.name().toLowerCase());
        Runtime.getRuntime().addShutdownHook(hook);
        List<String> lines = new ArrayList<>(List.of("process.roles=controller", "node.id=1",
            "controller.listener.names=CONTROLLER", "listeners=CONTROLLER://localhost:" + port,
            "controller.quorum.bootstrap.servers=localhost:" + port,
            "log.dirs=" + dir.resolve("controller")));
        lines.addAll(List.of(more));
        Files.write(config("controller"), lines);
        run(List.of(paths.kraftd().toString(), "format", "-c", config("controller").toString(),
            "-t", CLUSTER, "--standalone"));
    }

    Process startController() throws IOException {
        return start("controller", make == Make.KRAFTD
            ? List.of(paths.kraftd().toString(), config("controller").toString())
            : java("server", JVM, "kafka.Kafka", config("controller").toString()));
    }

    /** Starts a Java broker; it is unfenced when this returns. */
    void startBroker() throws Exception {
        Files.write(config("broker"), List.of("process.roles=broker", "node.id=2",
            "controller.listener.names=CONTROLLER", "listeners=PLAINTEXT://localhost:" + freePort(),
            "controller.quorum.bootstrap.servers=localhost:" + port,
            "log.dirs=" + dir.resolve("broker")));
        run(java("tools", List.of("-Xmx128m"), "kafka.tools.StorageTool", "format",
            "-c", config("broker").toString(), "-t", CLUSTER));
        Process broker = start("broker", java("server",
            List.of("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            "kafka.Kafka", config("broker").toString()));
        Path log = dir.resolve("broker.log");
        await("the broker starts", broker, 100,
            () -> Files.readString(log).contains("Kafka Server started") ? true : null);
    }

    /** Connects to the controller as soon as that is possible. */
    Connection connect(Process controller) throws Exception {
        return await("the controller listens", controller, 5, () -> new Connection(port));
    }

    /** Asks again every {@code pauseMs} until there is an answer; a refused connection is none. */
    static <T> T await(String what, Process process, long pauseMs, Callable<T> question)
            throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
        while (true) {
            try {
                T answer = question.call();
                if (answer != null) {
                    return answer;
                }
            } catch (IOException e) {
                // Not yet.
            }
            if (!process.isAlive()) {
                throw new IllegalStateException(what + ": its process ended");
            }
            if (System.nanoTime() > end) {
                throw new IllegalStateException(what + ": not within two minutes");
            }
            TimeUnit.MILLISECONDS.sleep(pauseMs);
        }
    }

    private Path config(String name) {
        return dir.resolve(name + ".properties");
    }

    private List<String> java(String logging, List<String> flags, String main, String... args) {
        List<String> command = new ArrayList<>(List.of("java"));
        command.addAll(flags);
        command.add("-Dlog4j2.configurationFile="
            + paths.logging().resolve("log4j2-" + logging + ".properties"));
        command.addAll(List.of("-cp", paths.jars() + "/*", main));
        command.addAll(List.of(args));
        return command;
    }

    private Process start(String name, List<String> command) throws IOException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true)
            .redirectOutput(dir.resolve(name + ".log").toFile()).start();
        processes.add(process);
        return process;
    }

    private void run(List<String> command) throws Exception {
        Process process = new ProcessBuilder(command).redirectErrorStream(true)
            .redirectOutput(dir.resolve("format.log").toFile()).start();
        if (process.waitFor() != 0) {
            throw new IllegalStateException(
                command + ":\n" + Files.readString(dir.resolve("format.log")));
        }
    }

    private static int freePort() {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private void remove() {
        // None of them needs to go gently: their directory goes with them.
        processes.forEach(Process::destroyForcibly);
        processes.forEach(process -> process.onExit().join());
        try (Stream<Path> all = Files.walk(dir)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(path);
            }
        } catch (IOException e) {
            System.err.println(dir + " is left: " + e);
        }
    }

    @Override
    public void close() {
        remove();
        Runtime.getRuntime().removeShutdownHook(hook);
    }
}

package kraftd.bench;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A fresh directory with one controller and, if asked for, one Java broker. Closing removes all. */
final class Servers implements AutoCloseable {
    /** Which make of controller. */
    enum Make { KRAFTD, JAVA }

    /** The makes whose quorums are measured: one alone while something is looked for. */
    static final List<Make> MAKES = Arrays.stream(
        System.getProperty("makes", "kraftd java").trim().toUpperCase().split("\\s+"))
        .map(Make::valueOf).toList();

    /** Where things are: set once by {@link Bench}. */
    record Paths(Path kraftd, Path generate, Path jars, Path logging, Path work) {}

    /** How long anything may take: Java reads a million partitions on a busy machine. */
    static final int PATIENCE_MINUTES = 6;
    static final String CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg";
    /** What Kafka's own start script gives a server, but for the smaller heap. */
    static final List<String> JVM = List.of("-server", "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
        "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true");

    private final Paths paths;
    private final Make make;
    private final Path dir;
    /** What Java's controller may use of memory. */
    private final String heap;
    final int port;
    private final List<Process> processes = new ArrayList<>();
    private final Thread hook = new Thread(this::remove);

    /** A directory that is formatted and not started. kraftd formats for both: so they start alike. */
    Servers(Paths paths, Make make, String... more) throws Exception {
        this(paths, make, "512m", freePort(), List.of(more));
        run(List.of(paths.kraftd().toString(), "format", "-c", config("controller").toString(),
            "-t", CLUSTER, "--standalone"));
    }

    /** A copy of a directory in which nothing runs, with its port, for another make. */
    Servers(Servers from, Make make, String heap, List<String> more) throws Exception {
        this(from.paths, make, heap, from.port, more);
        copy(from.dir.resolve("controller"), dir.resolve("controller"));
    }

    private Servers(Paths paths, Make make, String heap, int port, List<String> more)
            throws IOException {
        this.paths = paths;
        this.make = make;
        this.heap = heap;
        this.port = port;
        dir = Files.createTempDirectory(paths.work(), make.name().toLowerCase());
        Runtime.getRuntime().addShutdownHook(hook);
        List<String> lines = new ArrayList<>(List.of("process.roles=controller", "node.id=1",
            "controller.listener.names=CONTROLLER", "listeners=CONTROLLER://localhost:" + port,
            "controller.quorum.bootstrap.servers=localhost:" + port,
            "log.dirs=" + dir.resolve("controller")));
        lines.addAll(more);
        Files.write(config("controller"), lines);
    }

    /** Fills the formatted directory with the metadata of a large cluster. */
    void fill(int partitions) throws Exception {
        run(List.of(paths.generate().toString(), dir.resolve("controller").toString(),
            Integer.toString(partitions)));
    }

    /** Where the metadata's log and checkpoints are. */
    Path metadata() {
        return dir.resolve("controller").resolve("__cluster_metadata-0");
    }

    Process startController() throws IOException {
        return start("controller", make == Make.KRAFTD
            ? List.of(paths.kraftd().toString(), config("controller").toString())
            : java("server", jvm(), "kafka.Kafka", config("controller").toString()));
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
        long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(PATIENCE_MINUTES);
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
                throw new IllegalStateException(
                    what + ": not within " + PATIENCE_MINUTES + " minutes");
            }
            TimeUnit.MILLISECONDS.sleep(pauseMs);
        }
    }

    private List<String> jvm() {
        List<String> flags = new ArrayList<>(JVM);
        flags.add("-Xmx" + heap);
        return flags;
    }

    private static void copy(Path from, Path to) throws IOException {
        try (Stream<Path> all = Files.walk(from)) {
            for (Path path : all.toList()) {
                Files.copy(path, to.resolve(from.relativize(path).toString()),
                    StandardCopyOption.COPY_ATTRIBUTES);
            }
        }
    }

    private Path config(String name) {
        return dir.resolve(name + ".properties");
    }

    private List<String> java(String logging, List<String> flags, String main, String... args) {
        return java(paths, logging, flags, main, args);
    }

    /** A main class of Kafka's, in a JVM with these flags. */
    static List<String> java(Paths paths, String logging, List<String> flags, String main,
            String... args) {
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
        run(dir.resolve("format.log"), command);
    }

    /** Runs a command to its end, which must be a good one; what it says goes to the file. */
    static void run(Path log, List<String> command) throws Exception {
        Process process = new ProcessBuilder(command).redirectErrorStream(true)
            .redirectOutput(log.toFile()).start();
        if (process.waitFor() != 0) {
            throw new IllegalStateException(command + ":\n" + Files.readString(log));
        }
    }

    static int freePort() {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private void remove() {
        remove(dir, processes);
    }

    /** Ends the processes and removes the directory that they lived in. */
    static void remove(Path dir, List<Process> processes) {
        // None of them needs to go gently: their directory goes with them.
        processes.forEach(Process::destroyForcibly);
        processes.forEach(process -> process.onExit().join());
        if (Boolean.getBoolean("keep")) {
            return;
        }
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

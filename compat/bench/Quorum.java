package kraftd.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.DescribeQuorumResponseData;

/** Voters (three, if nothing is said) of one make with default settings in a directory of their own. Closing ends them. */
final class Quorum implements AutoCloseable {
    static final int VOTERS = 3;
    /** How far behind the leader a voter may be that has caught up: the log never stands still. */
    private static final long LAG = 10;

    private final Servers.Paths paths;
    private final Servers.Make make;
    private final String heap;
    private final Path dir;
    private final int voters;
    private final int[] ports;
    private final Process[] running;
    private final List<Process> all = new ArrayList<>();
    private final Thread hook;

    /** Formatted by kraftd for both makes, filled with so many partitions, and not started. */
    Quorum(Servers.Paths paths, Servers.Make make, int partitions, String... more)
            throws Exception {
        this(paths, make, VOTERS, partitions, more);
    }

    /** So many voters. */
    Quorum(Servers.Paths paths, Servers.Make make, int count, int partitions, String... more)
            throws Exception {
        voters = count;
        ports = new int[count];
        running = new Process[count];
        this.paths = paths;
        this.make = make;
        heap = partitions == 0 ? "512m" : "1g";
        dir = Files.createTempDirectory(paths.work(), make.name().toLowerCase() + "-quorum");
        hook = new Thread(() -> Servers.remove(dir, all));
        Runtime.getRuntime().addShutdownHook(hook);
        StringBuilder initial = new StringBuilder();
        StringBuilder bootstrap = new StringBuilder();
        for (int node = 0; node < voters; node++) {
            ports[node] = Servers.freePort();
            String comma = node == 0 ? "" : ",";
            initial.append(comma).append(node + 1).append("@localhost:").append(ports[node])
                .append(':').append(Uuid.randomUuid());
            bootstrap.append(comma).append("localhost:").append(ports[node]);
        }
        for (int node = 0; node < voters; node++) {
            List<String> lines = new ArrayList<>(List.of("process.roles=controller",
                "node.id=" + (node + 1), "controller.listener.names=CONTROLLER",
                "listeners=CONTROLLER://localhost:" + ports[node],
                "controller.quorum.bootstrap.servers=" + bootstrap, "log.dirs=" + data(node)));
            lines.addAll(List.of(more));
            Files.write(config(node), lines);
            Path log = dir.resolve("format.log");
            Servers.run(log, List.of(paths.kraftd().toString(), "format", "-c",
                config(node).toString(), "-t", Servers.CLUSTER, "--initial-controllers",
                initial.toString()));
            if (partitions > 0) {
                Servers.run(log, List.of(paths.generate().toString(), data(node).toString(),
                    Integer.toString(partitions)));
            }
        }
    }

    private Path data(int node) {
        return dir.resolve("controller-" + (node + 1));
    }

    private Path config(int node) {
        return dir.resolve("controller-" + (node + 1) + ".properties");
    }

    int[] ports() {
        return ports.clone();
    }

    /** The processes that run. */
    List<Process> running() {
        List<Process> alive = new ArrayList<>(List.of(running));
        alive.removeIf(process -> !process.isAlive());
        return alive;
    }

    Process process(int node) {
        return running[node];
    }

    void start(int node) throws IOException {
        List<String> jvm = new ArrayList<>(Servers.JVM);
        jvm.add("-Xmx" + heap);
        List<String> command = make == Servers.Make.KRAFTD
            ? List.of(paths.kraftd().toString(), config(node).toString())
            : Servers.java(paths, "server", jvm, "kafka.Kafka", config(node).toString());
        Path log = dir.resolve("controller-" + (node + 1) + ".log");
        running[node] = new ProcessBuilder(command).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
        all.add(running[node]);
    }

    /** Starts all; all have caught up when this returns. */
    void startAll() throws Exception {
        for (int node = 0; node < voters; node++) {
            start(node);
        }
        awaitCaughtUp();
    }

    /** Sends a signal to a node's process. */
    void signal(int node, String name) throws Exception {
        Process kill = new ProcessBuilder("kill", "-" + name, "" + running[node].pid()).start();
        if (kill.waitFor() != 0) {
            throw new IllegalStateException("node " + (node + 1) + " gets no SIG" + name);
        }
    }

    /** Who leads now; -1 when nobody does. */
    int leader() {
        for (int node = 0; node < voters; node++) {
            if (described(node) != null) {
                return node;
            }
        }
        return -1;
    }

    private DescribeQuorumResponseData.PartitionData described(int node) {
        try (Connection connection = new Connection(ports[node], 5_000)) {
            return Requests.quorum(connection);
        } catch (IOException e) {
            return null;
        }
    }

    /** Waits until somebody leads and every voter has, and goes on fetching, what the leader has. */
    void awaitCaughtUp() throws Exception {
        long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(Servers.PATIENCE_MINUTES);
        while (!caughtUp()) {
            for (int node = 0; node < voters; node++) {
                if (!running[node].isAlive()) {
                    throw new IllegalStateException(make + " node " + (node + 1) + " ended:\n"
                        + Files.readString(dir.resolve("controller-" + (node + 1) + ".log")));
                }
            }
            if (System.nanoTime() > end) {
                throw new IllegalStateException(make + ": the voters do not catch up");
            }
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    private boolean caughtUp() {
        int leader = leader();
        if (leader < 0) {
            return false;
        }
        var quorum = described(leader);
        if (quorum == null || quorum.highWatermark() <= 0
                || quorum.currentVoters().size() != voters) {
            return false;
        }
        long now = System.currentTimeMillis();
        return quorum.currentVoters().stream().allMatch(voter ->
            voter.logEndOffset() >= quorum.highWatermark() - LAG
                && now - voter.lastFetchTimestamp() < 1_000);
    }

    /** CPU time of all processes that run, in ms. */
    double cpuMs() throws IOException {
        double sum = 0;
        for (Process process : running()) {
            sum += Usage.wholeMs(process);
        }
        return sum;
    }

    @Override
    public void close() {
        Servers.remove(dir, all);
        Runtime.getRuntime().removeShutdownHook(hook);
    }
}

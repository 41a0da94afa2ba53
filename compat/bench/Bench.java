package kraftd.bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * kraftd beside Java's controller on this machine. Each figure has the number that was expected of
 * kraftd before it was measured, with its reason below; a figure far from it is a finding.
 *
 * <p>Arguments: the kraftd binary, the generator of large clusters, the folder of Kafka's jars, the
 * folder of the logging configurations, a folder for scratch on the disk that counts, a file for the
 * rows, and words of {@code idle start create scale failover quorum-create fencing
 * heartbeats creates}.
 */
public final class Bench {
    private static final int REPEATS = Integer.getInteger("repeats", 3);
    private static final int IDLE_SECONDS = Integer.getInteger("idle.seconds", 20);
    private static final int CREATES = Integer.getInteger("creates", 500);

    private final Servers.Paths paths;
    private final List<Row> rows = new ArrayList<>();

    private Bench(Servers.Paths paths) {
        this.paths = paths;
    }

    public static void main(String[] args) throws Exception {
        Bench bench = new Bench(new Servers.Paths(
            Path.of(args[0]), Path.of(args[1]), Path.of(args[2]), Path.of(args[3]),
            Path.of(args[4])));
        Path rows = Path.of(args[5]);
        for (String measure : List.of(args).subList(6, args.length)) {
            System.err.println("measuring: " + measure + " ...");
            switch (measure) {
                case "idle" -> bench.idle();
                case "start" -> bench.start();
                case "create" -> bench.create();
                case "scale" -> new Scale(bench.paths, REPEATS).run(bench.rows);
                case "failover" -> new Failover(bench.paths).run(bench.rows);
                case "quorum-create" -> new QuorumCreate(bench.paths).run(bench.rows);
                case "fencing" -> new Fencing(bench.paths, REPEATS).run(bench.rows);
                case "heartbeats" -> new ManyBrokers(bench.paths).run(bench.rows);
                case "creates" -> new Creates(bench.paths).run(bench.rows);
                default -> throw new IllegalArgumentException(measure
                    + " is no measure: idle, start, create, scale, failover, quorum-create, fencing,"
                    + " heartbeats, creates");
            }
            // What was measured is kept, whatever happens to the next measure.
            Files.write(rows, bench.rows.stream().map(Row::tsv).toList());
        }
    }

    /**
     * A controller that has nothing to do but one Java broker's heartbeats and fetches.
     *
     * <p>Expected memory: of a binary of about 10 MB half is touched (5 MB), the C library 2 MB, six
     * threads with 100 kB of touched stack each, an image and a log tail of less than 1 MB: 9 MB.
     * Expected CPU: a heartbeat every 2 s, a fetch and a no-op record every 500 ms, each about
     * 0.2 ms with its system calls: 0.1 % of a core.
     */
    private void idle() throws Exception {
        Usage[] used = new Usage[2];
        double[] percent = new double[2];
        for (Servers.Make make : Servers.Make.values()) {
            try (Servers servers = new Servers(paths, make)) {
                Process controller = servers.startController();
                servers.connect(controller).close();
                servers.startBroker();
                // What the broker's start made the controller do is over after some heartbeats.
                TimeUnit.SECONDS.sleep(5);
                double before = Usage.of(controller).cpuMs();
                TimeUnit.SECONDS.sleep(IDLE_SECONDS);
                Usage now = Usage.of(controller);
                used[make.ordinal()] = now;
                percent[make.ordinal()] = (now.cpuMs() - before) / (IDLE_SECONDS * 10.0);
            }
        }
        add("idle.resident", "MB", "9", used[0].residentMb(), used[1].residentMb(), "< 20");
        add("idle.resident.peak", "MB", "9", used[0].peakMb(), used[1].peakMb(), "");
        add("idle.threads", "threads", "6", used[0].threads(), used[1].threads(), "");
        add("idle.cpu", "% of a core", "0.1", percent[0], percent[1], "");
    }

    /**
     * From the start of the process on a fresh directory to the first record that it committed for a
     * client, which only an active controller does.
     *
     * <p>Expected CPU: loading the binary 2 ms, reading the configuration and its 400 keys 1 ms,
     * a dozen small files with their fsyncs 3 ms, threads and sockets 1 ms, the log lines, the
     * election and the first batches 1 ms: 10 ms with what was forgotten. The wall clock is that
     * plus about ten waits for the disk in a row.
     */
    private void start() throws Exception {
        double[][] cpu = new double[2][REPEATS];
        double[][] wall = new double[2][REPEATS];
        for (int i = 0; i < REPEATS; i++) {
            for (Servers.Make make : Servers.Make.values()) {
                try (Servers servers = new Servers(paths, make)) {
                    long start = System.nanoTime();
                    Process controller = servers.startController();
                    try (Connection connection = servers.connect(controller)) {
                        Servers.await("the controller is active", controller, 5,
                            () -> Requests.write(connection, 2) ? true : null);
                    }
                    wall[make.ordinal()][i] = (System.nanoTime() - start) / 1e6;
                    cpu[make.ordinal()][i] = Usage.of(controller).cpuMs();
                }
            }
        }
        add("start.cpu", "ms", "10", median(cpu[0]), median(cpu[1]), "< 100");
        add("start.wall", "ms", "10 + 10 fsyncs", median(wall[0]), median(wall[1]), "");
    }

    /**
     * One client creates topics one by one, each when the one before is answered. Before each, a
     * file of its own is appended to and synced on the same disk: so both see the same disk.
     *
     * <p>Expected: the answer leaves after one fsync of the log; the loopback, five changes of
     * thread and the decision cost about 0.2 ms, which counts where the disk is as fast as that.
     * Java's controller lets the batch linger for 25 ms before it writes it.
     */
    private void create() throws Exception {
        // No broker is there to beat: a long session keeps the one that is registered.
        String session = "broker.session.timeout.ms=3600000";
        double[][] fsync = new double[2][CREATES];
        double[][] create = new double[2][CREATES];
        for (Servers.Make make : Servers.Make.values()) {
            Path file = Files.createTempFile(paths.work(), "fsync", ".bin");
            try (Servers servers = new Servers(paths, make, session);
                    Connection connection = ready(servers);
                    FileChannel disk = FileChannel.open(file, StandardOpenOption.WRITE)) {
                // The first ones warm up the compilers of the JVMs.
                for (int i = -CREATES / 2; i < CREATES; i++) {
                    double synced = timed(() -> append(disk));
                    String name = "topic-" + i;
                    double created = timed(() -> Requests.createTopic(connection, name));
                    if (i >= 0) {
                        fsync[make.ordinal()][i] = synced;
                        create[make.ordinal()][i] = created;
                    }
                }
            }
        }
        double[] disk = {median(fsync[0]), median(fsync[1])};
        double[] created = {median(create[0]), median(create[1])};
        add("fsync.p50", "ms", "", disk[0], disk[1], "");
        add("create.p50", "ms", "fsync + 0.2", created[0], created[1], "");
        add("create.p50 / fsync.p50", "fsyncs", "1 + 0.2 ms", created[0] / disk[0],
            created[1] / disk[1], "< 3");
        add("create.p99", "ms", "", quantile(create[0], 0.99), quantile(create[1], 0.99), "");
    }

    private static Connection ready(Servers servers) throws Exception {
        Process controller = servers.startController();
        Connection connection = servers.connect(controller);
        Servers.await("the controller is active", controller, 20,
            () -> Requests.write(connection, 2) ? true : null);
        Requests.addBroker(connection, Servers.CLUSTER, Requests.BROKER);
        return connection;
    }

    /** Appends as much as a small topic's records take, and syncs it. */
    private static void append(FileChannel disk) throws IOException {
        disk.write(ByteBuffer.allocate(256));
        disk.force(false);
    }

    private interface Work {
        void run() throws IOException;
    }

    private static double timed(Work work) throws IOException {
        long start = System.nanoTime();
        work.run();
        return (System.nanoTime() - start) / 1e6;
    }

    private void add(String measure, String unit, String expected, double kraftd, double java,
            String target) {
        rows.add(new Row(measure, unit, expected, kraftd, java, target));
    }

    static double median(double[] values) {
        return quantile(values, 0.5);
    }

    static double quantile(double[] values, double q) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[(int) Math.round(q * (sorted.length - 1))];
    }
}

package kraftd.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Large clusters: both makes on copies of one generated directory, in turn.
 *
 * <p>Each run starts a controller, writes the first record, lets 30 brokers beat, has a snapshot
 * written (a large topic exceeds {@code metadata.log.max.record.bytes.between.snapshots}) and fences
 * a broker. A figure is the median of the runs.
 *
 * <p>Expected at a million partitions (134 MB): the bare walk of the checkpoint is the row
 * {@code bare}; what the image adds are two lookups of lists and one row for each partition, some
 * memory accesses or 0.3 us, and the checksums once more at recovery: bare + 0.4 s in all. Memory
 * after it: 64 bytes a partition and 10 MB for everything else; at the peak 2 MB of file windows
 * more. A snapshot: the records of the image and their encoding, 0.4 us each, checksums and the
 * copies to the page cache, 0.2 s: 0.6 s. A heartbeat never waits for any of that; what it sees is
 * that the second core is busy. Fencing scans a million rows (10 ms) and writes 100,000 changes of
 * about 40 bytes, 1 us each.
 */
final class Scale {
    private static final String[] SIZES =
        System.getProperty("scale", "10000 100000 1000000").trim().split("\\s+");
    /** Java's controller needs 3 GB for a million partitions. */
    static final int BIG = 500_000;
    /** Bytes of records after which a snapshot is due: more than the generated log has. */
    private static final int SNAPSHOT_BYTES = 150_000;
    /** Partitions whose records are more than that. */
    private static final int SNAPSHOT_PARTITIONS = 2_000;
    private static final int IDLE_SECONDS = 3;

    private final Servers.Paths paths;
    private final int repeats;

    Scale(Servers.Paths paths, int repeats) {
        this.paths = paths;
        this.repeats = repeats;
    }

    /** Figures of one make at one size: all runs of each measure. */
    static final class Figures {
        private final Map<String, List<Double>> runs = new LinkedHashMap<>();

        void add(String measure, double value) {
            runs.computeIfAbsent(measure, it -> new ArrayList<>()).add(value);
        }

        @Override
        public String toString() {
            return runs.toString();
        }

        double median(String measure) {
            List<Double> values = runs.get(measure);
            return values == null ? Double.NaN
                : Bench.median(values.stream().mapToDouble(Double::doubleValue).toArray());
        }
    }

    void run(List<Row> rows) throws Exception {
        for (String text : SIZES) {
            int size = Integer.parseInt(text);
            Map<Servers.Make, Figures> figures = new EnumMap<>(Servers.Make.class);
            double bytes;
            try (Servers template = new Servers(paths, Servers.Make.KRAFTD)) {
                template.fill(size);
                Path checkpoint = newest(template.metadata());
                bytes = Files.size(checkpoint) / 1e6;
                for (int i = 0; i < repeats; i++) {
                    for (Servers.Make make : Servers.Make.values()) {
                        System.err.printf("  %d partitions, run %d of %d: %s%n", size, i + 1,
                            repeats, make);
                        Figures found = figures.computeIfAbsent(make, it -> new Figures());
                        one(template, make, size, found);
                        if (make == Servers.Make.KRAFTD) {
                            bare(checkpoint, found);
                        }
                        System.err.println("    " + found.runs);
                    }
                }
            }
            table(rows, size, bytes, figures.get(Servers.Make.KRAFTD),
                figures.get(Servers.Make.JAVA));
        }
    }

    private void one(Servers template, Servers.Make make, int size, Figures figures)
            throws Exception {
        List<String> more = List.of("broker.session.timeout.ms=3600000",
            "metadata.log.max.record.bytes.between.snapshots=" + SNAPSHOT_BYTES);
        try (Servers servers = new Servers(template, make, size < BIG ? "1g" : "4g", more)) {
            long start = System.nanoTime();
            Process controller = servers.startController();
            try (Connection connection = servers.connect(controller)) {
                Servers.await("the controller is active", controller, 5,
                    () -> Requests.write(connection, 2) ? true : null);
                figures.add("wall", (System.nanoTime() - start) / 1e6);
                figures.add("cpu", Usage.of(controller).cpuMs());
                TimeUnit.SECONDS.sleep(2);
                Usage usage = Usage.of(controller);
                figures.add("peak", usage.peakMb());
                figures.add("after", usage.residentMb());
                try (Heartbeats heartbeats = new Heartbeats(servers.port)) {
                    heartbeats.silence(Heartbeats.FENCED);
                    double idle = idle(heartbeats);
                    figures.add("idle.p99", idle);
                    snapshot(servers, controller, connection, heartbeats, idle, figures);
                    fence(controller, connection, heartbeats, figures);
                }
                figures.add("peak.all", Usage.of(controller).peakMb());
            }
        }
    }

    private static double idle(Heartbeats heartbeats) throws Exception {
        // The first ones warm up the compilers, of the client too.
        TimeUnit.SECONDS.sleep(IDLE_SECONDS);
        long from = System.nanoTime();
        TimeUnit.SECONDS.sleep(IDLE_SECONDS);
        return Bench.quantile(heartbeats.between(from, System.nanoTime()), 0.99);
    }

    private static void snapshot(Servers servers, Process controller, Connection connection,
            Heartbeats heartbeats, double idle, Figures figures) throws Exception {
        Path dir = servers.metadata();
        Path before = newest(dir);
        Requests.createTopic(connection, "large", SNAPSHOT_PARTITIONS, 3);
        Servers.await("a snapshot begins", controller, 1,
            () -> count(dir, ".part") > 0 || !newest(dir).equals(before) ? true : null);
        double cpu = Usage.wholeMs(controller);
        long from = System.nanoTime();
        Servers.await("a snapshot is written", controller, 1,
            () -> newest(dir).equals(before) ? null : true);
        long to = System.nanoTime();
        figures.add("snapshot.cpu", Usage.wholeMs(controller) - cpu);
        figures.add("snapshot.wall", (to - from) / 1e6);
        double busy = Bench.quantile(heartbeats.between(from, to), 0.99);
        figures.add("busy.p99", busy);
        figures.add("busy/idle", busy / idle);
    }

    /** A broker asks to be fenced: its leaderships and places in ISRs go to others. */
    private static void fence(Process controller, Connection connection, Heartbeats heartbeats,
            Figures figures) throws Exception {
        TimeUnit.SECONDS.sleep(1);
        double cpu = Usage.wholeMs(controller);
        long from = System.nanoTime();
        Servers.await("the broker is fenced", controller, 1, () -> Boolean.TRUE.equals(
            Requests.heartbeat(connection, Heartbeats.FENCED, Heartbeats.FENCED, true))
            ? true : null);
        long to = System.nanoTime();
        // The first write behind it: everything that fencing wrote is committed then.
        Servers.await("writes go on", controller, 5,
            () -> Requests.write(connection, 3) ? true : null);
        figures.add("fence.wall", (System.nanoTime() - from) / 1e6);
        figures.add("fence.cpu", Usage.wholeMs(controller) - cpu);
        figures.add("fence.worst", Bench.quantile(heartbeats.between(from, to + 1), 1));
    }

    /** What it costs to read, sum up and decode the checkpoint and to do nothing with it. */
    private void bare(Path checkpoint, Figures figures) throws Exception {
        Process process = new ProcessBuilder(paths.generate().toString(), "read",
            checkpoint.toString()).redirectErrorStream(true).start();
        try (BufferedReader out =
                new BufferedReader(new InputStreamReader(process.getInputStream()))) {
            for (String line = out.readLine(); line != null; line = out.readLine()) {
                String[] words = line.split("\t");
                if (words[0].equals("decode")) {
                    figures.add("bare", Double.parseDouble(words[1]));
                }
            }
        }
        process.waitFor();
    }

    private static void table(List<Row> rows, int size, double bytes, Figures kraftd,
            Figures java) {
        double millions = size / 1e6;
        boolean full = size >= 1_000_000;
        String of = "scale." + name(size) + ".";
        Object[][] lines = {
            {"bare", "ms", number(300 * millions), ""},
            {"cpu", "ms", number(15 + 700 * millions), full ? "< Java / 50" : ""},
            {"wall", "ms", "cpu + fsyncs", ""},
            {"peak", "MB", number(12 + 66 * millions), full ? "< 250" : ""},
            {"after", "MB", number(10 + 64 * millions), full ? "< 120" : ""},
            {"snapshot.cpu", "ms", number(600 * millions), full ? "< 2000" : ""},
            {"snapshot.wall", "ms", "cpu + fsync", ""},
            {"idle.p99", "ms", "", ""},
            {"busy.p99", "ms", "2 x idle", ""},
            {"busy/idle", "times", "2", full ? "< 3" : ""},
            {"fence.cpu", "ms", number(200 * millions), ""},
            {"fence.wall", "ms", "cpu + fsyncs", ""},
            {"fence.worst", "ms", "fence.wall", ""},
            {"peak.all", "MB", "", ""},
        };
        rows.add(new Row(of + "checkpoint", "MB", number(134 * millions), bytes, bytes, ""));
        for (Object[] line : lines) {
            String measure = (String) line[0];
            rows.add(new Row(of + measure, (String) line[1], (String) line[2],
                kraftd.median(measure), java.median(measure), (String) line[3]));
        }
        // Linear growth is one number in all sizes.
        rows.add(new Row(of + "cpu / partition", "us", "0.7", kraftd.median("cpu") / size * 1e3,
            java.median("cpu") / size * 1e3, ""));
    }

    private static String number(double value) {
        return Long.toString(Math.round(value));
    }

    /** How a size is called in the rows. */
    static String name(int size) {
        return size >= 1_000_000 ? size / 1_000_000 + "M" : size / 1_000 + "k";
    }

    private static Path newest(Path dir) throws IOException {
        try (Stream<Path> all = Files.list(dir)) {
            return all.filter(path -> path.toString().endsWith(".checkpoint"))
                .max(java.util.Comparator.naturalOrder()).orElseThrow();
        }
    }

    private static long count(Path dir, String end) throws IOException {
        try (Stream<Path> all = Files.list(dir)) {
            return all.filter(path -> path.toString().endsWith(end)).count();
        }
    }
}

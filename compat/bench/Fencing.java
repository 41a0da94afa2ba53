package kraftd.bench;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * One of thirty brokers falls silent: how long after the end of its session everything that it led
 * and followed has changed, and is committed, as a replica of the metadata log sees it. Meanwhile
 * the others beat, one every 2 ms in turn, which is thirty times as often as they would.
 *
 * <p>Expected: a tenth of all partitions change, 1.5 us each with their records, their bytes and
 * the copies that are kept until they are committed; the replica is the load's own and shares the
 * machine. A heartbeat waits for a slice of 2,000 changes at most, and for its turn on a core.
 */
final class Fencing {
    private static final String[] SIZES =
        System.getProperty("fencing.scale").trim().split("\\s+");
    private static final long SESSION_MS = 9_000;
    private static final long PATIENCE_MS = 120_000;
    /** Between one that is silenced and the next. */
    private static final int STEP = 9;

    private final Servers.Paths paths;
    private final int rounds;

    Fencing(Servers.Paths paths, int rounds) {
        this.paths = paths;
        this.rounds = rounds;
    }

    void run(List<Row> rows) throws Exception {
        for (String text : SIZES) {
            int size = Integer.parseInt(text);
            Map<Servers.Make, Scale.Figures> figures = new EnumMap<>(Servers.Make.class);
            try (Servers template = new Servers(paths, Servers.Make.KRAFTD)) {
                template.fill(size);
                for (Servers.Make make : Servers.Make.values()) {
                    Scale.Figures found = new Scale.Figures();
                    figures.put(make, found);
                    if (Servers.MAKES.contains(make)) {
                        one(template, make, size, found);
                    }
                }
            }
            table(rows, size, figures.get(Servers.Make.KRAFTD), figures.get(Servers.Make.JAVA));
        }
    }

    private void one(Servers template, Servers.Make make, int size, Scale.Figures figures)
            throws Exception {
        List<String> more = List.of("broker.session.timeout.ms=" + SESSION_MS);
        try (Servers servers = new Servers(template, make, size < Scale.BIG ? "1g" : "4g", more)) {
            Process controller = servers.startController();
            try (Connection connection = servers.connect(controller)) {
                Servers.await("the controller is active", controller, 5,
                    () -> Requests.write(connection, 2) ? true : null);
                try (Heartbeats heartbeats = new Heartbeats(servers.port);
                        Observer observer = new Observer(servers.port)) {
                    for (int round = 0; round < rounds; round++) {
                        // What came before is over, and the compilers have worked.
                        TimeUnit.SECONDS.sleep(3);
                        fence(controller, heartbeats, observer, Heartbeats.FENCED - STEP * round,
                            figures);
                    }
                }
                figures.add("peak", Usage.of(controller).peakMb());
                System.err.println("  " + size + ", " + make + ": " + figures);
            }
        }
    }

    private static void fence(Process controller, Heartbeats heartbeats, Observer observer,
            int broker, Scale.Figures figures) throws Exception {
        observer.forget();
        long end = heartbeats.silence(broker) + TimeUnit.MILLISECONDS.toNanos(SESSION_MS);
        TimeUnit.NANOSECONDS.sleep(end - System.nanoTime());
        double cpu = Usage.of(controller).cpuMs();
        Observer.Fenced fenced = observer.await(broker, PATIENCE_MS);
        // Heartbeats that were under way end first.
        TimeUnit.MILLISECONDS.sleep(100);
        figures.add("cpu", Usage.of(controller).cpuMs() - cpu);
        figures.add("changes", fenced.changes());
        figures.add("wall", (fenced.at() - end) / 1e6);
        double[] others = heartbeats.between(end, fenced.at());
        figures.add("others.worst", Bench.quantile(others, 1));
        figures.add("others.p99", Bench.quantile(others, 0.99));
    }

    private static void table(List<Row> rows, int size, Scale.Figures kraftd, Scale.Figures java) {
        double millions = size / 1e6;
        Object[][] lines = {
            {"changes", "partitions", Math.round(100_000 * millions), ""},
            {"wall", "ms", "cpu + fsyncs", "< Java / 10"},
            {"others.worst", "ms", "10", "< 100"},
            {"others.p99", "ms", "5", ""},
            {"cpu", "ms", Math.round(15 + 150 * millions), ""},
            {"peak", "MB", Math.round(20 + 90 * millions), ""},
        };
        for (Object[] line : lines) {
            String measure = (String) line[0];
            rows.add(new Row("fencing." + Scale.name(size) + "." + measure, (String) line[1],
                line[2].toString(), kraftd.median(measure), java.median(measure),
                (String) line[3]));
        }
    }
}

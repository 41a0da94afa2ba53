package kraftd.bench;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Three voters lose their leader again and again while a client writes: how long nobody takes a
 * write.
 *
 * <p>{@code kill}: SIGKILL, from the signal to the next write that is taken. {@code stop}: SIGTERM,
 * from the signal to the first write that the successor takes; {@code stop.gap}: the same from the
 * last write that the old leader took. {@code silent}: SIGSTOP, its connections stay open.
 *
 * <p>Expected of kraftd: the system closes a killed process' connections within 1 ms; a pre-vote, a
 * vote and the first batch are three trips with two fsyncs of a small file and one of the log in a
 * row, some ms with a client that takes most of a core: 10 ms. A stop is one trip more, with no
 * waiting for the end of a connection. Silence is noticed by the fetch timer alone, 2 s by default.
 */
final class Failover {
    private static final int ROUNDS = Integer.getInteger("rounds", 20);
    private static final String SIZES = System.getProperty("failover.scale", "").trim();
    /** Writes before each event: the client has its connections, and the compilers have worked. */
    private static final int BEFORE = 200;

    private enum Way {
        KILL, STOP, SILENT
    }

    private final Servers.Paths paths;

    Failover(Servers.Paths paths) {
        this.paths = paths;
    }

    /** All rounds of one make: ms. */
    private static final class Figures {
        final Map<Way, List<Double>> down = new EnumMap<>(Way.class);
        final List<Double> gaps = new ArrayList<>();

        double[] of(Way way) {
            return array(down.getOrDefault(way, List.of()));
        }

        static double[] array(List<Double> values) {
            return values.isEmpty() ? new double[] {Double.NaN}
                : values.stream().mapToDouble(Double::doubleValue).toArray();
        }
    }

    void run(List<Row> rows) throws Exception {
        for (String text : SIZES.isEmpty() ? new String[] {"0"} : SIZES.split("\\s+")) {
            int partitions = Integer.parseInt(text);
            Map<Servers.Make, Figures> figures = new EnumMap<>(Servers.Make.class);
            for (Servers.Make make : Servers.MAKES) {
                figures.put(make, rounds(make, partitions));
            }
            table(rows, partitions == 0 ? "failover." : "failover." + partitions / 1_000 + "k.",
                figures.getOrDefault(Servers.Make.KRAFTD, new Figures()),
                figures.getOrDefault(Servers.Make.JAVA, new Figures()));
        }
    }

    private Figures rounds(Servers.Make make, int partitions) throws Exception {
        Figures figures = new Figures();
        try (Quorum quorum = new Quorum(paths, make, partitions,
                "broker.session.timeout.ms=3600000")) {
            quorum.startAll();
            for (Way way : Way.values()) {
                // Silence is the same at every size, and takes seconds a round.
                int count = way != Way.SILENT ? ROUNDS : partitions == 0 ? (ROUNDS + 1) / 2 : 0;
                for (int i = 0; i < count; i++) {
                    one(quorum, way, figures);
                }
                System.err.printf("  %s, %d partitions, %s: %s%n", make, partitions, way,
                    figures.down.get(way));
            }
        }
        return figures;
    }

    private static void one(Quorum quorum, Way way, Figures figures) throws Exception {
        int leader;
        try (Writer writer = new Writer(quorum.ports())) {
            writer.awaitCount(BEFORE);
            leader = writer.last().node();
            long at = hit(quorum, writer, way, leader);
            Writer.Taken next = writer.awaitOther(leader);
            figures.down.computeIfAbsent(way, it -> new ArrayList<>())
                .add((next.at() - at) / 1e6);
            if (way == Way.STOP) {
                figures.gaps.add((next.at() - writer.lastOf(leader)) / 1e6);
            }
        }
        if (way == Way.SILENT) {
            quorum.signal(leader, "CONT");
        } else {
            if (!quorum.process(leader).waitFor(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("node " + (leader + 1) + " does not end");
            }
            quorum.start(leader);
        }
        quorum.awaitCaughtUp();
    }

    /** Returns when the signal was sent. */
    private static long hit(Quorum quorum, Writer writer, Way way, int leader) throws Exception {
        switch (way) {
            case KILL -> {
                long at = System.nanoTime();
                quorum.process(leader).destroyForcibly();
                return at;
            }
            case STOP -> {
                long at = System.nanoTime();
                quorum.process(leader).destroy();
                return at;
            }
            default -> {
                // The program that sends it takes some ms: the client must not hang on a write.
                writer.leaveOut(leader);
                quorum.signal(leader, "STOP");
                return System.nanoTime();
            }
        }
    }

    private static void table(List<Row> rows, String of, Figures kraftd, Figures java) {
        double[] ours = kraftd.of(Way.KILL);
        double[] theirs = java.of(Way.KILL);
        rows.add(row(of + "kill.p50", "10", ours, theirs, 0.5, "< 100"));
        rows.add(row(of + "kill.p50 again", "", ours, theirs, 0.5, "< Java / 20"));
        rows.add(row(of + "kill.max", "", ours, theirs, 1, ""));
        ours = kraftd.of(Way.STOP);
        theirs = java.of(Way.STOP);
        rows.add(row(of + "stop.p50", "10", ours, theirs, 0.5, "< 20"));
        rows.add(row(of + "stop.max", "", ours, theirs, 1, ""));
        ours = Figures.array(kraftd.gaps);
        theirs = Figures.array(java.gaps);
        rows.add(row(of + "stop.gap.p50", "", ours, theirs, 0.5, ""));
        rows.add(row(of + "stop.gap.max", "", ours, theirs, 1, ""));
        ours = kraftd.of(Way.SILENT);
        theirs = java.of(Way.SILENT);
        if (!Double.isNaN(ours[0]) || !Double.isNaN(theirs[0])) {
            rows.add(row(of + "silent.p50", "2050", ours, theirs, 0.5, "< Java / 0.8"));
            rows.add(row(of + "silent.max", "", ours, theirs, 1, ""));
        }
    }

    private static Row row(String measure, String expected, double[] kraftd, double[] java,
            double q, String target) {
        return new Row(measure, "ms", expected, Bench.quantile(kraftd, q),
            Bench.quantile(java, q), target);
    }
}

package kraftd.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * CreateTopics among thirty brokers, on one voter and on three: one client after another topic, 16
 * and 64 clients, and one client with a hundred topics of ten partitions in each request.
 *
 * <p>Expected on one voter: one client waits for an fsync and 0.2 ms a topic, 1,500 topics a second.
 * 64 clients share the fsyncs: 25 us of CPU a topic, and the clients, who share the machine and need
 * twice that, are the limit. A batch is 1,000 partitions of 90 bytes, 1 us each, and an answer of
 * 3,500 configurations, 0.1 us each: 2 ms with its fsync. Three voters write everything three times,
 * on the same machine.
 */
final class Creates {
    private static final int SECONDS = Integer.getInteger("seconds", 10);
    private static final int BROKERS = 30;

    private final Servers.Paths paths;
    private final AtomicInteger next = new AtomicInteger();

    Creates(Servers.Paths paths) {
        this.paths = paths;
    }

    /** A way of asking. */
    private record Load(String name, int connections, int topics, int partitions, int replicas,
            String expected, String target) {}

    private static final List<Load> LOADS = List.of(
        new Load("1", 1, 1, 1, 1, "1500", "> Java * 10"),
        new Load("16", 16, 1, 1, 1, "8000", "> Java * 10"),
        new Load("64", 64, 1, 1, 3, "10000", "> Java * 10"),
        new Load("batches", 1, 100, 10, 3, "25000", "> Java * 5"));

    /** What one make did; rate in topics a second, or partitions for batches. */
    private record Figures(double rate, double p50, double p99, double cpuUs) {
        static final Figures NONE = new Figures(Double.NaN, Double.NaN, Double.NaN, Double.NaN);
    }

    void run(List<Row> rows) throws Exception {
        for (int voters : new int[] {1, 3}) {
            List<Figures> kraftd = one(Servers.Make.KRAFTD, voters);
            List<Figures> java = one(Servers.Make.JAVA, voters);
            for (int i = 0; i < LOADS.size(); i++) {
                Load load = LOADS.get(i);
                boolean batches = load.topics > 1;
                String unit = batches ? "partition" : "topic";
                String of = "creates." + voters + (voters == 1 ? " voter." : " voters.")
                    + load.name + ".";
                Figures ours = kraftd.get(i);
                Figures theirs = java.get(i);
                rows.add(new Row(of + "rate", unit + "s/s", voters == 1 ? load.expected : "",
                    ours.rate, theirs.rate, load.target));
                rows.add(new Row(of + "p50", "ms", "", ours.p50, theirs.p50, ""));
                rows.add(new Row(of + "p99", "ms", "", ours.p99, theirs.p99, ""));
                rows.add(new Row(of + "cpu", "us/" + unit, "", ours.cpuUs, theirs.cpuUs,
                    "< Java / 10"));
            }
        }
    }

    private List<Figures> one(Servers.Make make, int voters) throws Exception {
        List<Figures> all = new ArrayList<>();
        if (!Servers.MAKES.contains(make)) {
            LOADS.forEach(load -> all.add(Figures.NONE));
            return all;
        }
        String session = "broker.session.timeout.ms=3600000";
        try (Quorum quorum = new Quorum(paths, make, voters, 0, session)) {
            quorum.startAll();
            int port = quorum.ports()[quorum.leader()];
            try (Connection connection = new Connection(port)) {
                Servers.await("the controller is active", quorum.running().get(0), 5,
                    () -> Requests.write(connection, 2) ? true : null);
                for (int id = Requests.BROKER; id < Requests.BROKER + BROKERS; id++) {
                    Requests.addBroker(connection, Servers.CLUSTER, id);
                }
            }
            // The compilers work first, of the client too.
            create(quorum, port, LOADS.get(1));
            for (Load load : LOADS) {
                Figures figures = create(quorum, port, load);
                System.err.println("  " + voters + ", " + make + ", " + load.name + ": " + figures);
                all.add(figures);
            }
        }
        return all;
    }

    private Figures create(Quorum quorum, int port, Load load) throws Exception {
        ConcurrentLinkedQueue<Double> took = new ConcurrentLinkedQueue<>();
        double cpu = quorum.cpuMs();
        long start = System.nanoTime();
        long end = start + TimeUnit.SECONDS.toNanos(SECONDS);
        Clients.together(load.connections, client -> {
            try (Connection connection = new Connection(port)) {
                while (System.nanoTime() < end) {
                    String name = "topic-" + next.getAndIncrement();
                    long sent = System.nanoTime();
                    Requests.createTopics(connection, name, load.topics, load.partitions,
                        load.replicas);
                    took.add((System.nanoTime() - sent) / 1e6);
                }
            }
        });
        double seconds = (System.nanoTime() - start) / 1e9;
        cpu = quorum.cpuMs() - cpu;
        double[] all = took.stream().mapToDouble(Double::doubleValue).toArray();
        double units = all.length * (double) load.topics
            * (load.topics > 1 ? load.partitions : 1);
        return new Figures(units / seconds, Bench.quantile(all, 0.5), Bench.quantile(all, 0.99),
            cpu * 1e3 / units);
    }
}

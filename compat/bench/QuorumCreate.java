package kraftd.bench;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Many clients create topics through three voters, each client one topic after another.
 *
 * <p>Expected: 64 requests wait for one fsync of the leader and one of a follower, some 0.5 ms each,
 * and 0.1 ms of CPU of each side a topic: the client, which shares the machine, is the limit at
 * about 10,000 topics a second. Of the servers a topic costs some 50 us: 20 us for the leader's
 * frames and records, the rest for the followers' and for what one batch shares. Either the rate or
 * the CPU has to reach its target: the client is part of the first.
 */
final class QuorumCreate {
    private static final int TOPICS = Integer.getInteger("topics", 10_000);
    private static final int CONNECTIONS = 64;
    private static final int BROKERS = 3;

    private final Servers.Paths paths;

    QuorumCreate(Servers.Paths paths) {
        this.paths = paths;
    }

    /** What one make did. */
    private record Figures(double rate, double p50, double p99, double cpuUs) {}

    void run(List<Row> rows) throws Exception {
        Figures kraftd = one(Servers.Make.KRAFTD);
        Figures java = one(Servers.Make.JAVA);
        String of = "quorum-create.";
        rows.add(new Row(of + "rate", "topics/s", "10000", kraftd.rate, java.rate, "> Java * 5"));
        rows.add(new Row(of + "p50", "ms", "", kraftd.p50, java.p50, ""));
        rows.add(new Row(of + "p99", "ms", "", kraftd.p99, java.p99, ""));
        rows.add(new Row(of + "cpu", "us/topic", "50", kraftd.cpuUs, java.cpuUs, "< Java / 10"));
    }

    private Figures one(Servers.Make make) throws Exception {
        if (!Servers.MAKES.contains(make)) {
            return new Figures(Double.NaN, Double.NaN, Double.NaN, Double.NaN);
        }
        try (Quorum quorum = new Quorum(paths, make, 0, "broker.session.timeout.ms=3600000")) {
            quorum.startAll();
            int port = quorum.ports()[quorum.leader()];
            try (Connection connection = new Connection(port)) {
                for (int id = Requests.BROKER; id < Requests.BROKER + BROKERS; id++) {
                    Requests.addBroker(connection, Servers.CLUSTER, id);
                }
            }
            // The compilers work first, of the client too.
            create(port, "warm-", TOPICS / 2);
            double cpu = quorum.cpuMs();
            long start = System.nanoTime();
            double[] took = create(port, "topic-", TOPICS);
            double seconds = (System.nanoTime() - start) / 1e9;
            cpu = quorum.cpuMs() - cpu;
            Figures figures = new Figures(TOPICS / seconds, Bench.quantile(took, 0.5),
                Bench.quantile(took, 0.99), cpu * 1e3 / TOPICS);
            System.err.println("  " + make + ": " + figures);
            return figures;
        }
    }

    /** Creates so many topics of one partition and gives how long each took, in ms. */
    private static double[] create(int port, String prefix, int count) throws Exception {
        AtomicInteger next = new AtomicInteger();
        double[] took = new double[count];
        Clients.together(CONNECTIONS, client -> {
            try (Connection connection = new Connection(port)) {
                for (int n = next.getAndIncrement(); n < count; n = next.getAndIncrement()) {
                    long start = System.nanoTime();
                    Requests.createTopic(connection, prefix + n, 1, BROKERS);
                    took[n] = (System.nanoTime() - start) / 1e6;
                }
            }
        });
        return took;
    }
}

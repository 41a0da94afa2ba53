package kraftd.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A thousand brokers, each with a connection of its own, that do nothing but beat: at the default
 * rate (every 2 s, so 500 a second), and then as fast as a few clients can.
 *
 * <p>Expected: at the default rate each heartbeat finds every thread asleep. Four changes of thread,
 * a read and a write of a socket: 15 to 20 us, of which the decision is less than one. Many at a
 * time share the changes of thread: 6 us, and the clients, who share the machine, are the limit.
 */
final class ManyBrokers {
    private static final int BROKERS = 1_000;
    private static final int SECONDS = Integer.getInteger("seconds", 10);
    private static final long PERIOD = TimeUnit.SECONDS.toNanos(2);
    /** Each has its share of the connections. */
    private static final int CLIENTS = 8;

    private final Servers.Paths paths;

    ManyBrokers(Servers.Paths paths) {
        this.paths = paths;
    }

    /** One load of one make. */
    private record Figures(double rate, double p50, double p99, double cpuUs) {
        static final Figures NONE = new Figures(Double.NaN, Double.NaN, Double.NaN, Double.NaN);
    }

    void run(List<Row> rows) throws Exception {
        Figures[] kraftd = one(Servers.Make.KRAFTD);
        Figures[] java = one(Servers.Make.JAVA);
        String[] names = {"default", "flood"};
        String[] expected = {"18", "6"};
        for (int i = 0; i < names.length; i++) {
            String of = "heartbeats." + names[i] + ".";
            Figures ours = kraftd[i];
            Figures theirs = java[i];
            rows.add(new Row(of + "rate", "1/s", i == 0 ? "500" : "", ours.rate, theirs.rate, ""));
            rows.add(new Row(of + "p50", "ms", "", ours.p50, theirs.p50, ""));
            rows.add(new Row(of + "p99", "ms", "", ours.p99, theirs.p99, ""));
            rows.add(new Row(of + "cpu", "us", expected[i], ours.cpuUs, theirs.cpuUs,
                "< Java / 10"));
        }
    }

    private Figures[] one(Servers.Make make) throws Exception {
        if (!Servers.MAKES.contains(make)) {
            return new Figures[] {Figures.NONE, Figures.NONE};
        }
        try (Servers servers = new Servers(paths, make, "broker.session.timeout.ms=3600000")) {
            Process controller = servers.startController();
            try (Connection connection = servers.connect(controller)) {
                Servers.await("the controller is active", controller, 5,
                    () -> Requests.write(connection, 2) ? true : null);
            }
            Connection[] connections = new Connection[BROKERS];
            long[] epochs = new long[BROKERS];
            AtomicInteger next = new AtomicInteger();
            Clients.together(CLIENTS, client -> {
                for (int n = next.getAndIncrement(); n < BROKERS; n = next.getAndIncrement()) {
                    connections[n] = new Connection(servers.port);
                    epochs[n] = Requests.addBroker(connections[n], Servers.CLUSTER, n + 1);
                }
            });
            Figures[] figures = new Figures[2];
            for (int i = 0; i < figures.length; i++) {
                long period = i == 0 ? PERIOD : 0;
                // The compilers work first.
                beat(controller, connections, epochs, period);
                figures[i] = beat(controller, connections, epochs, period);
                System.err.println("  " + make + ": " + figures[i]);
            }
            for (Connection connection : connections) {
                connection.close();
            }
            return figures;
        }
    }

    /** Every broker beats each {@code period} ns, or as soon as its client comes round to it. */
    private static Figures beat(Process controller, Connection[] connections, long[] epochs,
            long period) throws Exception {
        int share = BROKERS / CLIENTS;
        List<List<Double>> took = new ArrayList<>();
        for (int client = 0; client < CLIENTS; client++) {
            took.add(new ArrayList<>());
        }
        double cpu = Usage.of(controller).cpuMs();
        long start = System.nanoTime();
        long end = start + TimeUnit.SECONDS.toNanos(SECONDS);
        Clients.together(CLIENTS, client -> {
            List<Double> mine = took.get(client);
            long due = start + period / BROKERS * client;
            for (int i = 0; ; i++, due += period / share) {
                long now = System.nanoTime();
                if (due > now) {
                    TimeUnit.NANOSECONDS.sleep(due - now);
                    now = System.nanoTime();
                } else if (period > 0) {
                    // It waited for the one before.
                    now = due;
                }
                if (System.nanoTime() >= end) {
                    return;
                }
                int broker = client * share + i % share;
                Requests.heartbeat(connections[broker], broker + 1, epochs[broker], false);
                mine.add((System.nanoTime() - now) / 1e6);
            }
        });
        double seconds = (System.nanoTime() - start) / 1e9;
        cpu = Usage.of(controller).cpuMs() - cpu;
        double[] all = took.stream().flatMap(List::stream).mapToDouble(Double::doubleValue)
            .toArray();
        return new Figures(all.length / seconds, Bench.quantile(all, 0.5),
            Bench.quantile(all, 0.99), cpu * 1e3 / all.length);
    }
}

package kraftd.bench;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** Heartbeats of the generated brokers, one after the other on one connection, steadily. */
final class Heartbeats implements AutoCloseable {
    /** The generator's brokers; the epoch of each is its id. */
    private static final int FIRST = 101;
    private static final int BROKERS = 30;
    /** The last of them: it does not beat where that is said. */
    static final int FENCED = FIRST + BROKERS - 1;
    private static final long PAUSE = TimeUnit.MILLISECONDS.toNanos(2);

    /** When one was sent and how long it took, in ns. */
    private record Beat(long at, long took) {}

    private final List<Beat> beats = new ArrayList<>();
    /** Those that beat, each with the moment of its last beat. */
    private final Map<Integer, Long> alive = new ConcurrentHashMap<>();
    private final Connection connection;
    private final Thread thread = new Thread(this::run, "heartbeats");
    private volatile boolean stop;
    private volatile Exception failure;

    Heartbeats(int port) throws IOException {
        connection = new Connection(port);
        for (int broker = FIRST; broker <= FENCED; broker++) {
            alive.put(broker, 0L);
        }
        thread.start();
    }

    /** This one is not heard of any more; gives when it was for the last time. */
    synchronized long silence(int broker) {
        return alive.remove(broker);
    }

    private void run() {
        try {
            for (int i = 0; !stop; i++) {
                int broker = FIRST + i % BROKERS;
                if (!note(broker)) {
                    continue;
                }
                long start = System.nanoTime();
                Requests.heartbeat(connection, broker, broker, false);
                long took = System.nanoTime() - start;
                synchronized (beats) {
                    beats.add(new Beat(start, took));
                }
                TimeUnit.NANOSECONDS.sleep(PAUSE - Math.min(took, PAUSE));
            }
        } catch (IOException | InterruptedException | RuntimeException e) {
            failure = e;
        }
    }

    private synchronized boolean note(int broker) {
        return alive.replace(broker, System.nanoTime()) != null;
    }

    /**
     * The latencies in ms of those that were sent or due between two moments. One that took longer
     * than the pause counts also for those that waited for it: {@code n} pauses late, they would
     * have taken {@code n} pauses less.
     */
    double[] between(long from, long to) {
        if (failure != null) {
            throw new IllegalStateException("the heartbeats ended", failure);
        }
        List<Double> found = new ArrayList<>();
        synchronized (beats) {
            for (Beat beat : beats) {
                long at = beat.at();
                for (long took = beat.took(); took > 0; took -= PAUSE, at += PAUSE) {
                    if (at >= from && at < to) {
                        found.add(took / 1e6);
                    }
                }
            }
        }
        if (found.isEmpty()) {
            return new double[] {Double.NaN};
        }
        return found.stream().mapToDouble(Double::doubleValue).toArray();
    }

    @Override
    public void close() throws Exception {
        stop = true;
        thread.join();
        connection.close();
    }
}

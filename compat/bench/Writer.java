package kraftd.bench;

import java.io.IOException;
import java.util.concurrent.TimeUnit;

/**
 * A client that writes one configuration after another and asks every node in turn until one takes
 * it: at once and for ever, without a pause.
 */
final class Writer implements AutoCloseable {
    /** Longer than any node thinks about a write; one that is frozen is left out. */
    private static final int PATIENCE_MS = 30_000;

    /** A write that was taken: by whom, when that was known, and how many there were before. */
    record Taken(int node, long at, int count) {}

    private final int[] ports;
    private final Connection[] connections;
    private final Thread thread = new Thread(this::run, "writer");
    private final long[] lastOf;
    private Taken last = new Taken(-1, 0, 0);
    private volatile boolean stop;
    private volatile int frozen = -1;
    private volatile int asking = -1;

    Writer(int[] ports) {
        this.ports = ports;
        connections = new Connection[ports.length];
        lastOf = new long[ports.length];
        thread.start();
    }

    /** When this returns the node is asked no more: it would not answer. */
    void leaveOut(int node) {
        frozen = node;
        while (asking == node) {
            Thread.onSpinWait();
        }
    }

    private void run() {
        int node = 0;
        for (int value = 0; !stop; value++) {
            asking = node;
            boolean taken = node != frozen && write(node, 1 + value % 7);
            asking = -1;
            if (taken) {
                took(node);
            } else {
                node = (node + 1) % ports.length;
            }
        }
    }

    private boolean write(int node, int value) {
        try {
            if (connections[node] == null) {
                connections[node] = new Connection(ports[node], PATIENCE_MS);
            }
            return Requests.write(connections[node], value);
        } catch (IOException e) {
            drop(node);
            return false;
        }
    }

    private void drop(int node) {
        Connection connection = connections[node];
        connections[node] = null;
        try {
            if (connection != null) {
                connection.close();
            }
        } catch (IOException e) {
            // It is given up anyway.
        }
    }

    private synchronized void took(int node) {
        last = new Taken(node, System.nanoTime(), last.count() + 1);
        lastOf[node] = last.at();
        notifyAll();
    }

    synchronized Taken last() {
        return last;
    }

    /** When this node took its last write. */
    synchronized long lastOf(int node) {
        return lastOf[node];
    }

    /** Waits until the client has written this often. */
    synchronized void awaitCount(int count) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (last.count() < count) {
            waitUntil(end);
        }
    }

    /** Waits for the first write that another node takes. */
    synchronized Taken awaitOther(int node) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (last.node() == node) {
            waitUntil(end);
        }
        return last;
    }

    private void waitUntil(long end) throws InterruptedException {
        long left = end - System.nanoTime();
        if (left <= 0) {
            throw new IllegalStateException("nobody took a write for 60 s");
        }
        TimeUnit.NANOSECONDS.timedWait(this, left);
    }

    @Override
    public void close() throws InterruptedException {
        stop = true;
        thread.join();
        for (int node = 0; node < connections.length; node++) {
            drop(node);
        }
    }
}

package kraftd.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Clients that do the same at the same time. */
final class Clients {
    private Clients() {
    }

    /** What one of them does. */
    interface Work {
        void run(int client) throws Exception;
    }

    /** Runs so many clients, each in a thread, until all are done; throws what one of them threw. */
    static void together(int count, Work work) throws Exception {
        ConcurrentLinkedQueue<Exception> failures = new ConcurrentLinkedQueue<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int client = i;
            threads.add(new Thread(() -> {
                try {
                    work.run(client);
                } catch (Exception e) {
                    failures.add(e);
                }
            }, "client-" + i));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        if (!failures.isEmpty()) {
            throw failures.peek();
        }
    }
}

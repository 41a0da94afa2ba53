package kraftd.compat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TopicExistsException;

/**
 * Two clients that work all the time, trying each request until it is acknowledged: one creates
 * topics and sets a config of each through a broker, the other sets another config of each straight
 * at the controllers. Keeps what was acknowledged, how often they had to try again, and every error
 * that trying again does not help against.
 */
final class Load implements AutoCloseable {
    private final long pauseMs;
    private final List<Client> clients;
    private final Map<String, Integer> retries = new TreeMap<>();
    private final List<String> failures = new ArrayList<>();
    /** Created and acknowledged, in this order. */
    private final BlockingQueue<String> created = new LinkedBlockingQueue<>();
    private volatile boolean stopping;

    Load(String broker, String controllers, long pauseMs) {
        this.pauseMs = pauseMs;
        clients = List.of(new Client("bootstrap.servers", broker, this::create),
            new Client("bootstrap.controllers", controllers, this::change));
        clients.forEach(client -> client.thread.start());
    }

    /** One thread with an admin client of its own. */
    private static final class Client {
        final Admin admin;
        final Thread thread;
        final List<String> acknowledged = Collections.synchronizedList(new ArrayList<>());
        volatile long lastMs = System.currentTimeMillis();
        volatile long longestMs;

        Client(String kind, String addresses, Consumer<Client> work) {
            Properties to = new Properties();
            to.put(kind, addresses);
            to.put("default.api.timeout.ms", "6000");
            to.put("request.timeout.ms", "2000");
            to.put("socket.connection.setup.timeout.ms", "1000");
            to.put("socket.connection.setup.timeout.max.ms", "2000");
            to.put("reconnect.backoff.max.ms", "200");
            // Else, while no node can be reached, the client closes what it has just opened, over
            // and over: each of its waiting calls begins from the bootstrap list again.
            to.put("metadata.recovery.strategy", "none");
            // A client that asked who leads while nobody did does not ask again before this.
            to.put("metadata.max.age.ms", "1000");
            admin = Admin.create(to);
            thread = new Thread(() -> work.accept(this), "load-" + kind);
            thread.setDaemon(true);
        }

        void acknowledged(String what) {
            long now = System.currentTimeMillis();
            longestMs = Math.max(longestMs, now - lastMs);
            lastMs = now;
            acknowledged.add(what);
        }
    }

    private void create(Client client) {
        for (int i = 1; !stopping; i++) {
            String name = "t" + i;
            NewTopic topic = new NewTopic(name, Optional.of(1), Optional.of((short) 1));
            boolean isThere = acknowledged(client, "topic " + name,
                () -> client.admin.createTopics(List.of(topic)).all().get());
            if (isThere) {
                created.add(name);
                set(client, name, "retention.ms", String.valueOf(1_000_000 + i));
            }
        }
    }

    private void change(Client client) {
        for (int i = 1; !stopping; i++) {
            try {
                set(client, created.take(), "flush.ms", String.valueOf(1_000_000 + i));
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private void set(Client client, String topic, String key, String value) {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        AlterConfigOp op = new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET);
        acknowledged(client, "config " + topic + " " + key + " " + value,
            () -> client.admin.incrementalAlterConfigs(Map.of(resource, List.of(op))).all().get());
    }

    private boolean acknowledged(Client client, String what, Callable<?> request) {
        while (!stopping) {
            try {
                Thread.sleep(pauseMs);
                request.call();
            } catch (ExecutionException e) {
                Throwable cause = e.getCause();
                if (cause instanceof RetriableException) {
                    count(cause);
                    continue;
                }
                // An attempt before, of ours or of the client's own, was made after all.
                if (!(cause instanceof TopicExistsException)) {
                    failed(what + ": " + cause);
                    return false;
                }
            } catch (Exception e) {
                failed(what + ": " + e);
                return false;
            }
            client.acknowledged(what);
            return true;
        }
        return false;
    }

    private synchronized void count(Throwable cause) {
        if (!stopping) {
            retries.merge(cause.getClass().getSimpleName(), 1, Integer::sum);
        }
    }

    private synchronized void failed(String text) {
        if (!stopping) {
            failures.add(text.replace('\n', ' '));
        }
    }

    /** Says how much each client has had acknowledged so far, retries by their reason, and every failure. */
    synchronized void count(Consumer<String> say) {
        clients.forEach(client -> say.accept("count " + client.acknowledged.size()));
        retries.forEach((name, times) -> say.accept("retry " + name + " " + times));
        failures.forEach(text -> say.accept("failure " + text));
    }

    /** Says every acknowledged topic and config, then retries, failures and the longest waits. */
    void stop(Consumer<String> say) throws InterruptedException {
        close();
        for (Client client : clients) {
            client.thread.join();
            client.acknowledged.forEach(say);
            say.accept("longest " + client.longestMs);
        }
        synchronized (this) {
            retries.forEach((name, times) -> say.accept("retry " + name + " " + times));
            failures.forEach(text -> say.accept("failure " + text));
        }
    }

    @Override
    public void close() {
        stopping = true;
        for (Client client : clients) {
            client.admin.close(Duration.ZERO);
            client.thread.interrupt();
        }
    }
}

package kraftd.compat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.RaftVoterEndpoint;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;

/** Controllers 1, 2 and 3, and later 4, without brokers: see fixtures/README.md for the order. */
final class VoterLife {
    private final Servers servers;
    private final Recording recording;
    private final Map<Integer, Integer> ports = new HashMap<>();
    private final Map<Integer, Proxy> proxies = new HashMap<>();
    private final Map<Integer, Process> running = new HashMap<>();
    private final Map<Integer, Path> configs = new HashMap<>();
    private final Set<Integer> again = new HashSet<>();
    private int starts;

    VoterLife(Servers servers, Recording recording) throws Exception {
        this.servers = servers;
        this.recording = recording;
        for (int id = 1; id <= 4; id++) {
            ports.put(id, Servers.freePort());
            proxies.put(id, new Proxy(recording, id, ports.get(id)));
        }
    }

    void live() throws Exception {
        recording.step("controllers 1, 2 and 3 start and elect");
        StringBuilder voters = new StringBuilder();
        for (int id = 1; id <= 3; id++) {
            voters.append(id == 1 ? "" : ",").append(id).append("@localhost:")
                .append(proxies.get(id).port()).append(':').append(Uuid.randomUuid());
        }
        for (int id = 1; id <= 3; id++) {
            servers.format(config(id), "--initial-controllers", voters.toString());
        }
        for (int id = 1; id <= 3; id++) {
            start(id);
        }
        awaitStarted(1, 2, 3);
        recording.step("the quorum is described, and configurations change");
        int leader = leader();
        change();
        leader = lost(leader);
        leader = moved(leader);
        joins();
        recording.step("all stop");
        for (Process process : running.values()) {
            process.destroy();
        }
        for (Process process : running.values()) {
            Servers.stop(process);
        }
        for (Proxy proxy : proxies.values()) {
            proxy.close();
        }
    }

    private String bootstrap() {
        return "localhost:" + proxies.get(1).port() + ",localhost:" + proxies.get(2).port()
            + ",localhost:" + proxies.get(3).port();
    }

    private Path config(int id) throws Exception {
        return servers.config("controller-" + id + "-" + starts++, "process.roles=controller",
            "node.id=" + id, "controller.listener.names=CONTROLLER",
            "listeners=CONTROLLER://localhost:" + ports.get(id),
            "advertised.listeners=CONTROLLER://localhost:" + proxies.get(id).port(),
            "controller.quorum.bootstrap.servers=" + bootstrap(),
            // From 4.3 on: a snapshot comes in several parts.
            "controller.quorum.fetch.snapshot.max.bytes=500",
            "log.dirs=" + servers.dir.resolve("controller-" + id),
            "metadata.max.idle.interval.ms=10000",
            "metadata.log.max.record.bytes.between.snapshots=500",
            "metadata.max.retention.ms=1");
    }

    private void start(int id) throws Exception {
        Path config = config(id);
        configs.put(id, config);
        running.put(id, servers.start(config));
    }

    private void again(int id) throws Exception {
        start(id);
        awaitStarted(id);
        again.add(id);
    }

    private void awaitStarted(int... ids) throws Exception {
        for (int id : ids) {
            servers.awaitLog(configs.get(id), "Kafka Server started");
        }
    }

    private Admin admin() {
        return admin(bootstrap());
    }

    private Admin admin(int id) {
        return admin("localhost:" + proxies.get(id).port());
    }

    private static Admin admin(String addresses) {
        Properties to = new Properties();
        to.put("bootstrap.controllers", addresses);
        to.put("request.timeout.ms", "5000");
        to.put("default.api.timeout.ms", "10000");
        return Admin.create(to);
    }

    /** Asks until somebody leads. An admin client keeps to whom it knows: each try has its own. */
    private int leader() throws Exception {
        int[] leader = {-1};
        Servers.await("a leader", () -> {
            try (Admin admin = admin()) {
                leader[0] = admin.describeMetadataQuorum().quorumInfo()
                    .get(60, TimeUnit.SECONDS).leaderId();
            } catch (Exception e) {
                return false;
            }
            return leader[0] >= 0;
        });
        return leader[0];
    }

    /** Enough for two snapshots. */
    private void change() throws Exception {
        try (Admin admin = admin()) {
            for (int i = 1; i <= 10; i++) {
                set(admin, i).get(60, TimeUnit.SECONDS);
            }
        }
    }

    private static KafkaFuture<Void> set(Admin admin, int threads) {
        AlterConfigOp op = new AlterConfigOp(new ConfigEntry("log.cleaner.threads", "" + threads),
            AlterConfigOp.OpType.SET);
        ConfigResource brokers = new ConfigResource(ConfigResource.Type.BROKER, "");
        return admin.incrementalAlterConfigs(Map.of(brokers, List.of(op))).all();
    }

    private int other(int id) {
        return id % 3 + 1;
    }

    private int lost(int leader) throws Exception {
        recording.step("the leader stops in order, and starts again");
        Servers.stop(running.get(leader));
        leader();
        again(leader);
        int next = leader();
        recording.step("the leader writes what nobody fetches and is killed");
        int asked = recording.asked("IncrementalAlterConfigs");
        int one = other(next);
        int two = other(one);
        signal("STOP", one);
        signal("STOP", two);
        try (Admin admin = admin(next)) {
            set(admin, 99);
            Servers.await("a write", () -> recording.asked("IncrementalAlterConfigs") > asked);
            // The leader has taken it by now, and goes before anybody else can.
            TimeUnit.MILLISECONDS.sleep(300);
            running.get(next).destroyForcibly().waitFor();
        }
        signal("CONT", one);
        signal("CONT", two);
        leader();
        recording.step("it starts again, and its log has diverged");
        again(next);
        return leader();
    }

    private void signal(String name, int id) throws Exception {
        new ProcessBuilder("kill", "-" + name, "" + running.get(id).pid()).inheritIO().start()
            .waitFor();
    }

    private int moved(int leader) throws Exception {
        recording.step("a follower starts again on another port");
        int id = other(leader);
        Servers.stop(running.get(id));
        proxies.get(id).close();
        proxies.put(id, new Proxy(recording, id, ports.get(id)));
        int before = recording.answered("UpdateRaftVoter");
        again(id);
        // A voter of 3.9 tells it only when no fetch of its own is under way, so almost never.
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (recording.answered("UpdateRaftVoter") == before && System.nanoTime() < end) {
            Thread.sleep(50);
        }
        return leader();
    }

    private void joins() throws Exception {
        // Who started since there were two snapshots has cleaned its log then.
        int leader = leader();
        while (!again.contains(leader)) {
            recording.step("the leader starts again and cleans its log");
            Servers.stop(running.get(leader));
            again(leader);
            leader = leader();
        }
        recording.step("controller 4 starts, and needs the snapshot");
        servers.format(config(4), "--no-initial-controllers");
        start(4);
        awaitStarted(4);
        recording.step("controller 4 becomes a voter");
        Uuid directory = Uuid.fromString(Files.readAllLines(
            servers.dir.resolve("controller-4").resolve("meta.properties")).stream()
            .filter(line -> line.startsWith("directory.id=")).findFirst().orElseThrow()
            .substring("directory.id=".length()));
        Set<RaftVoterEndpoint> endpoints = Set.of(new RaftVoterEndpoint("CONTROLLER", "localhost",
            proxies.get(4).port()));
        // The leader refuses while the newcomer lags behind.
        Servers.await("a fourth voter", () -> {
            try (Admin admin = admin()) {
                admin.addRaftVoter(4, directory, endpoints).all().get(60, TimeUnit.SECONDS);
                return true;
            } catch (Exception e) {
                return false;
            }
        });
        leader();
        recording.step("controller 4 is a voter already, then no more");
        try (Admin admin = admin()) {
            try {
                admin.addRaftVoter(4, directory, endpoints).all().get(60, TimeUnit.SECONDS);
                throw new IllegalStateException("was to be refused");
            } catch (ExecutionException e) {
                admin.removeRaftVoter(4, directory).all().get(60, TimeUnit.SECONDS);
            }
        }
        leader();
    }
}

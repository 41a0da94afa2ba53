package kraftd.compat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.common.Uuid;

/** Controllers and brokers of one release, named by their node ids, for recordings. */
final class Cluster implements AutoCloseable {
    /** What every node says: short sessions, ACLs, delegation tokens, small buffers. */
    private static final List<String> COMMON = List.of("controller.listener.names=CONTROLLER",
        "listener.security.protocol.map="
            + "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:ANONYMOUS", "allow.everyone.if.no.acl.found=true",
        "delegation.token.secret.key=not-a-secret", "broker.session.timeout.ms=3000",
        "broker.heartbeat.interval.ms=500");
    private static final List<String> BROKER = List.of("process.roles=broker",
        "sasl.enabled.mechanisms=PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config="
            + "org.apache.kafka.common.security.plain.PlainLoginModule required "
            + "user_alice=\"not-a-secret\";",
        "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
        "log.cleaner.dedupe.buffer.size=8388608", "num.io.threads=2", "num.network.threads=1",
        "replica.high.watermark.checkpoint.interval.ms=500", "auto.create.topics.enable=false");

    private final Servers servers;
    private final boolean dynamic;
    private final TreeMap<Integer, Integer> controllerPorts = new TreeMap<>();
    private final TreeMap<Integer, Integer> brokerPorts = new TreeMap<>();
    private final TreeMap<Integer, Process> processes = new TreeMap<>();

    /** Ports of all controllers are chosen here: every configuration names them. */
    Cluster(Path jars, Path conf, boolean dynamic, int... controllers) throws IOException {
        servers = new Servers(jars, conf);
        this.dynamic = dynamic;
        for (int id : controllers) {
            controllerPorts.put(id, Servers.freePort());
        }
    }

    /** The directory of a node's metadata; a broker's other one is {@link #second}. */
    Path directory(int id) {
        return servers.dir.resolve("node-" + id);
    }

    Path second(int id) {
        return servers.dir.resolve("node-" + id + "-second");
    }

    void controller(int id, String... more) throws IOException {
        config(id, List.of("process.roles=controller",
            "listeners=CONTROLLER://localhost:" + controllerPorts.get(id),
            "log.dirs=" + directory(id)), more);
    }

    /** A broker with a PLAINTEXT and a SASL_PLAINTEXT listener and one or two directories. */
    void broker(int id, boolean two, String... more) throws IOException {
        brokerPorts.put(id, Servers.freePort());
        int sasl = Servers.freePort();
        List<String> lines = new ArrayList<>(BROKER);
        lines.add("listeners=PLAINTEXT://localhost:" + brokerPorts.get(id)
            + ",SASL_PLAINTEXT://localhost:" + sasl);
        lines.add("metadata.log.dir=" + directory(id));
        lines.add("log.dirs=" + directory(id) + (two ? "," + second(id) : ""));
        saslPort = sasl;
        config(id, lines, more);
    }

    private int saslPort;

    private void config(int id, List<String> lines, String... more) throws IOException {
        List<String> all = new ArrayList<>(COMMON);
        all.add("node.id=" + id);
        all.add(dynamic ? "controller.quorum.bootstrap.servers=" + controllerList(false)
            : "controller.quorum.voters=" + controllerList(true));
        all.addAll(lines);
        all.addAll(List.of(more));
        servers.config("node-" + id, all.toArray(String[]::new));
    }

    private Path file(int id) {
        return servers.dir.resolve("node-" + id + ".properties");
    }

    private String controllerList(boolean withIds) {
        return controllerPorts.entrySet().stream()
            .map(it -> (withIds ? it.getKey() + "@" : "") + "localhost:" + it.getValue())
            .collect(Collectors.joining(","));
    }

    void format(int id, String... flags) throws Exception {
        servers.format(file(id), flags);
    }

    /** Starts a node and waits until it serves; its log begins anew. */
    void start(int... ids) throws Exception {
        for (int id : ids) {
            Files.deleteIfExists(log(id));
            processes.put(id, servers.start(file(id)));
        }
        for (int id : ids) {
            servers.awaitLog(file(id), "Kafka Server started");
        }
    }

    private Path log(int id) {
        return servers.dir.resolve(file(id).getFileName() + ".log");
    }

    void kill(int id) throws InterruptedException {
        processes.get(id).destroyForcibly().waitFor();
    }

    void stop(int id) throws InterruptedException {
        Servers.stop(processes.get(id));
    }

    /** Waits until any controller says the text since it was started. */
    void awaitControllers(String text) throws Exception {
        Servers.await(text, () -> {
            for (int id : controllerPorts.keySet()) {
                try {
                    if (Files.exists(log(id)) && Files.readString(log(id)).contains(text)) {
                        return true;
                    }
                } catch (IOException e) {
                    // It is being written: asked again.
                }
            }
            return false;
        });
    }

    /** A client of the controllers. */
    Admin controllers() {
        return Admin.create(properties("bootstrap.controllers", controllerList(false)));
    }

    /** A client of the brokers' PLAINTEXT listeners: a super user. */
    Admin brokers() {
        return Admin.create(properties("bootstrap.servers", brokerList()));
    }

    String brokerList() {
        return brokerPorts.values().stream().map(port -> "localhost:" + port)
            .collect(Collectors.joining(","));
    }

    /** A client who proved to be alice, of the broker that was configured last. */
    Admin alice() {
        Properties to = properties("bootstrap.servers", "localhost:" + saslPort);
        to.put("security.protocol", "SASL_PLAINTEXT");
        to.put("sasl.mechanism", "PLAIN");
        to.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule "
            + "required username=\"alice\" password=\"not-a-secret\";");
        return Admin.create(to);
    }

    private static Properties properties(String key, String value) {
        Properties to = new Properties();
        to.put(key, value);
        to.put("default.api.timeout.ms", "20000");
        to.put("request.timeout.ms", "10000");
        to.put("reconnect.backoff.max.ms", "200");
        return to;
    }

    int controllerPort(int id) {
        return controllerPorts.get(id);
    }

    /** The directory id that a node was formatted with. */
    Uuid directoryId(int id) throws IOException {
        try (Stream<String> lines = Files.lines(directory(id).resolve("meta.properties"))) {
            return Uuid.fromString(lines.filter(line -> line.startsWith("directory.id="))
                .findFirst().orElseThrow().substring("directory.id=".length()));
        }
    }

    /** Waits for a leader other than `but` and gives its id. */
    int leader(int but) throws Exception {
        int[] found = {-1};
        awaitQuorum("a leader", quorum -> {
            found[0] = quorum.leaderId();
            return found[0] > 0 && found[0] != but;
        });
        return found[0];
    }

    /** Waits until these nodes have what the leader's log held at the call. */
    void awaitCaughtUp(Integer... ids) throws Exception {
        long[] end = {-1};
        awaitQuorum("nodes " + List.of(ids) + " have caught up", quorum -> {
            if (end[0] < 0) {
                end[0] = quorum.highWatermark();
            }
            return Stream.concat(quorum.voters().stream(), quorum.observers().stream())
                .filter(it -> List.of(ids).contains(it.replicaId()) && it.logEndOffset() >= end[0])
                .count() == ids.length;
        });
    }

    /** Asks with a new client each time: an old one may know only controllers that are gone. */
    private void awaitQuorum(String what, Predicate<QuorumInfo> is) throws Exception {
        Servers.await(what, () -> Work.quietly(() -> {
            try (Admin admin = controllers()) {
                return is.test(admin.describeMetadataQuorum().quorumInfo().get());
            }
        }));
    }

    @Override
    public void close() throws Exception {
        servers.close();
    }
}

package kraftd.compat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.serialization.StringSerializer;

/** One controller (node 1) and brokers 2, 3 and 4: see fixtures/README.md for the order. */
final class BrokerLife {
    private final Servers servers;
    private final Recording recording;
    private final Proxy proxy;
    private final Map<Integer, Integer> ports = new HashMap<>();
    private int starts;

    BrokerLife(Servers servers, Recording recording) throws Exception {
        this.servers = servers;
        this.recording = recording;
        proxy = new Proxy(recording, 1, servers.controllerPort);
        for (int id = 2; id <= 4; id++) {
            ports.put(id, Servers.freePort());
        }
    }

    void live() throws Exception {
        recording.step("the controller starts");
        Path config = controller();
        servers.format(config, "--standalone");
        Process controller = started(config);
        recording.step("broker 2 starts, with two log directories");
        Path two = broker(2, "one", "two");
        servers.format(two);
        Process broker2 = started(two);
        try (Admin admin = admin()) {
            alone(admin);
            recording.step("broker 3 starts, with one log directory");
            Path three = broker(3, "one");
            servers.format(three);
            Process broker3 = started(three);
            broker3 = together(admin, broker3);
            recording.step("elections, reassignments, quotas and users");
            further(admin);
            recording.step("broker 3 is killed and starts again");
            broker3.destroyForcibly().waitFor();
            broker3 = started(broker(3, "one"));
            recording.step("the controller stops and starts again: it cleans its log");
            Servers.stop(controller);
            controller = started(controller());
            recording.step("broker 4 starts, and needs the snapshot");
            Path four = broker(4, "one");
            servers.format(four);
            Process broker4 = started(four);
            recording.step("broker 3 stops and is unregistered");
            Servers.stop(broker3);
            done(admin.unregisterBroker(3).all());
            recording.step("brokers 4 and 2 stop");
            Servers.stop(broker4);
        }
        Servers.stop(broker2);
        recording.step("the controller stops");
        Servers.stop(controller);
        proxy.close();
    }

    /** A start of its own has a file of its own, so that its log is one as well. */
    private Path controller() throws Exception {
        return servers.config("controller-" + starts++, "process.roles=controller", "node.id=1",
            "controller.listener.names=CONTROLLER",
            "listeners=CONTROLLER://localhost:" + servers.controllerPort,
            "advertised.listeners=CONTROLLER://localhost:" + proxy.port(),
            "controller.quorum.bootstrap.servers=localhost:" + proxy.port(),
            "log.dirs=" + servers.dir.resolve("controller"),
            "broker.session.timeout.ms=15000", "metadata.max.idle.interval.ms=15000",
            "metadata.log.max.record.bytes.between.snapshots=4000",
            "metadata.max.retention.ms=1");
    }

    private Path broker(int id, String... directories) throws Exception {
        List<String> dirs = new ArrayList<>();
        for (String directory : directories) {
            dirs.add(servers.dir.resolve("broker-" + id + "-" + directory).toString());
        }
        return servers.config("broker-" + id + "-" + starts++, "process.roles=broker",
            "node.id=" + id, "controller.listener.names=CONTROLLER",
            "listeners=PLAINTEXT://localhost:" + ports.get(id),
            "controller.quorum.bootstrap.servers=localhost:" + proxy.port(),
            "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
            "replica.lag.time.max.ms=3000", "broker.session.timeout.ms=15000",
            "log.dirs=" + String.join(",", dirs));
    }

    private Process started(Path config) throws Exception {
        Process process = servers.start(config);
        servers.awaitLog(config, "Kafka Server started");
        return process;
    }

    private Properties address() {
        Properties to = new Properties();
        to.put("bootstrap.servers", "localhost:" + ports.get(2));
        return to;
    }

    private Admin admin() {
        return Admin.create(address());
    }

    private static void done(KafkaFuture<?> future) throws Exception {
        future.get(60, TimeUnit.SECONDS);
    }

    /** The controller says yes or no. */
    private static void heard(KafkaFuture<?> future) throws Exception {
        try {
            done(future);
        } catch (ExecutionException e) {
            // Broker 3 may lead already: leaders move back every few minutes.
        }
    }

    /** The controller says no. */
    private static void refused(KafkaFuture<?> future) throws Exception {
        try {
            done(future);
        } catch (ExecutionException e) {
            return;
        }
        throw new IllegalStateException("was to be refused");
    }

    /** What can be placed on one broker only. */
    private void alone(Admin admin) throws Exception {
        recording.step("topics are created on broker 2, grown, changed and deleted");
        NewTopic plain = new NewTopic("plain", 3, (short) 1);
        done(admin.createTopics(List.of(plain)).all());
        NewTopic configured = new NewTopic("configured", 2, (short) 1)
            .configs(Map.of("retention.ms", "600000", "cleanup.policy", "compact,delete"));
        NewTopic defaults = new NewTopic("defaults", Optional.empty(), Optional.empty());
        done(admin.createTopics(List.of(configured, defaults)).all());
        done(admin.createTopics(List.of(new NewTopic("checked", 1, (short) 1)),
            new CreateTopicsOptions().validateOnly(true)).all());
        refused(admin.createTopics(List.of(plain)).all());
        refused(admin.createTopics(List.of(new NewTopic("a topic", 1, (short) 1))).all());
        refused(admin.createTopics(List.of(new NewTopic("wide", 1, (short) 3))).all());
        refused(admin.createTopics(List.of(new NewTopic("wrong", 1, (short) 1)
            .configs(Map.of("retention.ms", "soon")))).all());
        done(admin.createPartitions(Map.of("configured", NewPartitions.increaseTo(4))).all());
        refused(admin.createPartitions(Map.of("configured", NewPartitions.increaseTo(2))).all());
        alter(admin, ConfigResource.Type.TOPIC, "configured", "retention.ms", null);
        alter(admin, ConfigResource.Type.TOPIC, "plain", "min.insync.replicas", "1");
        alter(admin, ConfigResource.Type.BROKER, "2", "log.cleaner.threads", "2");
        alter(admin, ConfigResource.Type.BROKER, "", "log.cleaner.threads", "1");
        done(admin.deleteTopics(List.of("defaults")).all());
        // All of their partitions have found their directories before the next step.
        Servers.await("directories", () -> recording.answered("AssignReplicasToDirs") > 0);
        recording.step("a producer takes producer ids");
        produce("plain", 0, "idempotent");
    }

    private static void alter(Admin admin, ConfigResource.Type type, String name, String key,
            String value) throws Exception {
        AlterConfigOp op = new AlterConfigOp(new ConfigEntry(key, value),
            value == null ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET);
        done(admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), List.of(op))).all());
    }

    private void produce(String topic, int partition, String kind) throws Exception {
        Properties to = address();
        to.put("enable.idempotence", String.valueOf(kind.equals("idempotent")));
        to.put("acks", kind.equals("idempotent") ? "all" : "1");
        StringSerializer strings = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(to, strings, strings)) {
            producer.send(new ProducerRecord<>(topic, partition, "key", "value"))
                .get(60, TimeUnit.SECONDS);
        }
    }

    /** What two brokers tell of each other. Gives the process of broker 3. */
    private Process together(Admin admin, Process broker3) throws Exception {
        recording.step("a topic on both brokers");
        done(admin.createTopics(List.of(new NewTopic("pair",
            Map.of(0, List.of(2, 3), 1, List.of(3, 2), 2, List.of(2, 3))))).all());
        produce("pair", 0, "idempotent");
        recording.step("broker 3 is frozen until broker 2 drops it from the replicas in sync");
        int before = recording.answered("AlterPartition");
        signal("STOP", broker3);
        produce("pair", 0, "plain");
        Servers.await("a shrink", () -> recording.answered("AlterPartition") > before);
        recording.step("broker 3 goes on and is in sync again");
        int shrunk = recording.answered("AlterPartition");
        signal("CONT", broker3);
        Servers.await("an expansion", () -> recording.answered("AlterPartition") > shrunk);
        recording.step("broker 3 shuts down in order");
        Servers.stop(broker3);
        recording.step("broker 3 starts again");
        int expanded = recording.answered("AlterPartition");
        Process again = started(broker(3, "one"));
        Servers.await("in sync again", () -> recording.answered("AlterPartition") > expanded
            && inSync(admin));
        recording.step("features are asked for that nobody has");
        refused(admin.updateFeatures(Map.of("metadata.version",
            new FeatureUpdate((short) 999, FeatureUpdate.UpgradeType.UPGRADE)),
            new UpdateFeaturesOptions()).all());
        done(admin.deleteTopics(List.of("plain")).all());
        return again;
    }

    private static boolean inSync(Admin admin) {
        try {
            return admin.describeTopics(Set.of("pair")).allTopicNames().get().get("pair")
                .partitions().stream().allMatch(partition -> partition.isr().size() == 2);
        } catch (InterruptedException | ExecutionException e) {
            return false;
        }
    }

    private static void signal(String name, Process process) throws Exception {
        new ProcessBuilder("kill", "-" + name, "" + process.pid()).inheritIO().start().waitFor();
    }

    private void further(Admin admin) throws Exception {
        TopicPartition one = new TopicPartition("pair", 1);
        heard(admin.electLeaders(ElectionType.PREFERRED, Set.of(one)).all());
        done(admin.alterPartitionReassignments(Map.of(new TopicPartition("pair", 2),
            Optional.of(new NewPartitionReassignment(List.of(3))))).all());
        done(admin.listPartitionReassignments().reassignments());
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of("user", "alice"));
        done(admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity,
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1024.0))))).all());
        done(admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("alice",
            new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "not-a-secret"))).all());
    }
}

package kraftd.compat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.serialization.StringSerializer;

/** Records metadata directories that Java formatted and lived in. */
public final class DirectoryRecorder {
    private final Path jars;
    private final Path conf;
    private final Path target;
    private final boolean newest;
    private final boolean old;

    private DirectoryRecorder(String[] args) {
        jars = Path.of(args[0]);
        conf = Path.of(args[1]);
        target = Path.of(args[2]);
        String release = jars.getFileName().toString();
        newest = release.equals("4.4.0");
        old = release.startsWith("3.");
    }

    /** Arguments: jars (a folder named as the release), logging configurations, target folder. */
    public static void main(String[] args) throws Exception {
        DirectoryRecorder recorder = new DirectoryRecorder(args);
        recorder.formatted();
        recorder.life(false, "static");
        recorder.life(true, "dynamic");
    }

    private void formatted() throws Exception {
        format("static-voters", false);
        format("standalone", true, "--standalone");
        format("initial-controllers", true, "--initial-controllers",
            "1@localhost:9093:JEXY6aqzQY-32P5TStzaFg,2@localhost:9094:MvDxzVmcRsaTz33bUuRU6A,"
                + "3@localhost:9095:07R5amHmR32VDA6jHkGbTA");
        if (!old) {
            format("no-initial-controllers", true, "--no-initial-controllers");
            format("standalone-3.9", true, "--standalone", "--release-version", "3.9-IV0");
        }
        if (newest) {
            format("standalone-4.3", true, "--standalone", "--release-version", "4.3-IV0");
            format("static-voters-3.3", false, "--release-version", "3.3-IV3");
            format("standalone-scram", true, "--standalone", "--add-scram",
                "SCRAM-SHA-256=[name=alice,iterations=8192,"
                    + "salt=\"MWx2NHBkbnc0ZndxN25vdGN4bTB5Y3p6Zw==\","
                    + "saltedpassword=\"mT0yyUUxnlJaC99HXgRTSYlbuqa4FSGtJCJfTMvjYCE=\"]");
        }
    }

    private void format(String name, boolean dynamic, String... flags) throws Exception {
        try (Servers servers = new Servers(jars, conf)) {
            servers.format(servers.config("controller", servers.controllerLines(dynamic)), flags);
            copy(servers.dir.resolve("controller"), target.resolve("formatted").resolve(name));
        }
    }

    /** A controller's whole life with one broker: see fixtures/README.md for the order. */
    private void life(boolean dynamic, String name) throws Exception {
        try (Servers servers = new Servers(jars, conf)) {
            Path controller = servers.config("controller", servers.controllerLines(dynamic,
                "broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=500",
                "metadata.log.max.record.bytes.between.snapshots=4000"));
            Path broker = servers.config("broker", servers.brokerLines(dynamic));
            servers.format(controller, dynamic ? new String[] {"--standalone"} : new String[0]);
            servers.format(broker);
            Process leading = servers.start(controller);
            Process serving = servers.start(broker);
            servers.awaitLog(broker, "Kafka Server started");
            administer(servers, dynamic);
            Servers.stop(serving);
            Path directory = servers.dir.resolve("controller");
            leading.destroyForcibly().waitFor();
            copy(directory, target.resolve("lived").resolve(name + "-killed"));
            Path again = servers.config("controller-again", Files.readAllLines(controller)
                .toArray(String[]::new));
            leading = servers.start(again);
            Path brokerAgain = servers.config("broker-again", Files.readAllLines(broker)
                .toArray(String[]::new));
            serving = servers.start(brokerAgain);
            servers.awaitLog(brokerAgain, "Kafka Server started");
            serving.destroyForcibly().waitFor();
            servers.awaitLog(again, "Fencing broker 2");
            Servers.stop(leading);
            copy(directory, target.resolve("lived").resolve(name + "-stopped"));
        }
    }

    private void administer(Servers servers, boolean more) throws Exception {
        Properties to = new Properties();
        to.put("bootstrap.servers", "localhost:" + servers.brokerPort);
        try (Admin admin = Admin.create(to)) {
            for (int i = 1; i <= 12; i++) {
                NewTopic topic = new NewTopic("topic-" + i, Optional.of(i), Optional.of((short) 1));
                topic.configs(i % 3 == 0 ? Map.of("retention.ms", "" + 1000 * i) : Map.of());
                admin.createTopics(List.of(topic)).all().get();
            }
            admin.createTopics(List.of(new NewTopic("by-hand", Map.of(0, List.of(2), 1, List.of(2)))))
                .all().get();
            admin.createPartitions(Map.of("topic-1", NewPartitions.increaseTo(4))).all().get();
            alter(admin, ConfigResource.Type.TOPIC, "topic-2", "cleanup.policy", "compact");
            alter(admin, ConfigResource.Type.TOPIC, "topic-3", "retention.ms", null);
            alter(admin, ConfigResource.Type.BROKER, "2", "log.cleaner.threads", "2");
            alter(admin, ConfigResource.Type.BROKER, "", "log.cleaner.threads", "1");
            admin.deleteTopics(List.of("topic-11", "topic-12")).all().get();
            produce(servers);
            if (more) {
                alterUsers(admin);
            }
        }
    }

    private static void alter(Admin admin, ConfigResource.Type type, String name, String key,
            String value) throws Exception {
        AlterConfigOp op = new AlterConfigOp(new ConfigEntry(key, value),
            value == null ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), List.of(op)))
            .all().get();
    }

    private static void alterUsers(Admin admin) throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of("user", "alice"));
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity,
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1024.0))))).all().get();
        admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("alice",
            new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "not-a-secret"))).all().get();
    }

    /** An idempotent producer takes a block of producer ids from the controller. */
    private static void produce(Servers servers) {
        Properties to = new Properties();
        to.put("bootstrap.servers", "localhost:" + servers.brokerPort);
        to.put("enable.idempotence", "true");
        StringSerializer strings = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(to, strings, strings)) {
            producer.send(new ProducerRecord<>("topic-1", "key", "value"));
        }
    }

    static void copy(Path from, Path to) throws IOException {
        Servers.remove(to);
        try (Stream<Path> all = Files.walk(from)) {
            for (Path path : all.filter(Files::isRegularFile).toList()) {
                Path copy = to.resolve(from.relativize(path).toString());
                Files.createDirectories(copy.getParent());
                Files.write(copy, trimmed(path));
            }
        }
        System.out.println(to);
    }

    /** A running server's index files are ten megabytes of zeros behind a few entries. */
    private static byte[] trimmed(Path path) throws IOException {
        byte[] bytes = Files.readAllBytes(path);
        int entry = path.toString().endsWith(".timeindex") ? 12
            : path.toString().endsWith(".index") ? 8 : 0;
        if (entry == 0) {
            return bytes;
        }
        int length = bytes.length - bytes.length % entry;
        byte[] empty = ByteBuffer.allocate(entry).array();
        while (length > 0
            && Arrays.equals(bytes, length - entry, length, empty, 0, entry)) {
            length -= entry;
        }
        return Arrays.copyOf(bytes, length);
    }
}

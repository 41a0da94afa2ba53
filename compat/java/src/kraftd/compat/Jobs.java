package kraftd.compat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The jobs of {@link Driver}. Addresses are host:port of a broker's listener. */
final class Jobs implements AutoCloseable {
    private final Consumer<String> say;
    private final Map<String, Admin> admins = new HashMap<>();
    private Load load;

    Jobs(Consumer<String> say) {
        this.say = say;
    }

    void run(String job, List<String> args) throws Exception {
        switch (job) {
            case "create" -> create(args.get(0), args.get(1), Integer.parseInt(args.get(2)), args);
            case "create-assigned", "partitions", "reassign" -> new Partitions(admin(args.get(0)), say).run(job, args);
            case "create-series" -> createSeries(args.get(0), args.get(1), Integer.parseInt(args.get(2)));
            case "grow" -> admin(args.get(0)).createPartitions(Map.of(args.get(1),
                NewPartitions.increaseTo(Integer.parseInt(args.get(2))))).all().get();
            case "delete" -> admin(args.get(0)).deleteTopics(List.of(args.get(1))).all().get();
            case "alter" -> alter(args.get(0), args.get(1), args.get(2), args.get(3));
            case "topics" -> topics(args.get(0));
            case "led" -> led(args.get(0), Integer.parseInt(args.get(1)));
            case "produce" -> produce(args.get(0), args.get(1), Integer.parseInt(args.get(2)), args.get(3));
            case "consume" -> consume(args.get(0), args.get(1), Integer.parseInt(args.get(2)));
            case "tool" -> Tools.run(args, say);
            case "replay" -> Replay.replay(args.get(0), Integer.parseInt(args.get(1)),
                java.nio.file.Path.of(args.get(2)), java.nio.file.Path.of(args.get(3)));
            case "levels" -> Levels.run(args);
            case "ask" -> {
                try (Wire wire = new Wire(args.get(0), Integer.parseInt(args.get(1)))) {
                    say.accept(wire.call(args.get(2), Short.parseShort(args.get(3)), args.get(4))
                        .json());
                }
            }
            case "load" -> load = new Load(args.get(0), args.get(1), Long.parseLong(args.get(2)));
            case "load-count" -> load.count(say);
            case "load-stop" -> load.stop(say);
            case "states" -> States.run(args, say);
            case "shell" -> States.shell(args.get(0), say);
            default -> throw new IllegalArgumentException("no such job: " + job);
        }
    }

    private Admin admin(String address) {
        return admins.computeIfAbsent(address, key -> {
            Properties to = new Properties();
            to.put("bootstrap.servers", key);
            to.put("default.api.timeout.ms", "60000");
            return Admin.create(to);
        });
    }

    /** ADDRESS NAME PARTITIONS [KEY=VALUE]... */
    private void create(String address, String name, int partitions, List<String> args)
            throws Exception {
        Map<String, String> configs = new HashMap<>();
        for (String config : args.subList(3, args.size())) {
            configs.put(config.substring(0, config.indexOf('=')), config.substring(config.indexOf('=') + 1));
        }
        NewTopic topic = new NewTopic(name, Optional.of(partitions), Optional.of((short) 1));
        admin(address).createTopics(List.of(topic.configs(configs))).all().get();
    }

    /**
     * Creates PREFIX1 to PREFIX-COUNT with 1 to 12 partitions one after another and says each name
     * once its creation is acknowledged. Goes on trying through failures: one that timed out may
     * have happened all the same.
     */
    private void createSeries(String address, String prefix, int count) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
        for (int i = 1; i <= count; i++) {
            NewTopic topic = new NewTopic(prefix + i, Optional.of(1 + (i - 1) % 12), Optional.of((short) 1));
            while (true) {
                try {
                    admin(address).createTopics(List.of(topic)).all().get();
                    break;
                } catch (ExecutionException e) {
                    if (e.getCause() instanceof TopicExistsException) {
                        break;
                    }
                    if (System.nanoTime() > end) {
                        throw e;
                    }
                }
            }
            say.accept(prefix + i);
        }
    }

    /** ADDRESS TYPE NAME KEY=VALUE, or KEY alone to delete. */
    private void alter(String address, String type, String name, String change) throws Exception {
        int equals = change.indexOf('=');
        AlterConfigOp op = equals < 0
            ? new AlterConfigOp(new ConfigEntry(change, null), AlterConfigOp.OpType.DELETE)
            : new AlterConfigOp(new ConfigEntry(change.substring(0, equals), change.substring(equals + 1)),
                AlterConfigOp.OpType.SET);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.valueOf(type), name);
        admin(address).incrementalAlterConfigs(Map.of(resource, List.of(op))).all().get();
    }

    /** Says "NAME ID PARTITIONS KEY=VALUE..." of each topic, sorted, with the configs of its own. */
    private void topics(String address) throws Exception {
        TreeSet<String> names = new TreeSet<>(admin(address).listTopics().names().get());
        Map<String, TopicDescription> described =
            admin(address).describeTopics(names).allTopicNames().get();
        List<ConfigResource> resources = new ArrayList<>();
        names.forEach(name -> resources.add(new ConfigResource(ConfigResource.Type.TOPIC, name)));
        var configs = admin(address).describeConfigs(resources).all().get();
        for (String name : names) {
            TopicDescription topic = described.get(name);
            TreeSet<String> own = new TreeSet<>();
            configs.get(new ConfigResource(ConfigResource.Type.TOPIC, name)).entries().stream()
                .filter(entry -> entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG)
                .forEach(entry -> own.add(entry.name() + "=" + entry.value()));
            say.accept((name + " " + topic.topicId() + " " + topic.partitions().size() + " "
                + String.join(" ", own)).stripTrailing());
        }
    }

    /** Waits until there are COUNT topics and each of their partitions has a leader. */
    private void led(String address, int count) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (true) {
            var names = admin(address).listTopics().names().get();
            Collection<TopicDescription> all =
                admin(address).describeTopics(names).allTopicNames().get().values();
            long without = all.stream().flatMap(topic -> topic.partitions().stream())
                .filter(partition -> partition.leader() == null || partition.isr().isEmpty()).count();
            if (names.size() >= count && without == 0) {
                return;
            }
            if (System.nanoTime() > end) {
                throw new IllegalStateException(names.size() + " topics, " + without
                    + " partitions without a leader after 60 s");
            }
            Thread.sleep(100);
        }
    }

    /** ADDRESS TOPIC COUNT and "plain" or "idempotent": sends records 0 to COUNT-1, all acknowledged. */
    private void produce(String address, String topic, int count, String kind) throws Exception {
        Properties to = new Properties();
        to.put("bootstrap.servers", address);
        to.put("enable.idempotence", String.valueOf(kind.equals("idempotent")));
        to.put("acks", "all");
        StringSerializer strings = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(to, strings, strings)) {
            List<java.util.concurrent.Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                sent.add(producer.send(new ProducerRecord<>(topic, "key-" + i, "value-" + i)));
            }
            for (var each : sent) {
                each.get(60, TimeUnit.SECONDS);
            }
        }
    }

    /** ADDRESS TOPIC COUNT: reads from the beginning, through a group; fails on a gap or a double. */
    private void consume(String address, String topic, int count) throws Exception {
        Properties to = new Properties();
        to.put("bootstrap.servers", address);
        to.put("group.id", "group-" + topic);
        to.put("auto.offset.reset", "earliest");
        StringDeserializer strings = new StringDeserializer();
        TreeSet<String> seen = new TreeSet<>();
        int received = 0;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(to, strings, strings)) {
            consumer.subscribe(List.of(topic));
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (received < count && System.nanoTime() < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    seen.add(record.value());
                    received++;
                }
            }
            consumer.commitSync();
            for (TopicPartition partition : consumer.assignment()) {
                if (consumer.endOffsets(List.of(partition)).get(partition) != consumer.position(partition)) {
                    throw new IllegalStateException("more records than sent in " + partition);
                }
            }
        }
        if (received != count || seen.size() != count) {
            throw new IllegalStateException(received + " records, " + seen.size() + " different ones");
        }
    }

    @Override
    public void close() {
        if (load != null) {
            load.close();
        }
        admins.values().forEach(admin -> admin.close(Duration.ZERO));
    }
}

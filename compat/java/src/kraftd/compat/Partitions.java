package kraftd.compat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;

/** Jobs about replicas: where they are to be, and where a broker says that they are. */
final class Partitions {
    private final Admin admin;
    private final Consumer<String> say;

    Partitions(Admin admin, Consumer<String> say) {
        this.admin = admin;
        this.say = say;
    }

    void run(String job, List<String> args) throws Exception {
        switch (job) {
            case "create-assigned" -> create(args.get(1), args.get(2), args.subList(3, args.size()));
            case "partitions" -> describe(args.get(1));
            default -> reassign(args.get(1), Integer.parseInt(args.get(2)), brokers(args.get(3)));
        }
    }

    private static List<Integer> brokers(String list) {
        return Arrays.stream(list.split(",")).map(Integer::parseInt).collect(Collectors.toList());
    }

    /** ADDRESS NAME REPLICAS[;REPLICAS]... [KEY=VALUE]... */
    private void create(String name, String assignment, List<String> configs) throws Exception {
        Map<Integer, List<Integer>> replicas = new HashMap<>();
        for (String partition : assignment.split(";")) {
            replicas.put(replicas.size(), brokers(partition));
        }
        Map<String, String> pairs = new HashMap<>();
        for (String config : configs) {
            pairs.put(config.substring(0, config.indexOf('=')), config.substring(config.indexOf('=') + 1));
        }
        admin.createTopics(List.of(new NewTopic(name, replicas).configs(pairs))).all().get();
    }

    /** ADDRESS TOPIC PARTITION REPLICAS */
    private void reassign(String topic, int partition, List<Integer> replicas) throws Exception {
        var target = Optional.of(new NewPartitionReassignment(replicas));
        admin.alterPartitionReassignments(Map.of(new TopicPartition(topic, partition), target)).all().get();
    }

    /** ADDRESS TOPIC: says "PARTITION LEADER REPLICAS ISR ELR", "-" for an empty list or no leader. */
    private void describe(String topic) throws Exception {
        List<TopicPartitionInfo> partitions = new ArrayList<>(
            admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions());
        for (TopicPartitionInfo it : partitions) {
            boolean led = it.leader() != null && !it.leader().isEmpty();
            say.accept(String.join(" ", String.valueOf(it.partition()),
                led ? it.leader().idString() : "-", ids(it.replicas()), ids(it.isr()), ids(it.elr())));
        }
    }

    private static String ids(List<Node> nodes) {
        return nodes == null || nodes.isEmpty() ? "-"
            : nodes.stream().map(Node::idString).collect(Collectors.joining(","));
    }
}

package kraftd.compat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.serialization.StringSerializer;

/** What an operator does to a cluster, one method a kind of records. */
final class Work {
    private final Admin admin;

    Work(Admin admin) {
        this.admin = admin;
    }

    /** A topic whose partition p is on the brokers listed at p. */
    void topic(String name, Map<String, String> configs, List<List<Integer>> replicas)
            throws Exception {
        Map<Integer, List<Integer>> assignment = new TreeMap<>();
        for (List<Integer> brokers : replicas) {
            assignment.put(assignment.size(), brokers);
        }
        admin.createTopics(List.of(new NewTopic(name, assignment).configs(configs))).all().get();
    }

    void topic(String name, int partitions, int copies) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, Optional.of(partitions),
            Optional.of((short) copies)))).all().get();
    }

    void grow(String topic, int partitions) throws Exception {
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(partitions))).all().get();
    }

    void delete(String topic) throws Exception {
        admin.deleteTopics(List.of(topic)).all().get();
    }

    /** Sets a configuration; null takes it out. */
    void set(ConfigResource.Type type, String name, String key, String value) throws Exception {
        alter(type, name, key, value, value == null ? OpType.DELETE : OpType.SET);
    }

    void alter(ConfigResource.Type type, String name, String key, String value, OpType op)
            throws Exception {
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name),
            List.of(new AlterConfigOp(new ConfigEntry(key, value), op)))).all().get();
    }

    void configs(String topic, int broker) throws Exception {
        set(ConfigResource.Type.TOPIC, topic, "retention.ms", "86400000");
        set(ConfigResource.Type.TOPIC, topic, "cleanup.policy", "compact");
        alter(ConfigResource.Type.TOPIC, topic, "cleanup.policy", "delete", OpType.APPEND);
        set(ConfigResource.Type.TOPIC, topic, "retention.ms", null);
        set(ConfigResource.Type.BROKER, "" + broker, "log.cleaner.threads", "2");
        set(ConfigResource.Type.BROKER, "", "log.cleaner.threads", "1");
        set(ConfigResource.Type.BROKER, "" + broker,
            "listener.name.sasl_plaintext.ssl.keystore.password", "not-a-secret");
        set(ConfigResource.Type.CLIENT_METRICS, "watch", "interval.ms", "30000");
        set(ConfigResource.Type.CLIENT_METRICS, "watch", "metrics", "org.apache.kafka.");
        set(ConfigResource.Type.CLIENT_METRICS, "watch", "match", "client_id=one.*");
        set(ConfigResource.Type.CLIENT_METRICS, "watch", "match", null);
        // Groups have had configurations since 4.0; the name is not in older jars.
        for (ConfigResource.Type type : ConfigResource.Type.values()) {
            if (type.name().equals("GROUP")) {
                set(type, "readers", "consumer.session.timeout.ms", "50000");
                set(type, "readers", "consumer.heartbeat.interval.ms", "6000");
                set(type, "readers", "consumer.heartbeat.interval.ms", null);
            }
        }
    }

    void quotas() throws Exception {
        quota("producer_byte_rate", 1024.0, "user", "alice");
        quota("consumer_byte_rate", 2048.0, "user", "alice", "client-id", "one");
        quota("request_percentage", 12.5, "user", null);
        quota("controller_mutation_rate", 10.0, "user", null, "client-id", null);
        quota("connection_creation_rate", 5.0, "ip", "127.0.0.1");
        quota("connection_creation_rate", 100.0, "ip", null);
        quota("producer_byte_rate", 77.0, "client-id", "two");
        quota("producer_byte_rate", 1.0, "client-id", "gone");
        quota("producer_byte_rate", null, "client-id", "gone");
    }

    /** Sets a quota of an entity of types and names (null: the default); null takes it out. */
    void quota(String key, Double value, String... typesAndNames) throws Exception {
        Map<String, String> parts = new TreeMap<>();
        for (int i = 0; i < typesAndNames.length; i += 2) {
            parts.put(typesAndNames[i], typesAndNames[i + 1]);
        }
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(parts),
            List.of(new ClientQuotaAlteration.Op(key, value))))).all().get();
    }

    void scram() throws Exception {
        credential("bob", ScramMechanism.SCRAM_SHA_256);
        credential("bob", ScramMechanism.SCRAM_SHA_512);
        credential("gone", ScramMechanism.SCRAM_SHA_512);
        admin.alterUserScramCredentials(List.of(
            new UserScramCredentialDeletion("gone", ScramMechanism.SCRAM_SHA_512))).all().get();
    }

    private void credential(String user, ScramMechanism mechanism) throws Exception {
        admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(user,
            new ScramCredentialInfo(mechanism, 4096), "not-a-secret"))).all().get();
    }

    void acls() throws Exception {
        AclBinding gone = acl(ResourceType.TOPIC, "gone", PatternType.LITERAL, "User:gone",
            AclOperation.WRITE, AclPermissionType.ALLOW);
        admin.createAcls(List.of(gone,
            acl(ResourceType.TOPIC, "plain", PatternType.LITERAL, "User:alice",
                AclOperation.READ, AclPermissionType.ALLOW),
            acl(ResourceType.TOPIC, "pla", PatternType.PREFIXED, "User:*",
                AclOperation.DESCRIBE, AclPermissionType.DENY),
            acl(ResourceType.GROUP, "*", PatternType.LITERAL, "User:alice",
                AclOperation.READ, AclPermissionType.ALLOW),
            acl(ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL, "User:bob",
                AclOperation.ALTER_CONFIGS, AclPermissionType.ALLOW))).all().get();
        admin.createAcls(List.of(acl(ResourceType.TRANSACTIONAL_ID, "tx", PatternType.PREFIXED,
            "User:bob", AclOperation.ALL, AclPermissionType.ALLOW))).all().get();
        admin.deleteAcls(List.of(new AclBindingFilter(new ResourcePatternFilter(ResourceType.TOPIC,
            "gone", PatternType.LITERAL), AccessControlEntryFilter.ANY))).all().get();
    }

    private static AclBinding acl(ResourceType type, String name, PatternType pattern,
            String principal, AclOperation operation, AclPermissionType permission) {
        return new AclBinding(new ResourcePattern(type, name, pattern),
            new AccessControlEntry(principal, "*", operation, permission));
    }

    /** Needs a client who proved who it is. One token stays, one is renewed, one goes. */
    void tokens() throws Exception {
        KafkaPrincipal bob = new KafkaPrincipal("User", "bob");
        DelegationToken stays = admin.createDelegationToken(
            new CreateDelegationTokenOptions().renewers(List.of(bob))).delegationToken().get();
        DelegationToken goes = admin.createDelegationToken().delegationToken().get();
        Servers.await("a token is renewed", () -> quietly(() ->
            admin.renewDelegationToken(stays.hmac()).expiryTimestamp().get() > 0));
        Servers.await("a token is gone", () -> quietly(() ->
            admin.expireDelegationToken(goes.hmac()).expiryTimestamp().get() > 0));
    }

    /** Moves a partition; no brokers: the move under way is called off. */
    void reassign(String topic, int partition, Integer... brokers) throws Exception {
        Optional<NewPartitionReassignment> to = brokers.length == 0 ? Optional.empty()
            : Optional.of(new NewPartitionReassignment(List.of(brokers)));
        admin.alterPartitionReassignments(Map.of(new TopicPartition(topic, partition), to))
            .all().get();
    }

    void awaitReassigned() throws Exception {
        Servers.await("no reassignment", () -> quietly(() ->
            admin.listPartitionReassignments().reassignments().get().isEmpty()));
    }

    /** Waits until all partitions of a topic have a leader and these brokers in sync. */
    void awaitInSync(String topic, Integer... brokers) throws Exception {
        Servers.await(topic + " in sync", () -> quietly(() -> {
            TopicDescription told = admin.describeTopics(List.of(topic)).allTopicNames().get()
                .get(topic);
            for (TopicPartitionInfo partition : told.partitions()) {
                List<Integer> isr = partition.isr().stream().map(Node::id).toList();
                if (partition.leader() == null || !isr.containsAll(List.of(brokers))) {
                    return false;
                }
            }
            return true;
        }));
    }

    interface Question {
        boolean ask() throws Exception;
    }

    /** A cluster in change answers with errors: that is a "not yet". */
    static boolean quietly(Question question) {
        try {
            return question.ask();
        } catch (Exception e) {
            return false;
        }
    }

    /** An idempotent producer takes a block of producer ids from the controller. */
    static void produce(String brokers, String topic) throws Exception {
        Properties to = new Properties();
        to.put("bootstrap.servers", brokers);
        to.put("enable.idempotence", "true");
        StringSerializer strings = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(to, strings, strings)) {
            producer.send(new ProducerRecord<>(topic, "key", "value")).get();
            producer.close(Duration.ofSeconds(5));
        }
    }

    void feature(String name, int level, UpgradeType type) throws Exception {
        admin.updateFeatures(Map.of(name, new FeatureUpdate((short) level, type)),
            new UpdateFeaturesOptions()).all().get();
    }

    /** Levels of all features but the metadata version and the quorum's: one down and up again. */
    void featuresDownAndUp() throws Exception {
        Map<String, FinalizedVersionRange> levels = new TreeMap<>(
            admin.describeFeatures().featureMetadata().get().finalizedFeatures());
        levels.keySet().removeAll(Set.of("metadata.version", "kraft.version"));
        for (Map.Entry<String, FinalizedVersionRange> it : levels.entrySet()) {
            int level = it.getValue().maxVersionLevel();
            if (level > 0) {
                feature(it.getKey(), level - 1, UpgradeType.SAFE_DOWNGRADE);
                feature(it.getKey(), level, UpgradeType.UPGRADE);
            }
        }
    }

    /** Raises every feature to the highest level that the cluster supports. */
    List<String> raiseFeatures(Set<String> but) throws Exception {
        List<String> raised = new ArrayList<>();
        var told = admin.describeFeatures().featureMetadata().get();
        for (String name : new TreeMap<>(told.supportedFeatures()).keySet()) {
            int highest = told.supportedFeatures().get(name).maxVersion();
            FinalizedVersionRange now = told.finalizedFeatures().get(name);
            if (!but.contains(name) && (now == null || now.maxVersionLevel() < highest)) {
                feature(name, highest, UpgradeType.UPGRADE);
                raised.add(name);
            }
        }
        return raised;
    }
}

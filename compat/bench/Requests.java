package kraftd.bench;

import java.io.IOException;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerHeartbeatResponseData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.BrokerRegistrationResponseData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.message.DescribeQuorumRequestData;
import org.apache.kafka.common.message.DescribeQuorumResponseData;
import org.apache.kafka.common.message.IncrementalAlterConfigsRequestData;
import org.apache.kafka.common.message.IncrementalAlterConfigsResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

/** The requests that the measures send to a controller. */
final class Requests {
    /** The broker that is only a name, where one is enough. */
    static final int BROKER = 7;

    private Requests() {}

    /** Writes one record, and tells whether it is committed: only an active controller does that. */
    static boolean write(Connection connection, int value) throws IOException {
        IncrementalAlterConfigsRequestData request = new IncrementalAlterConfigsRequestData();
        var brokers = new IncrementalAlterConfigsRequestData.AlterConfigsResource()
            .setResourceType((byte) 4).setResourceName("");
        brokers.configs().add(new IncrementalAlterConfigsRequestData.AlterableConfig()
            .setName("log.cleaner.threads").setConfigOperation((byte) 0)
            .setValue(Integer.toString(value)));
        request.resources().add(brokers);
        var answer = (IncrementalAlterConfigsResponseData) connection.call(request);
        return answer.responses().size() == 1
            && answer.responses().get(0).errorCode() == Errors.NONE.code();
    }

    /** Creates a topic of one partition. */
    static void createTopic(Connection connection, String name) throws IOException {
        createTopic(connection, name, 1, 1);
    }

    static void createTopic(Connection connection, String name, int partitions, int replicas)
            throws IOException {
        createTopics(connection, name, 1, partitions, replicas);
    }

    /** So many topics at once, whose names begin with this one. */
    static void createTopics(Connection connection, String name, int topics, int partitions,
            int replicas) throws IOException {
        CreateTopicsRequestData request = new CreateTopicsRequestData().setTimeoutMs(60_000);
        for (int i = 0; i < topics; i++) {
            request.topics().add(new CreateTopicsRequestData.CreatableTopic()
                .setName(i == 0 ? name : name + "-" + i).setNumPartitions(partitions)
                .setReplicationFactor((short) replicas));
        }
        var answer = (CreateTopicsResponseData) connection.call(request);
        answer.topics().forEach(topic -> check("CreateTopics", topic.errorCode()));
    }

    /**
     * Registers a broker that is only a name, so that topics have a place and no real broker shares
     * the disk with the controller that is measured. Gives its epoch.
     */
    static long addBroker(Connection connection, String clusterId, int id) throws IOException {
        Uuid directory = Uuid.randomUuid();
        BrokerRegistrationRequestData request = new BrokerRegistrationRequestData()
            .setBrokerId(id).setClusterId(clusterId).setIncarnationId(Uuid.randomUuid())
            .setLogDirs(List.of(directory)).setPreviousBrokerEpoch(-1);
        request.listeners().add(new BrokerRegistrationRequestData.Listener()
            .setName("PLAINTEXT").setHost("localhost").setPort(1).setSecurityProtocol((short) 0));
        request.features().add(feature(MetadataVersion.FEATURE_NAME,
            MetadataVersion.MINIMUM_VERSION.featureLevel(),
            MetadataVersion.latestProduction().featureLevel()));
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            request.features().add(feature(feature.featureName(), (short) 0,
                feature.latestProduction()));
        }
        var registered = (BrokerRegistrationResponseData) connection.call(request);
        check("BrokerRegistration", registered.errorCode());
        if (!Boolean.FALSE.equals(heartbeat(connection, id, registered.brokerEpoch(), false))) {
            throw new IllegalStateException("the broker stays fenced");
        }
        return registered.brokerEpoch();
    }

    /**
     * One heartbeat of a broker that has read everything; returns whether it is fenced now, null when
     * the controller was too busy to look at it.
     */
    static Boolean heartbeat(Connection connection, int broker, long epoch, boolean wantFence)
            throws IOException {
        BrokerHeartbeatRequestData heartbeat = new BrokerHeartbeatRequestData()
            .setBrokerId(broker).setBrokerEpoch(epoch)
            .setCurrentMetadataOffset(Long.MAX_VALUE / 2).setWantFence(wantFence);
        var beaten = (BrokerHeartbeatResponseData) connection.call(heartbeat);
        if (beaten.errorCode() == Errors.REQUEST_TIMED_OUT.code()) {
            return null;
        }
        check("BrokerHeartbeat", beaten.errorCode());
        return beaten.isFenced();
    }

    /** What the leader says of the quorum; null when another one leads, or nobody. */
    static DescribeQuorumResponseData.PartitionData quorum(Connection connection)
            throws IOException {
        DescribeQuorumRequestData request = new DescribeQuorumRequestData();
        request.topics().add(new DescribeQuorumRequestData.TopicData()
            .setTopicName("__cluster_metadata").setPartitions(List.of(
                new DescribeQuorumRequestData.PartitionData().setPartitionIndex(0))));
        var answer = (DescribeQuorumResponseData) connection.call(request);
        if (answer.errorCode() != Errors.NONE.code() || answer.topics().isEmpty()) {
            return null;
        }
        var partition = answer.topics().get(0).partitions().get(0);
        return partition.errorCode() == Errors.NONE.code() ? partition : null;
    }

    private static BrokerRegistrationRequestData.Feature feature(String name, short min, short max) {
        return new BrokerRegistrationRequestData.Feature().setName(name)
            .setMinSupportedVersion(min).setMaxSupportedVersion(max);
    }

    private static void check(String what, short code) {
        if (code != Errors.NONE.code()) {
            throw new IllegalStateException(what + ": " + Errors.forCode(code));
        }
    }
}

package kraftd.compat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType;
import org.apache.kafka.clients.admin.RaftVoterEndpoint;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.config.ConfigResource;

/** Three controllers of a dynamic quorum (1, 2, 3) and three brokers (11, 12, 13) with two
 * directories each: see fixtures/README.md for the order. */
final class DynamicLife {
    private static final String ALICE = "SCRAM-SHA-256=[name=alice,iterations=8192,"
        + "salt=\"MWx2NHBkbnc0ZndxN25vdGN4bTB5Y3p6Zw==\","
        + "saltedpassword=\"mT0yyUUxnlJaC99HXgRTSYlbuqa4FSGtJCJfTMvjYCE=\"]";

    private final FullRecorder recorder;
    private final Cluster cluster;

    DynamicLife(FullRecorder recorder) throws Exception {
        this.recorder = recorder;
        cluster = new Cluster(recorder.jars, recorder.conf, true, 1, 2, 3);
    }

    private void step(FullRecorder.Step step) {
        recorder.step(step);
    }

    void record() throws Exception {
        try (cluster) {
            begin();
            try (Admin controllers = cluster.controllers(); Admin brokers = cluster.brokers()) {
                step(() -> addVoter(controllers, 2));
                step(() -> addVoter(controllers, 3));
                Work work = new Work(brokers);
                administer(work, brokers);
                losses(work);
                loseDirectory(work);
                unregisterBroker(work, brokers);
                changeQuorum();
                lastWords(work);
            }
            cluster.kill(1);
            cluster.stop(2);
            recorder.copy(cluster.directory(1), "dynamic-killed");
            recorder.copy(cluster.directory(2), "dynamic-stopped");
        }
    }

    private void begin() throws Exception {
        for (int id = 1; id <= 3; id++) {
            cluster.controller(id, "metadata.log.max.record.bytes.between.snapshots=12000");
            cluster.format(id, id == 1 ? new String[] {"--standalone", "--add-scram", ALICE}
                : new String[] {"--no-initial-controllers"});
        }
        for (int id = 11; id <= 13; id++) {
            cluster.broker(id, true);
            cluster.format(id);
        }
        cluster.start(1, 2, 3, 11, 12, 13);
    }

    private void addVoter(Admin controllers, int id) throws Exception {
        Servers.await("voter " + id + " is added", () -> Work.quietly(() -> {
            controllers.addRaftVoter(id, cluster.directoryId(id), Set.of(new RaftVoterEndpoint(
                "CONTROLLER", "localhost", cluster.controllerPort(id)))).all().get();
            return true;
        }));
    }

    private void administer(Work work, Admin brokers) throws Exception {
        if (recorder.since(4, 0) && !recorder.since(4, 1)) {
            step(() -> work.feature("eligible.leader.replicas.version", 1,
                UpgradeType.UPGRADE));
        }
        step(() -> work.topic("plain", 3, 3));
        step(() -> work.topic("gone", 1, 1));
        step(() -> work.topic("safe", Map.of("min.insync.replicas", "2"),
            List.of(List.of(11, 12, 13), List.of(12, 13, 11))));
        step(() -> work.topic("moved", Map.of(),
            List.of(List.of(11, 12), List.of(11, 12), List.of(12, 11))));
        step(() -> work.topic("unclean", Map.of("unclean.leader.election.enable", "true"),
            List.of(List.of(11, 12))));
        step(() -> work.grow("plain", 4));
        step(() -> work.configs("plain", 11));
        step(() -> work.quotas());
        step(() -> work.scram());
        step(() -> work.acls());
        try (Admin alice = cluster.alice()) {
            step(() -> new Work(alice).tokens());
        }
        step(() -> Work.produce(cluster.brokerList(), "plain"));
        step(() -> work.delete("gone"));
        step(() -> work.reassign("moved", 2, 12, 13));
        step(() -> work.awaitReassigned());
        step(() -> work.awaitInSync("moved", 12));
        step(() -> changeDirectories(work, brokers));
    }

    /** A replica moves to its broker's other directory; since 4.3 a directory is cordoned. */
    private void changeDirectories(Work work, Admin brokers) throws Exception {
        for (Path path : List.of(cluster.directory(11), cluster.second(11))) {
            step(() -> brokers.alterReplicaLogDirs(Map.of(
                new TopicPartitionReplica("plain", 0, 11), path.toString())).all().get());
            step(() -> Servers.await("moved to " + path, () -> Work.quietly(() -> brokers
                .describeLogDirs(List.of(11)).allDescriptions().get().get(11).get(path.toString())
                .replicaInfos().entrySet().stream().anyMatch(it -> !it.getValue().isFuture()
                    && it.getKey().equals(new TopicPartition("plain", 0))))));
        }
        if (recorder.since(4, 3)) {
            step(() -> work.set(ConfigResource.Type.BROKER, "11", "cordoned.log.dirs",
                cluster.second(11).toString()));
        }
    }

    /** Brokers leave in order and by death until nobody is left, and come back. */
    private void losses(Work work) throws Exception {
        cluster.stop(13);
        step(() -> work.reassign("moved", 0, 12, 13));
        step(() -> work.reassign("moved", 1, 12, 13));
        step(() -> work.reassign("moved", 1));
        cluster.kill(12);
        step(() -> cluster.awaitControllers("Fencing broker 12 "));
        cluster.kill(11);
        step(() -> cluster.awaitControllers("Fencing broker 11 "));
        cluster.start(12);
        step(() -> work.awaitInSync("unclean", 12));
        cluster.start(11, 13);
        step(() -> work.awaitInSync("safe", 11, 12, 13));
        step(() -> work.awaitInSync("unclean", 11));
        step(() -> work.set(ConfigResource.Type.TOPIC, "safe", "min.insync.replicas", "1"));
        step(() -> work.set(ConfigResource.Type.BROKER, "", "min.insync.replicas", "2"));
    }

    /** A file takes the place of broker 13's second directory: the next write to it fails. */
    private void loseDirectory(Work work) throws Exception {
        step(() -> work.topic("on-13", Map.of(),
            List.of(List.of(13), List.of(13), List.of(13))));
        step(() -> work.awaitInSync("on-13", 13));
        Files.move(cluster.second(13), cluster.directory(13).resolveSibling("lost"));
        Files.writeString(cluster.second(13), "");
        step(() -> cluster.awaitControllers("offline"));
    }

    /** Broker 13 dies with a move to it under way, and is forgotten. */
    private void unregisterBroker(Work work, Admin brokers) throws Exception {
        cluster.kill(13);
        step(() -> cluster.awaitControllers("Fencing broker 13 "));
        step(() -> work.reassign("moved", 1, 12, 13));
        step(() -> work.reassign("moved", 2, 11, 13));
        step(() -> brokers.unregisterBroker(13).all().get());
        step(() -> brokers.electLeaders(ElectionType.PREFERRED, null).partitions().get());
    }

    /** The leader dies and comes back; voter 3 is removed and, since 4.4, forgotten. */
    private void changeQuorum() throws Exception {
        int first = cluster.leader(-1);
        cluster.kill(first);
        System.out.println("leaders: " + first + ", " + cluster.leader(first));
        cluster.start(first);
        step(() -> cluster.awaitCaughtUp(first));
        try (Admin controllers = cluster.controllers()) {
            step(() -> controllers.removeRaftVoter(3, cluster.directoryId(3)).all().get());
        }
        cluster.leader(3);
        cluster.stop(3);
        if (recorder.since(4, 4)) {
            step(() -> Servers.await("controller 3 is forgotten", () -> Work.quietly(() -> {
                try (Admin controllers = cluster.controllers()) {
                    controllers.unregisterController(3).all().get();
                    return true;
                }
            })));
        }
    }

    private void lastWords(Work work) throws Exception {
        step(() -> work.featuresDownAndUp());
        step(() -> work.topic("last", 1, 2));
        step(() -> work.quota("producer_byte_rate", null, "user", "alice"));
        step(() -> cluster.awaitCaughtUp(1, 2));
    }
}

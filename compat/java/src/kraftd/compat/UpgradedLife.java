package kraftd.compat;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType;
import org.apache.kafka.common.config.ConfigResource;

/** A controller (1) with a static voter and a broker (2), formatted at an old metadata version and
 * raised level by level: see fixtures/README.md for the order. */
final class UpgradedLife {
    /** Levels at which the records change, and the broker registers anew. */
    private static final Set<Integer> NEW_RECORDS = Set.of(5, 6, 7, 8, 17, 30);
    private static final Set<Integer> LEVELS = Set.of(4, 5, 6, 7, 8, 11, 13, 14, 15, 17, 20, 21, 23,
        26, 29, 30, 31, 33);

    /** The first level whose metadata 4.0 and later can read. */
    private static final int READABLE = 7;

    private final FullRecorder recorder;
    private final Cluster cluster;

    UpgradedLife(FullRecorder recorder) throws Exception {
        this.recorder = recorder;
        cluster = new Cluster(recorder.jars, recorder.conf, false, 1);
    }

    void record() throws Exception {
        int newest = !recorder.since(4, 0) ? 21 : List.of(25, 27, 29, 30, 33).get(recorder.minor);
        try (cluster) {
            begin("3.3-IV3");
            try (Admin brokers = cluster.brokers()) {
                Work work = new Work(brokers);
                rise(work, READABLE, newest);
                step(() -> work.raiseFeatures(Set.of("metadata.version", "kraft.version")));
                if (recorder.since(4, 1)) {
                    step(() -> work.feature("kraft.version", 1, UpgradeType.UPGRADE));
                }
                step(() -> work.topic("last", 1, 1));
            }
            end("full/upgraded");
        }
    }

    /** From the oldest level that 3.9 can be formatted at to the first that 4.0 can read. */
    void recordOld() throws Exception {
        try (cluster) {
            begin("3.3-IV0");
            try (Admin brokers = cluster.brokers()) {
                rise(new Work(brokers), 4, READABLE);
            }
            end("old-levels/raised");
        }
    }

    private void begin(String release) throws Exception {
        cluster.controller(1, "metadata.log.max.record.bytes.between.snapshots=1200");
        cluster.format(1, "--release-version", release);
        cluster.broker(2, false);
        cluster.format(2, "--release-version", release);
        cluster.start(1, 2);
    }

    private void end(String name) throws Exception {
        cluster.stop(2);
        cluster.stop(1);
        DirectoryRecorder.copy(cluster.directory(1), recorder.target.resolve(name));
    }

    private void step(FullRecorder.Step step) {
        recorder.step(step);
    }

    private void rise(Work work, int oldest, int newest) throws Exception {
        live(work, oldest, true);
        int at = oldest;
        for (int level : new TreeSet<>(LEVELS)) {
            if (level <= at || level > newest) {
                continue;
            }
            step(() -> work.feature("metadata.version", level, UpgradeType.UPGRADE));
            at = level;
            if (NEW_RECORDS.contains(level)) {
                cluster.stop(2);
                cluster.start(2);
            }
            step(() -> live(work, level, false));
            // Nothing in the metadata changed between these two: the way down is open.
            if (level == 20) {
                step(() -> work.feature("metadata.version", 19, UpgradeType.SAFE_DOWNGRADE));
            }
        }
        if (at < newest) {
            step(() -> work.feature("metadata.version", newest, UpgradeType.UPGRADE));
        }
    }

    /** The same few things at every level. */
    private void live(Work brokers, int level, boolean first) throws Exception {
        String topic = "level-" + level;
        brokers.topic(topic, Map.of("retention.ms", "" + level * 1000), List.of(List.of(2),
            List.of(2)));
        brokers.grow(topic, 3);
        brokers.set(ConfigResource.Type.TOPIC, topic, "cleanup.policy", "compact");
        brokers.quota("producer_byte_rate", (double) level, "client-id", topic);
        if (first) {
            brokers.acls();
        }
        if (level == 11) {
            brokers.scram();
        }
        if (level == 14) {
            try (Admin alice = cluster.alice()) {
                new Work(alice).tokens();
            }
        }
        if (level % 3 == 0) {
            brokers.topic("gone", 1, 1);
            brokers.delete("gone");
        }
    }
}

package kraftd.compat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.config.ConfigResource;

/** A controller alone with small segments, small snapshots and little to keep: a minute after its
 * start it removes what its oldest snapshots and segments hold. */
final class CleanedLife {
    private final FullRecorder recorder;
    private final Cluster cluster;

    CleanedLife(FullRecorder recorder) throws Exception {
        this.recorder = recorder;
        cluster = new Cluster(recorder.jars, recorder.conf, true, 1);
    }

    void record() throws Exception {
        try (cluster) {
            // Sizes below 8 MB are for tests: 4.1 gave them a name of their own.
            String segments = recorder.since(4, 1) ? "internal.metadata.log.segment.bytes=8192"
                : "metadata.log.segment.bytes=8192";
            cluster.controller(1, "metadata.log.max.record.bytes.between.snapshots=6000",
                "metadata.max.retention.bytes=24000", "metadata.max.retention.ms=-1", segments,
                "metadata.log.segment.min.bytes=8192");
            cluster.format(1, "--standalone");
            cluster.start(1);
            try (Admin controllers = cluster.controllers()) {
                Work work = new Work(controllers);
                change(work, 0, 400);
                awaitCleaned();
                change(work, 400, 440);
                cluster.awaitCaughtUp(1);
            }
            cluster.stop(1);
            recorder.copy(cluster.directory(1), "cleaned");
        }
    }

    private static void change(Work work, int from, int to) throws Exception {
        for (int i = from; i < to; i++) {
            work.set(ConfigResource.Type.BROKER, "", "log.retention.ms", "" + 100_000 * (i + 1));
            if (i % 8 == 0) {
                work.set(ConfigResource.Type.CLIENT_METRICS, "watch-" + i % 64, "interval.ms",
                    "" + 1000 * (i + 1));
            }
        }
    }

    /** The first segment is gone, or about to go. */
    private void awaitCleaned() throws Exception {
        Path log = cluster.directory(1).resolve("__cluster_metadata-0");
        for (int minute = 0; minute < 3; minute++) {
            try {
                Servers.await("the log is cleaned", () ->
                    Files.notExists(log.resolve("00000000000000000000.log")));
                return;
            } catch (IllegalStateException e) {
                // The cleaner comes once a minute.
            }
        }
        try (Stream<Path> files = Files.list(log)) {
            throw new IllegalStateException("not cleaned: " + List.copyOf(
                new TreeSet<>(files.map(Path::getFileName).toList())));
        }
    }
}

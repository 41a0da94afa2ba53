package kraftd.compat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.config.ConfigResource;

/** A controller alone that finds open transactions in its log. Java writes a transaction of a few
 * records in one batch, so that real logs are left open only by chance: here the controller is
 * killed and its own batches are laid out as such a chance would leave them (see {@link Cut}). */
final class AbortedLife {
    private final FullRecorder recorder;
    private final Cluster cluster;

    AbortedLife(FullRecorder recorder) throws Exception {
        this.recorder = recorder;
        cluster = new Cluster(recorder.jars, recorder.conf, false, 1);
    }

    void record() throws Exception {
        try (cluster) {
            cluster.controller(1, "metadata.log.max.record.bytes.between.snapshots=1500");
            cluster.format(1);
            cluster.start(1);
            cluster.kill(1);
            // Until 4.0 it ends at a transaction that it cannot know the metadata version of.
            if (recorder.since(4, 1)) {
                edit(batches -> List.of(batches.get(0), batches.get(1).firstRecords(1)));
                recorder.copy(cluster.directory(1), "aborted-before-bootstrap");
            }

            cluster.start(1);
            try (Admin controllers = cluster.controllers()) {
                change(new Work(controllers), 1, 20);
                cluster.awaitCaughtUp(1);
            }
            cluster.kill(1);
            edit(AbortedLife::reopened);
            recorder.copy(cluster.directory(1), "aborted-open");

            cluster.start(1);
            try (Admin controllers = cluster.controllers()) {
                change(new Work(controllers), 20, 40);
                cluster.awaitCaughtUp(1);
            }
            cluster.stop(1);
            recorder.copy(cluster.directory(1), "aborted");
        }
    }

    private static void change(Work work, int from, int to) throws Exception {
        for (int i = from; i < to; i++) {
            work.set(ConfigResource.Type.BROKER, "", "log.retention.ms", "" + 1000 * i);
            work.set(ConfigResource.Type.CLIENT_METRICS, "watch-" + i % 4, "interval.ms",
                "" + 1000 * i);
        }
    }

    /** Behind the whole log: its transaction's begin again, then batches that set back what was
     * changed since. Applied, they would show. */
    private static List<Cut> reopened(List<Cut> batches) {
        List<Cut> all = new ArrayList<>(batches);
        Cut last = all.get(all.size() - 1);
        Cut begin = all.get(1).firstRecords(1).movedBehind(last);
        all.add(begin);
        List<Cut> old = batches.stream().filter(it -> it.contains("log.retention.ms")
            || it.contains("interval.ms")).limit(6).toList();
        for (Cut batch : old) {
            all.add(batch.movedBehind(all.get(all.size() - 1)));
        }
        return all;
    }

    private interface Edit {
        List<Cut> of(List<Cut> batches);
    }

    /** Rewrites the log; its indexes are built again by the next start. */
    private void edit(Edit edit) throws Exception {
        Path log = cluster.directory(1).resolve("__cluster_metadata-0");
        Path segment = log.resolve("00000000000000000000.log");
        List<Cut> batches = edit.of(Cut.all(Files.readAllBytes(segment)));
        Files.write(segment, Cut.bytes(batches));
        try (Stream<Path> files = Files.list(log)) {
            for (Path file : files.toList()) {
                if (file.toString().endsWith("index")) {
                    Files.delete(file);
                }
            }
        }
    }
}

package kraftd.compat;

import java.io.File;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.image.node.MetadataImageNode;
import org.apache.kafka.image.node.printer.MetadataNodePrinter;
import org.apache.kafka.image.node.printer.MetadataNodeRedactionCriteria;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.ControlRecord;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.internals.RecordsIterator;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.config.DefaultSupportedConfigChecker;

/**
 * Replays metadata files as a Java controller does, with its own loader and its own image, and says
 * the image's own tree: as the metadata shell would print it, if there were one of this release.
 */
final class States {
    private final Consumer<String> say;
    private final MetadataNodeRedactionCriteria redaction;
    private final MetadataBatchLoader loader;
    private MetadataImage image = MetadataImage.EMPTY;

    private States(String secrets, Consumer<String> say) {
        this.say = say;
        this.redaction = secrets.equals("shown")
            ? MetadataNodeRedactionCriteria.Disabled.INSTANCE
            : new MetadataNodeRedactionCriteria.Normal(kafka.server.KafkaRaftServer.configSchema());
        this.loader = new MetadataBatchLoader(new LogContext(), Time.SYSTEM, (text, cause) -> {
            throw new IllegalStateException(text, cause);
        }, (delta, next, manifest) -> image = next, new DefaultSupportedConfigChecker());
    }

    /**
     * "shown" or "masked", a checkpoint to begin with or nothing, a segment or nothing, and offsets
     * (each the last one of a batch): says "at OFFSET" and the tree after each of them. Without
     * offsets it says the tree at the end. "@FILE" among the offsets goes on with another segment.
     */
    static void run(List<String> words, Consumer<String> say) throws Exception {
        States states = new States(words.get(0), say);
        states.loader.resetToImage(MetadataImage.EMPTY);
        if (!words.get(1).isEmpty()) {
            states.checkpoint(new File(words.get(1)));
        }
        List<File> segments = new ArrayList<>();
        TreeSet<Long> wanted = new TreeSet<>();
        for (String word : words.subList(2, words.size())) {
            if (word.startsWith("@")) {
                segments.add(new File(word.substring(1)));
            } else {
                wanted.add(Long.parseLong(word));
            }
        }
        boolean end = wanted.isEmpty();
        if (wanted.remove(states.image.provenance().lastContainedOffset())) {
            states.tree(states.image.provenance().lastContainedOffset());
        }
        for (File segment : segments) {
            states.segment(segment, wanted);
        }
        if (end) {
            states.tree(states.image.provenance().lastContainedOffset());
        } else if (!wanted.isEmpty()) {
            throw new IllegalStateException("no batch ends at " + wanted);
        }
    }

    private static RecordsIterator<ApiMessageAndVersion> batches(FileRecords records) {
        return new RecordsIterator<>(records, new MetadataRecordSerde(), BufferSupplier.NO_CACHING,
            Integer.MAX_VALUE / 2, true, new LogContext());
    }

    /** What a snapshot is to the loader. */
    private void checkpoint(File file) throws Exception {
        String[] name = file.getName().split("[-.]");
        long time = -1;
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY)
            .setSupportedConfigChecker(new DefaultSupportedConfigChecker()).build();
        try (FileRecords records = FileRecords.open(file, false);
                RecordsIterator<ApiMessageAndVersion> batches = batches(records)) {
            while (batches.hasNext()) {
                Batch<ApiMessageAndVersion> batch = batches.next();
                for (ControlRecord control : batch.controlRecords()) {
                    if (control.message() instanceof SnapshotHeaderRecord header) {
                        time = header.lastContainedLogTimestamp();
                    }
                }
                batch.records().forEach(record -> delta.replay(record.message()));
            }
        }
        delta.finishSnapshot();
        image = delta.apply(new MetadataProvenance(Long.parseLong(name[0]) - 1,
            Integer.parseInt(name[1]), time, true));
        loader.resetToImage(image);
    }

    private void segment(File file, TreeSet<Long> wanted) throws Exception {
        try (FileRecords records = FileRecords.open(file, false);
                RecordsIterator<ApiMessageAndVersion> batches = batches(records)) {
            while (batches.hasNext()) {
                Batch<ApiMessageAndVersion> batch = batches.next();
                if (batch.lastOffset() <= image.provenance().lastContainedOffset()) {
                    continue;
                }
                loader.loadBatch(batch, LeaderAndEpoch.UNKNOWN);
                loader.maybeFlushBatches(LeaderAndEpoch.UNKNOWN, true);
                if (wanted.remove(batch.lastOffset())) {
                    tree(batch.lastOffset());
                }
            }
        }
    }

    private void tree(long offset) {
        say.accept("at " + offset);
        Printer printer = new Printer();
        printer.enterNode(MetadataImageNode.NAME);
        new MetadataImageNode(image).print(printer);
    }

    /** As the shell prints; a value is one line here. */
    private final class Printer implements MetadataNodePrinter {
        private int depth;

        @Override
        public MetadataNodeRedactionCriteria redactionCriteria() {
            return redaction;
        }

        @Override
        public void enterNode(String name) {
            line(name + ":");
            depth++;
        }

        @Override
        public void leaveNode() {
            depth--;
        }

        @Override
        public void output(String text) {
            line(text);
        }

        private void line(String text) {
            say.accept("  ".repeat(depth) + text.replace("\n", "\\n"));
        }
    }

    /**
     * FILE: says the whole tree that the metadata shell (in its own release's JVM) shows of it. The
     * steps are those of MetadataShell.run, but for the end of its wait: that one looks at a number
     * which stays 0 when the file was read before the publisher was there.
     */
    static void shell(String file, Consumer<String> say) throws Exception {
        Class<?> builderClass = Class.forName("org.apache.kafka.shell.MetadataShell$Builder");
        Object builder = builderClass.getConstructor().newInstance();
        builderClass.getMethod("setSnapshotPath", String.class).invoke(builder, file);
        Object shell = builderClass.getMethod("build").invoke(builder);
        try {
            Method begin = shell.getClass().getDeclaredMethod("initializeWithSnapshotFileReader");
            begin.setAccessible(true);
            begin.invoke(shell);
            // Read to the end before anything is published: what is published first is the whole.
            Object reader = field(shell, "snapshotFileReader");
            ((Future<?>) field(reader, "caughtUpFuture")).get(60, TimeUnit.SECONDS);
            Object loader = field(shell, "loader");
            Future<?> installed = (Future<?>) loader.getClass().getMethod("installPublishers", List.class)
                .invoke(loader, List.of(field(shell, "publisher")));
            installed.get(60, TimeUnit.SECONDS);
            String shown = shown(field(shell, "state"));
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (shown.contains("Optional.empty\n") && System.nanoTime() < end) {
                Thread.sleep(10);
                shown = shown(field(shell, "state"));
            }
            shown.lines().forEach(say);
        } finally {
            shell.getClass().getMethod("close").invoke(shell);
        }
    }

    private static Object field(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    /** The shell's command "tree /" on its state. */
    private static String shown(Object state) throws Exception {
        Class<?> commands = Class.forName("org.apache.kafka.shell.command.Commands");
        Object parser = commands.getConstructor(boolean.class).newInstance(false);
        Object handler = commands.getMethod("parseCommand", List.class)
            .invoke(parser, List.of("tree", "/"));
        StringWriter text = new StringWriter();
        PrintWriter writer = new PrintWriter(text);
        for (Method method : handler.getClass().getMethods()) {
            if (method.getName().equals("run") && method.getParameterCount() == 3) {
                method.setAccessible(true);
                method.invoke(handler, Optional.empty(), writer, state);
                break;
            }
        }
        writer.flush();
        return text.toString();
    }
}

package kraftd.compat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Records the directories of `full`: lives that write every record that a release can write, and
 * of `old-levels`: metadata versions that later releases do not know. */
public final class FullRecorder {
    final Path jars;
    final Path conf;
    final Path target;
    /** The release: major and minor number. */
    final int major;
    final int minor;

    private FullRecorder(String[] args) {
        jars = Path.of(args[0]);
        conf = Path.of(args[1]);
        target = Path.of(args[2]);
        String[] release = jars.getFileName().toString().split("\\.");
        major = Integer.parseInt(release[0]);
        minor = Integer.parseInt(release[1]);
    }

    /** Arguments: jars (a folder named as the release), logging configurations, target folder and
     * optionally the names of the lives; all of them without names. */
    public static void main(String[] args) throws Exception {
        FullRecorder recorder = new FullRecorder(args);
        List<String> names = args.length > 3 ? List.of(args).subList(3, args.length)
            : List.of("dynamic", "upgraded", "aborted", "cleaned", "old-levels");
        for (String name : names) {
            long start = System.nanoTime();
            switch (name) {
                case "dynamic" -> new DynamicLife(recorder).record();
                case "upgraded" -> new UpgradedLife(recorder).record();
                case "old-levels" -> {
                    if (!recorder.since(4, 0)) {
                        new UpgradedLife(recorder).recordOld();
                    }
                }
                case "aborted" -> new AbortedLife(recorder).record();
                case "cleaned" -> new CleanedLife(recorder).record();
                default -> throw new IllegalArgumentException("no such life: " + name);
            }
            System.out.println(name + ": " + (System.nanoTime() - start) / 1_000_000_000 + " s");
        }
        if (!recorder.failed.isEmpty()) {
            throw new IllegalStateException(String.join("\n", recorder.failed));
        }
    }

    interface Step {
        void take() throws Exception;
    }

    private final List<String> failed = new ArrayList<>();

    /** A step that fails is told at once, with its place, and the life goes on: one run tells all
     * that a release refuses. The recording fails at its end. */
    void step(Step step) {
        try {
            step.take();
        } catch (Exception e) {
            for (StackTraceElement at : e.getStackTrace()) {
                if (at.getClassName().startsWith("kraftd") && !at.getMethodName().equals("step")) {
                    failed.add(at + ": " + e.getMessage());
                    System.err.println(failed.get(failed.size() - 1));
                    break;
                }
            }
        }
    }

    boolean since(int major, int minor) {
        return this.major > major || this.major == major && this.minor >= minor;
    }

    void copy(Path from, String name) throws Exception {
        DirectoryRecorder.copy(from, target.resolve("full").resolve(name));
    }
}

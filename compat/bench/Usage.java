package kraftd.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** What a process used, as Linux tells it. */
record Usage(double cpuMs, double residentMb, double peakMb, int threads) {
    /** Ticks a second of the times in /proc/PID/stat: 100 on every Linux that Kafka runs on. */
    private static final int TICKS = 100;

    static Usage of(Process process) throws IOException {
        Path proc = Path.of("/proc", Long.toString(process.pid()));
        List<String> status = Files.readAllLines(proc.resolve("status"));
        return new Usage(cpuMs(proc), kib(status, "VmRSS:") * 1024 / 1e6,
            kib(status, "VmHWM:") * 1024 / 1e6, (int) kib(status, "Threads:"));
    }

    /**
     * CPU time since the start. The scheduler's figures are exact but know only living threads; the
     * whole process' are rounded down to ticks but know all: the greater is the nearer one.
     */
    private static double cpuMs(Path proc) throws IOException {
        double living = 0;
        try (Stream<Path> tasks = Files.list(proc.resolve("task"))) {
            for (Path task : tasks.toList()) {
                try {
                    living += Double.parseDouble(
                        Files.readString(task.resolve("schedstat")).split(" ")[0]) / 1e6;
                } catch (IOException e) {
                    // The thread ended meanwhile.
                }
            }
        }
        return Math.max(wholeMs(proc), living);
    }

    /** CPU time since the start in whole ticks, of threads that ended too: for differences. */
    static double wholeMs(Process process) throws IOException {
        return wholeMs(Path.of("/proc", Long.toString(process.pid())));
    }

    private static double wholeMs(Path proc) throws IOException {
        String stat = Files.readString(proc.resolve("stat"));
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        double ticks = Double.parseDouble(fields[11]) + Double.parseDouble(fields[12]);
        return ticks * 1000 / TICKS;
    }

    private static double kib(List<String> status, String key) {
        return status.stream().filter(line -> line.startsWith(key))
            .mapToDouble(line -> Double.parseDouble(line.split("\\s+")[1]))
            .findFirst().orElseThrow(() -> new IllegalStateException(key + " is missing"));
    }
}

package kraftd.compat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Plays transcript files against the real kafka.tools.StorageTool, each command in a JVM of its
 * own, and writes what it answered back into the file. The format is told in fixtures/README.md.
 */
public final class StorageToolRecorder {
    private static final Pattern UUID =
        Pattern.compile("(?<![A-Za-z0-9_.+/-])[A-Za-z0-9_-]{22}(?![A-Za-z0-9_+/=-])");

    private final String jars;
    private final Path logging;
    private Path dir;
    private String input;
    private List<String> output;
    private List<String> files;

    private StorageToolRecorder(String jars, Path logging) {
        this.jars = jars;
        this.logging = logging;
    }

    public static void main(String[] args) throws Exception {
        StorageToolRecorder recorder = new StorageToolRecorder(args[0], Path.of(args[1]));
        for (int i = 2; i < args.length; i++) {
            recorder.play(Path.of(args[i]));
        }
    }

    private void play(Path transcript) throws Exception {
        dir = Files.createTempDirectory("transcript");
        input = "";
        output = new ArrayList<>();
        files = new ArrayList<>();
        List<String> config = new ArrayList<>();
        for (String line : Files.readAllLines(transcript)) {
            if (line.startsWith("config| ")) {
                config.add(line.substring(8));
            } else if (!config.isEmpty()) {
                writeConfig(config);
                config.clear();
            }
            if (line.startsWith("$ ")) {
                output.add(line);
                input += line + "\n";
                run(line.substring(2));
            } else if (line.startsWith("! ")) {
                output.add(line);
                prepare(line.substring(2));
            } else if (line.isEmpty() || line.startsWith("#") || line.startsWith("config| ")) {
                output.add(line);
                input += line + "\n";
            }
        }
        Files.write(transcript, output);
        System.out.println(transcript);
        Servers.remove(dir);
    }

    private void writeConfig(List<String> lines) throws IOException {
        String text = String.join("\n", lines) + "\n";
        Files.writeString(dir.resolve("server.properties"), text.replace("<dir>", dir.toString()));
    }

    /** Steps between commands: rm PATH, mkdir PATH, write PATH TEXT (with \n for a line end). */
    private void prepare(String step) throws IOException {
        String[] words = step.split(" ", 3);
        Path path = dir.resolve(words[1]);
        switch (words[0]) {
            case "rm" -> Servers.remove(path);
            case "mkdir" -> Files.createDirectories(path);
            case "write" -> {
                Files.createDirectories(path.getParent());
                Files.writeString(path, words[2].replace("\\n", "\n"));
            }
            default -> throw new IllegalArgumentException("no such step: " + step);
        }
    }

    private void run(String line) throws Exception {
        List<String> command = new ArrayList<>(List.of("java", "-Xmx128m", "-XX:TieredStopAtLevel=1",
            "-Dlog4j2.configurationFile=" + logging, "-Dlog4j.configuration=" + logging.toUri(),
            "-cp", jars + "/*", "kafka.tools.StorageTool"));
        for (String word : line.trim().split(" +")) {
            command.add(word.replace("<dir>", dir.toString()));
        }
        Path out = Files.createTempFile("out", null);
        Path err = Files.createTempFile("err", null);
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("COLUMNS", "80");
        Process process = builder.redirectOutput(out.toFile()).redirectError(err.toFile()).start();
        if (!process.waitFor(60, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new IllegalStateException("no end after 60 s: " + line);
        }
        emit("out", Files.readString(out, StandardCharsets.UTF_8));
        emit("err", Files.readString(err, StandardCharsets.UTF_8));
        output.add("exit| " + process.exitValue());
        emitFiles();
        Files.delete(out);
        Files.delete(err);
    }

    private void emit(String name, String text) {
        for (String line : text.lines().toList()) {
            // Where Java dies of an exception, its message is a fact and its stack is not.
            if (!line.startsWith("\tat ") && !line.startsWith("\t... ")) {
                output.add((name + "| " + normalise(line)).stripTrailing());
            }
        }
    }

    /** The files below the directory, told only when they differ from the last time. */
    private void emitFiles() throws IOException {
        List<String> before = files;
        List<String> kept = output;
        output = new ArrayList<>();
        listFiles();
        files = output;
        output = kept;
        if (!files.equals(before)) {
            output.addAll(files.isEmpty() ? List.of("file| none") : files);
        }
    }

    private void listFiles() throws IOException {
        try (Stream<Path> all = Files.walk(dir)) {
            for (Path path : all.sorted().toList()) {
                if (!Files.isRegularFile(path) || path.endsWith("server.properties")) {
                    continue;
                }
                output.add("file| " + dir.relativize(path) + " " + Files.size(path));
                if (path.endsWith("meta.properties")) {
                    emit("meta", Files.readString(path));
                }
            }
        }
    }

    /** Directories and ids made by chance differ from run to run; ids given by us stay. */
    private String normalise(String line) {
        line = line.replace(dir.toString(), "<dir>");
        line = line.replaceAll("^#[A-Z][a-z]{2} [A-Z][a-z]{2} \\d\\d? .*$", "#<date>");
        line = line.replaceAll("^\\[\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d,\\d{3}\\]", "[<time>]");
        Set<String> given = new HashSet<>();
        for (Matcher known = UUID.matcher(input); known.find();) {
            given.add(known.group());
        }
        return UUID.matcher(line).replaceAll(found ->
            given.contains(found.group()) || !looksRandom(found.group())
                ? Matcher.quoteReplacement(found.group()) : "<uuid>");
    }

    private static boolean looksRandom(String word) {
        return word.chars().anyMatch(Character::isUpperCase) && word.chars().anyMatch(Character::isLowerCase)
            || word.chars().anyMatch(Character::isDigit);
    }
}

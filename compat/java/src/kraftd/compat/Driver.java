package kraftd.compat;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * Does the jobs of many command line tools in one JVM, since starting a JVM is the dear part.
 *
 * <p>One job a line on stdin, its words parted by tabs. The answer is any number of lines that
 * start with "| ", written as they come to be known, and then "ok" or "failed REASON".
 */
public final class Driver {
    private Driver() {}

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Jobs jobs = new Jobs(line -> out.println("| " + line))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                List<String> words = Arrays.asList(line.split("\t", -1));
                try {
                    jobs.run(words.get(0), words.subList(1, words.size()));
                    out.println("ok");
                } catch (Exception | LinkageError e) {
                    out.println("failed " + oneLine(e));
                }
            }
        }
        // Client threads that wait for a server that is gone must not hold the JVM.
        Runtime.getRuntime().halt(0);
    }

    private static String oneLine(Throwable error) {
        Throwable cause = error.getCause() == null ? error : error.getCause();
        return (cause.getClass().getSimpleName() + ": " + cause.getMessage()).replace('\n', ' ');
    }
}

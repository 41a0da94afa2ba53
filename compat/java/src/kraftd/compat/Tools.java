package kraftd.compat;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.apache.kafka.common.utils.internals.Exit;

/** Runs the main class behind a Kafka shell script inside this JVM and says what it printed. */
final class Tools {
    private Tools() {}

    /** What a tool's call to exit turns into. */
    private static final class Exited extends RuntimeException {
        final int status;

        Exited(int status) {
            super("exit " + status, null, false, false);
            this.status = status;
        }
    }

    /** CLASS STDIN-FILE-OR-EMPTY ARGUMENTS...: says "out LINE", "err LINE" and last "exit STATUS". */
    static void run(List<String> words, Consumer<String> say) throws Exception {
        PrintStream out = System.out;
        PrintStream err = System.err;
        InputStream in = System.in;
        ByteArrayOutputStream outBytes = new ByteArrayOutputStream();
        ByteArrayOutputStream errBytes = new ByteArrayOutputStream();
        int status;
        try {
            System.setOut(new PrintStream(outBytes, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(errBytes, true, StandardCharsets.UTF_8));
            System.setIn(words.get(1).isEmpty() ? new ByteArrayInputStream(new byte[0])
                : new ByteArrayInputStream(Files.readAllBytes(Path.of(words.get(1)))));
            Exit.setExitProcedure((code, message) -> {
                throw new Exited(code);
            });
            List<Runnable> hooks = new ArrayList<>();
            Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
            status = call(words.get(0), words.subList(2, words.size()).toArray(String[]::new));
            // What a tool does when its JVM ends, as closing its producer.
            hooks.forEach(Runnable::run);
        } finally {
            Exit.resetExitProcedure();
            Exit.resetShutdownHookAdder();
            System.setOut(out);
            System.setErr(err);
            System.setIn(in);
        }
        outBytes.toString(StandardCharsets.UTF_8).lines().forEach(line -> say.accept("out " + line));
        errBytes.toString(StandardCharsets.UTF_8).lines().forEach(line -> say.accept("err " + line));
        say.accept("exit " + status);
    }

    private static int call(String tool, String[] args) throws Exception {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) args);
            return 0;
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Exited exited) {
                return exited.status;
            }
            e.getCause().printStackTrace();
            return 1;
        }
    }
}

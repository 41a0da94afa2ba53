package kraftd.compat;

import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;

/**
 * Draws quotas, pauses and charges from a seed and writes down what Java's controller mutation
 * quota says of each. The format is told in fixtures/README.md.
 */
public final class QuotaRecorder {
    private static final String[] USERS = {"-", "*", "alice", "bob"};
    private static final String[] CLIENTS = {"-", "*", "app", "cli"};

    /** A clock that stands still until it is told. */
    private static final class Hands implements Time {
        long ms = 1_700_000_000_000L;

        @Override
        public long milliseconds() {
            return ms;
        }

        @Override
        public long nanoseconds() {
            return ms * 1_000_000;
        }

        @Override
        public void sleep(long more) {
            ms += more;
        }

        @Override
        public void waitObject(Object o, java.util.function.Supplier<Boolean> c, long deadline) {
            throw new UnsupportedOperationException();
        }
    }

    private QuotaRecorder() {}

    /** Arguments: the folder. */
    public static void main(String[] args) throws Exception {
        List<String> out = new ArrayList<>();
        for (int seed = 1; seed <= 12; seed++) {
            trace(seed, out);
        }
        Path folder = Files.createDirectories(Path.of(args[0]));
        Files.write(folder.resolve("mutations.tsv"), out);
        System.exit(0);
    }

    private static void trace(int seed, List<String> out) throws Exception {
        Random random = new Random(seed);
        Hands time = new Hands();
        int windows = 1 + random.nextInt(11);
        int seconds = 1 + random.nextInt(2);
        out.add("start\t" + windows + "\t" + seconds);
        ControllerMutationQuotaManager manager = new ControllerMutationQuotaManager(
            new ClientQuotaManagerConfig(windows, seconds), new Metrics(new MetricConfig(),
                List.of(), time), time, "quotas-" + seed, Optional.empty());
        for (int step = 0; step < 400; step++) {
            time.ms += random.nextInt(3) == 0 ? random.nextInt(20_000) : 1 + random.nextInt(900);
            String at = Long.toString(time.ms - 1_700_000_000_000L);
            if (step % 8 == 0) {
                out.add(at + "\t" + quota(manager, random));
            } else {
                out.add(at + "\t" + charge(manager, random));
            }
        }
    }

    private static String quota(ControllerMutationQuotaManager manager, Random random) {
        String user = USERS[random.nextInt(4)];
        String client = CLIENTS[user.equals("-") ? 1 + random.nextInt(3) : random.nextInt(4)];
        Optional<ConfigEntity> userEntity = entity(user,
            ClientQuotaManager.DEFAULT_USER_ENTITY, new ClientQuotaManager.UserEntity(user));
        Optional<ConfigEntity> clientEntity = entity(client,
            ClientQuotaManager.DEFAULT_USER_CLIENT_ID, new ClientQuotaManager.ClientIdEntity(client));
        boolean remove = random.nextInt(3) == 0;
        double rate = random.nextInt(2) == 0 ? 1 + random.nextInt(9) : random.nextDouble() * 4;
        manager.updateQuota(userEntity, clientEntity,
            remove ? Optional.empty() : Optional.of(Quota.upperBound(rate)));
        return String.join("\t", "quota", user, client, remove ? "-" : Double.toString(rate));
    }

    private static Optional<ConfigEntity> entity(String name, ConfigEntity any, ConfigEntity own) {
        return switch (name) {
            case "-" -> Optional.empty();
            case "*" -> Optional.of(any);
            default -> Optional.of(own);
        };
    }

    private static String charge(ControllerMutationQuotaManager manager, Random random)
        throws Exception {
        String user = USERS[2 + random.nextInt(2)];
        String client = CLIENTS[2 + random.nextInt(2)];
        Session session = new Session(new KafkaPrincipal("User", user),
            InetAddress.getLoopbackAddress());
        boolean strict = random.nextInt(3) > 0;
        ControllerMutationQuota quota = strict ? manager.newStrictQuotaFor(session, client)
            : manager.newPermissiveQuotaFor(session, client);
        int items = 1 + random.nextInt(3);
        StringBuilder cells = new StringBuilder("charge\t" + user + "\t" + client + "\t"
            + (strict ? "strict" : "permissive"));
        for (int i = 0; i < items; i++) {
            int partitions = 1 + random.nextInt(12);
            String outcome = "ok";
            try {
                quota.record(partitions);
            } catch (ThrottlingQuotaExceededException e) {
                outcome = "refused";
            }
            cells.append("\t").append(partitions).append(" ").append(outcome);
        }
        return cells.append("\t").append(quota.throttleTime()).toString();
    }
}

package kraftd.compat;

import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.MetricValueProvider;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.internals.CidrUtils;

/**
 * Writes down what Kafka's standard authorizer decides: random entries from a small world, so that
 * they meet each other, and random questions. The format is told in fixtures/README.md.
 */
public final class AuthorizerRecorder {
    private static final int SETS = 120;
    private static final int QUESTIONS = 25;
    private static final String[] NAMES = {"a", "ab", "abc", "abd", "b", "*", "*a", "é", "éa", "ab-c"};
    private static final String[] PRINCIPALS = {"User:u", "User:v", "User:*", "Group:u", "User:u:x"};
    private static final String[] HOSTS = {"*", "*", "10.0.0.1", "10.0.0.0/8", "10.0.0.1/32",
        "0.0.0.0/0", "0:0:0:0:0:0:0:1", "::1", "::/0", "2001:db8::/32", "2001:db8::/33", "10.0.0.0/33"};
    private static final String[] ADDRESSES = {"10.0.0.1", "10.255.0.1", "11.0.0.1", "0.0.0.0", "::1",
        "2001:db8::1", "2001:db8:8000::1", "::ffff:10.0.0.1"};
    private static final String[] BLOCKS = {"10.0.0.0/8", "10.9.9.9/8", "10.0.0.1/32", "10.0.0.1/31",
        "0.0.0.0/0", "255.255.255.255/1", "10.0.0.0/33", "10.0.0.256/8", "10.0.0/8", "10.0.0.0/",
        "/8", "10.0.0.0/8/9", "10.0.0.0/-1", "10.0.0.0/008", "10.0.0.0/08", "010.000.000.001/32",
        "1000.0.0.0/8", "a.b.c.d/8", "*/8", "/", "2001:db8::/32", "2001:db8:0:0:0:0:0:0/32", "::/0",
        "::1/128", "2001:db8::/129", "2001:db8::/-1", "2001:db8::/x", "2001:db8::/",
        "2001:db8::/+32", "2001:db8::/032", "2001:DB8::/32", "2001:db8::1:2:3:4:5:6:7/64",
        "::ffff:1.2.3.4/96", "[2001:db8::]/32", "[2001:db8::/32", "g::/8", "::1.2.3.4/96",
        "2001:db8::/32/1", "fe80::1%1/64", "10.0.0.0:80/8"};

    private AuthorizerRecorder() {}

    /** Arguments: the file to write. */
    public static void main(String[] args) throws Exception {
        List<String> out = new ArrayList<>();
        Random random = new Random(4400);
        for (int i = 0; i < SETS; i++) {
            record(random, out);
        }
        for (String block : BLOCKS) {
            block(block, out);
        }
        Path file = Path.of(args[0]);
        Files.createDirectories(file.getParent());
        Files.write(file, out);
    }

    private static String one(Random random, String... of) {
        return of[random.nextInt(of.length)];
    }

    private static void record(Random random, List<String> out) throws Exception {
        String superUsers = one(random, "", "", "User:v", "User:v;Group:u", " User:u:x ;");
        String allow = one(random, "true", "false");
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.configure(Map.of("super.users", superUsers, "node.id", "1",
            "allow.everyone.if.no.acl.found", allow));
        authorizer.withPluginMetrics(new NoMetrics());
        authorizer.completeInitialLoad();
        out.add(String.join("\t", "set", superUsers.trim(), allow));
        Set<StandardAcl> known = new HashSet<>();
        int count = random.nextInt(14);
        for (int i = 0; i < count; i++) {
            StandardAcl acl = acl(random);
            if (known.add(acl)) {
                authorizer.addAcl(new Uuid(1, i + 1), acl);
                out.add(String.join("\t", "acl", "" + acl.resourceType().code(), acl.resourceName(),
                    "" + acl.patternType().code(), acl.principal(), acl.host(),
                    "" + acl.operation().code(), "" + acl.permissionType().code()));
            }
        }
        for (int i = 0; i < QUESTIONS; i++) {
            ask(random, authorizer, out);
        }
    }

    private static StandardAcl acl(Random random) {
        return new StandardAcl(type(random), one(random, NAMES),
            random.nextInt(3) == 0 ? PatternType.PREFIXED : PatternType.LITERAL,
            one(random, PRINCIPALS), one(random, HOSTS),
            AclOperation.fromCode((byte) (2 + random.nextInt(12))),
            random.nextInt(4) == 0 ? AclPermissionType.DENY : AclPermissionType.ALLOW);
    }

    private static ResourceType type(Random random) {
        return random.nextInt(4) == 0 ? ResourceType.GROUP : ResourceType.TOPIC;
    }

    private static void ask(Random random, StandardAuthorizer authorizer, List<String> out)
        throws Exception {
        String[] principal = one(random, "User:u", "User:u", "User:v", "Group:u", "User:u:x",
            "User:w").split(":", 2);
        String address = one(random, ADDRESSES);
        AclOperation operation = AclOperation.fromCode((byte) (3 + random.nextInt(11)));
        ResourceType type = type(random);
        String name = one(random, NAMES);
        Action action = new Action(operation, new ResourcePattern(type, name, PatternType.LITERAL),
            1, false, false);
        KafkaPrincipal who = new KafkaPrincipal(principal[0], principal[1]);
        Context context = new Context(who, InetAddress.getByName(address));
        String answer = authorizer.authorize(context, List.of(action)).get(0).name();
        out.add(String.join("\t", "ask", principal[0], principal[1], address,
            "" + operation.code(), "" + type.code(), name, answer));
    }

    private static void block(String block, List<String> out) throws Exception {
        String outcome = "";
        try {
            CidrUtils.validate(block);
        } catch (IllegalArgumentException e) {
            outcome = e.getMessage();
        }
        out.add(String.join("\t", "block", block, outcome));
        for (String address : ADDRESSES) {
            String host = InetAddress.getByName(address).getHostAddress();
            out.add(String.join("\t", "within", block, address,
                "" + CidrUtils.isInRange(host, block)));
        }
    }

    private record Context(KafkaPrincipal principal, InetAddress clientAddress)
        implements AuthorizableRequestContext {
        @Override
        public String listenerName() {
            return "CONTROLLER";
        }

        @Override
        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        @Override
        public int requestType() {
            return 19;
        }

        @Override
        public int requestVersion() {
            return 7;
        }

        @Override
        public String clientId() {
            return "recorder";
        }

        @Override
        public int correlationId() {
            return 1;
        }
    }

    private static final class NoMetrics implements PluginMetrics {
        private final Metrics metrics = new Metrics();

        @Override
        public MetricName metricName(String name, String about, LinkedHashMap<String, String> tags) {
            return metrics.metricName(name, "authorizer", about, tags);
        }

        @Override
        public void addMetric(MetricName name, MetricValueProvider<?> value) {}

        @Override
        public void removeMetric(MetricName name) {}

        @Override
        public Sensor addSensor(String name) {
            return metrics.sensor(name);
        }

        @Override
        public void removeSensor(String name) {}
    }
}

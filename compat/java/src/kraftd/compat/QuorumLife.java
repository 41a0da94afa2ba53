package kraftd.compat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;

/**
 * A static quorum (1, 2 and 3) that becomes a dynamic one, grows by itself and loses its leader:
 * see fixtures/README.md for the order. What the tools print goes to stdout.
 */
final class QuorumLife {
    private static final String QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand";
    private static final String FEATURES = "org.apache.kafka.tools.FeatureCommand";
    /** Its directory id is made up, and nothing listens on its port. */
    private static final String STRANGER = "AAAAAAAAAAAAAAAAAAAAEQ";

    private final Servers servers;
    private final Recording recording;
    private final Map<Integer, Integer> ports = new HashMap<>();
    private final Map<Integer, Proxy> proxies = new HashMap<>();
    private final Map<Integer, Process> running = new HashMap<>();
    private int starts;

    QuorumLife(Servers servers, Recording recording) throws Exception {
        this.servers = servers;
        this.recording = recording;
        for (int id = 1; id <= 4; id++) {
            ports.put(id, Servers.freePort());
            proxies.put(id, new Proxy(recording, id, ports.get(id)));
        }
    }

    void live() throws Exception {
        recording.step("controllers 1, 2 and 3, static voters, start and elect");
        for (int id = 1; id <= 3; id++) {
            servers.format(config(id));
        }
        for (int id = 1; id <= 3; id++) {
            start(id);
        }
        int leader = leader();
        recording.step("voters change while kraft.version is 0");
        refusals(leader);
        recording.step("kraft.version becomes 1");
        tool(FEATURES, "upgrade", "--feature", "kraft.version=2");
        // Until every voter has told the leader what it supports, this is refused.
        Servers.await("all voters support it",
            () -> tool(FEATURES, "upgrade", "--feature", "kraft.version=1", "--dry-run") == 0);
        tool(FEATURES, "upgrade", "--feature", "kraft.version=1");
        tool(FEATURES, "upgrade", "--feature", "kraft.version=1");
        tool(FEATURES, "downgrade", "--feature", "kraft.version=0");
        tool(QUORUM, "describe", "--status");
        recording.step("voters change in ways that are refused");
        refusals(leader());
        recording.step("controller 4 joins by itself");
        servers.format(config(4), "--no-initial-controllers");
        int before = recording.answered("AddRaftVoter");
        start(4);
        Servers.await("controller 4 joins", () -> recording.answered("AddRaftVoter") > before
            && voters() == 4);
        recording.step("controller 4 loses its disk and joins again");
        Servers.stop(running.get(4));
        Servers.remove(servers.dir.resolve("controller-4"));
        servers.format(config(4), "--no-initial-controllers");
        int removed = recording.answered("RemoveRaftVoter");
        int added = recording.answered("AddRaftVoter");
        start(4);
        Servers.await("controller 4 joins again", () -> recording.answered("RemoveRaftVoter") > removed
            && recording.answered("AddRaftVoter") > added && voters() == 4);
        tool(QUORUM, "describe", "--replication");
        leaderGoes();
        recording.step("all stop");
        for (Process process : running.values()) {
            process.destroy();
        }
        for (Process process : running.values()) {
            Servers.stop(process);
        }
        for (Proxy proxy : proxies.values()) {
            proxy.close();
        }
    }

    private void leaderGoes() throws Exception {
        int leader = leader();
        recording.step("the leader is removed");
        tool(QUORUM, "remove-controller", "-i", "" + leader, "-d", directory(leader));
        Servers.await("another leader", () -> leaderNow() != leader && leaderNow() >= 0);
        tool(QUORUM, "describe", "--status");
        recording.step("it is added again, and removed");
        Path config = configs.get(leader);
        Servers.await("it has caught up", () -> tool(config, QUORUM, "add-controller") == 0);
        tool(config, QUORUM, "add-controller");
        tool(QUORUM, "remove-controller", "-i", "" + leader, "-d", directory(leader));
    }

    /** What a leader refuses at kraft.version 0, and again at 1: other errors then. */
    private void refusals(int leader) throws Exception {
        String address = "\"listeners\":[{\"name\":\"CONTROLLER\",\"host\":\"localhost\",\"port\":1}]";
        String voter = "\"voterId\":9,\"voterDirectoryId\":\"" + STRANGER + "\"";
        String add = "{\"clusterId\":null,\"timeoutMs\":5000," + voter + "," + address + "}";
        int follower = leader % 3 + 1;
        call(follower, "AddRaftVoter", 0, add);
        call(follower, "RemoveRaftVoter", 0, "{\"clusterId\":null," + voter + "}");
        call(leader, "AddRaftVoter", 0, add.replace("null", "\"other\""));
        call(leader, "AddRaftVoter", 0, add.replace("\"voterId\":9", "\"voterId\":-1"));
        call(leader, "AddRaftVoter", 0, add.replace(STRANGER, "AAAAAAAAAAAAAAAAAAAAAA"));
        call(leader, "AddRaftVoter", 0, add.replace("\"CONTROLLER\"", "\"OTHER\""));
        call(leader, "AddRaftVoter", 0, add);
        String acked = "{\"ackWhenCommitted\":false," + add.substring(1);
        call(leader, "AddRaftVoter", 1, acked.replace("\"voterId\":9", "\"voterId\":" + follower));
        call(leader, "RemoveRaftVoter", 0, "{\"clusterId\":\"other\"," + voter + "}");
        call(leader, "RemoveRaftVoter", 0,
            "{\"clusterId\":null," + voter.replace("\"voterId\":9", "\"voterId\":-1") + "}");
        call(leader, "RemoveRaftVoter", 0, "{\"clusterId\":null," + voter + "}");
        call(leader, "RemoveRaftVoter", 0, "{\"clusterId\":null,"
            + voter.replace("\"voterId\":9", "\"voterId\":" + follower) + "}");
        update(leader, follower);
    }

    private void update(int leader, int follower) throws Exception {
        String version = "\"kRaftVersionFeature\":{\"minSupportedVersion\":0,"
            + "\"maxSupportedVersion\":1}";
        String update = "{\"clusterId\":\"" + Servers.CLUSTER + "\",\"currentLeaderEpoch\":"
            + epoch() + ",\"voterId\":9,\"voterDirectoryId\":\"" + STRANGER + "\","
            + "\"listeners\":[{\"name\":\"CONTROLLER\",\"host\":\"localhost\",\"port\":1}],"
            + version + "}";
        call(follower, "UpdateRaftVoter", 0, update);
        call(leader, "UpdateRaftVoter", 0, update.replace(Servers.CLUSTER, "other"));
        call(leader, "UpdateRaftVoter", 0, update.replaceAll("Epoch\":\\d+", "Epoch\":0"));
        call(leader, "UpdateRaftVoter", 0, update.replaceAll("Epoch\":\\d+", "Epoch\":99"));
        call(leader, "UpdateRaftVoter", 0, update.replace("\"CONTROLLER\"", "\"OTHER\""));
        call(leader, "UpdateRaftVoter", 0, update.replace("ersion\":1", "ersion\":-1"));
        call(leader, "UpdateRaftVoter", 0, update.replace("Version\":0", "Version\":2")
            .replace("Version\":1", "Version\":2"));
        call(leader, "UpdateRaftVoter", 0, update);
    }

    private void call(int id, String api, int version, String request) throws Exception {
        try (Wire wire = new Wire("localhost", proxies.get(id).port())) {
            System.out.println("    " + id + " " + api + " " + version + " " + request);
            System.out.println("      " + wire.call(api, (short) version, request).json());
        }
    }

    private final Map<Integer, Path> configs = new HashMap<>();

    private String bootstrap() {
        return "localhost:" + proxies.get(1).port() + ",localhost:" + proxies.get(2).port()
            + ",localhost:" + proxies.get(3).port();
    }

    private Path config(int id) throws Exception {
        List<String> lines = new ArrayList<>(List.of("process.roles=controller", "node.id=" + id,
            "controller.listener.names=CONTROLLER",
            "listeners=CONTROLLER://localhost:" + ports.get(id),
            "advertised.listeners=CONTROLLER://localhost:" + proxies.get(id).port(),
            "log.dirs=" + servers.dir.resolve("controller-" + id),
            "metadata.max.idle.interval.ms=10000"));
        if (id == 4) {
            lines.add("controller.quorum.bootstrap.servers=" + bootstrap());
            lines.add("controller.quorum.auto.join.enable=true");
        } else {
            StringBuilder voters = new StringBuilder("controller.quorum.voters=");
            for (int voter = 1; voter <= 3; voter++) {
                voters.append(voter == 1 ? "" : ",").append(voter).append("@localhost:")
                    .append(proxies.get(voter).port());
            }
            lines.add(voters.toString());
        }
        Path config =
            servers.config("controller-" + id + "-" + starts++, lines.toArray(String[]::new));
        configs.put(id, config);
        return config;
    }

    private void start(int id) throws Exception {
        Path config = config(id);
        running.put(id, servers.start(config));
        servers.awaitLog(config, "Kafka Server started");
    }

    private String directory(int id) throws Exception {
        return Files.readAllLines(servers.dir.resolve("controller-" + id).resolve("meta.properties"))
            .stream().filter(line -> line.startsWith("directory.id=")).findFirst().orElseThrow()
            .substring("directory.id=".length());
    }

    private int tool(String main, String... args) {
        List<String> words = new ArrayList<>(List.of(main, "", "--bootstrap-controller", bootstrap()));
        words.addAll(List.of(args));
        return tool(words);
    }

    private int tool(Path config, String main, String command) {
        return tool(List.of(main, "", "--command-config", config.toString(),
            "--bootstrap-controller", bootstrap(), command));
    }

    /** Runs a tool, prints what it says, and returns its exit code. */
    private static int tool(List<String> words) {
        List<String> said = new ArrayList<>();
        try {
            Tools.run(words, said::add);
        } catch (Exception e) {
            throw new IllegalStateException(words + " did not run", e);
        }
        System.out.println("    $ " + String.join(" ", words.subList(2, words.size())));
        said.removeIf(line -> line.startsWith("err \tat "));
        said.forEach(line -> System.out.println("      " + line));
        return Integer.parseInt(said.get(said.size() - 1).substring("exit ".length()));
    }

    private Admin admin() {
        Properties to = new Properties();
        to.put("bootstrap.controllers", bootstrap());
        to.put("request.timeout.ms", "5000");
        to.put("default.api.timeout.ms", "10000");
        return Admin.create(to);
    }

    private int leaderNow() {
        try (Admin admin = admin()) {
            return admin.describeMetadataQuorum().quorumInfo().get(60, TimeUnit.SECONDS).leaderId();
        } catch (Exception e) {
            return -1;
        }
    }

    private int voters() {
        try (Admin admin = admin()) {
            return admin.describeMetadataQuorum().quorumInfo().get(60, TimeUnit.SECONDS).voters()
                .size();
        } catch (Exception e) {
            return -1;
        }
    }

    private int leader() throws Exception {
        Servers.await("a leader", () -> leaderNow() >= 0);
        return leaderNow();
    }

    private long epoch() throws Exception {
        try (Admin admin = admin()) {
            return admin.describeMetadataQuorum().quorumInfo().get(60, TimeUnit.SECONDS)
                .leaderEpoch();
        }
    }
}

package kraftd.compat;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.raft.QuorumConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.util.CommandLineUtils;

/**
 * Writes down what Java's server says of configurations: its table of keys, how it reads the text
 * of files, and which files it starts with. The formats are told in fixtures/README.md.
 */
public final class ConfigRecorder {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        defaults(folder.resolve("defaults.tsv"));
        properties(folder.resolve("properties.tsv"));
        decisions(folder.resolve("decisions.txt"));
    }

    private static void defaults(Path file) throws Exception {
        ConfigDef def = AbstractKafkaConfig.CONFIG_DEF;
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        List<String> lines = new ArrayList<>();
        lines.add("name\ttype\tdefault\trule\tinternal\tmode");
        for (ConfigDef.ConfigKey key : new TreeMap<>(def.configKeys()).values()) {
            String initial = key.defaultValue == ConfigDef.NO_DEFAULT_VALUE
                ? "(required)" : text(key.defaultValue, key.type);
            lines.add(String.join("\t", key.name, key.type.name(), initial, rule(key.validator),
                key.internalConfig ? "internal" : "", modes.getOrDefault(key.name, "read-only")));
        }
        Files.write(file, lines);
    }

    private static String text(Object value, ConfigDef.Type type) {
        return value == null ? "null" : ConfigDef.convertToString(value, type);
    }

    /** The validator's own words, and for lists whether an empty list or null passes. */
    private static String rule(ConfigDef.Validator validator) throws Exception {
        if (validator == null) {
            return "";
        }
        if (validator instanceof ConfigDef.ValidList) {
            return "list" + (flag(validator, "isEmptyAllowed") ? " empty" : "")
                + (flag(validator, "isNullAllowed") ? " null" : "")
                + (validator.toString().isEmpty() ? "" : " " + validator);
        }
        return validator.toString();
    }

    private static boolean flag(Object of, String name) throws Exception {
        Field field = of.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.getBoolean(of);
    }

    /** Column 2 is the text, one character a byte, as a JSON string; column 3 is filled in. */
    private static void properties(Path file) throws Exception {
        List<String> lines = new ArrayList<>();
        for (String line : Files.readAllLines(file)) {
            String[] fields = line.split("\t", 3);
            if (lines.isEmpty()) {
                lines.add(line);
                continue;
            }
            byte[] bytes = JSON.readValue(fields[1], String.class)
                .getBytes(StandardCharsets.ISO_8859_1);
            String answer;
            try {
                Properties props = new Properties();
                props.load(new ByteArrayInputStream(bytes));
                answer = JSON.writeValueAsString(new TreeMap<>(props));
            } catch (IllegalArgumentException e) {
                answer = "refused";
            }
            lines.add(fields[0] + "\t" + fields[1] + "\t" + answer);
        }
        Files.write(file, lines);
    }

    private static void decisions(Path file) throws Exception {
        List<String> output = new ArrayList<>();
        List<String> base = new ArrayList<>();
        List<String> block = new ArrayList<>();
        for (String line : Files.readAllLines(file)) {
            if (line.isEmpty()) {
                finish(base, block, output);
                output.add("");
            } else if (line.startsWith("base| ")) {
                base.add(line.substring(6));
                output.add(line);
            } else if (!line.startsWith("accept|") && !line.startsWith("refuse|")
                    && !line.startsWith("= ")) {
                block.add(line);
                output.add(line);
            }
        }
        finish(base, block, output);
        Files.write(file, output);
    }

    private static void finish(List<String> base, List<String> block, List<String> output)
            throws Exception {
        List<String> lines = List.copyOf(block);
        block.clear();
        if (lines.stream().allMatch(line -> line.startsWith("#"))) {
            return;
        }
        String dir = Files.createTempDirectory("config").toString();
        StringBuilder text = new StringBuilder();
        if (!lines.contains("alone|")) {
            base.forEach(line -> text.append(line).append('\n'));
        }
        List<String> without = new ArrayList<>();
        List<String> overrides = new ArrayList<>();
        for (String line : lines) {
            String[] parts = line.split(" ", 3);
            switch (parts[0]) {
                case "config|" -> text.append(line.substring(8)).append('\n');
                case "override|" -> overrides.add(line.substring(10));
                case "without|" -> without.add(parts[1]);
                case "write|" -> Files.writeString(Path.of(dir, parts[1]), parts[2]);
                default -> { }
            }
        }
        Properties props = new Properties();
        props.load(new ByteArrayInputStream(text.toString().replace("<dir>", dir)
            .getBytes(StandardCharsets.ISO_8859_1)));
        without.forEach(props::remove);
        props.putAll(CommandLineUtils.parseKeyValueArgs(overrides, true));
        try {
            KafkaConfig config = new KafkaConfig(props, false);
            // What the server does right after it has made its configuration.
            QuorumConfig.parseVoterConnections(config.quorumConfig().voters());
            output.add("accept|");
            for (String line : lines) {
                if (line.startsWith("? ")) {
                    String key = line.substring(2);
                    output.add(("= " + ask(config, key)).replace(dir, "<dir>"));
                }
            }
        } catch (RuntimeException e) {
            String why = String.valueOf(e.getMessage()).replace(dir, "<dir>").replace('\n', ' ');
            output.add("refuse| " + why);
        }
    }

    private static String ask(KafkaConfig config, String key) {
        if (key.equals("advertised")) {
            List<String> all = new ArrayList<>();
            config.effectiveAdvertisedControllerListeners().foreach(e ->
                all.add(e.listener() + "://" + (e.host() == null ? "" : e.host()) + ":" + e.port()));
            return String.join(",", all);
        }
        if (key.equals("voters")) {
            return new TreeMap<>(QuorumConfig.parseVoterConnections(
                config.quorumConfig().voters())).toString();
        }
        if (key.startsWith("topic:")) {
            Object value = config.extractLogConfigMap().get(key.substring(6));
            return value instanceof List<?> list
                ? String.join(",", list.stream().map(Object::toString).toList())
                : String.valueOf(value);
        }
        ConfigDef.Type type = AbstractKafkaConfig.CONFIG_DEF.configKeys().get(key).type;
        Object value = config.get(key);
        return value instanceof org.apache.kafka.common.config.types.Password secret
            ? secret.value() : text(value, type);
    }
}

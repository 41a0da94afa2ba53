package kraftd.compat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Writes down what Java's code says of metadata records: the schema of every version, instances as
 * JSON and as bytes, and what of one image a snapshot holds at each metadata.version. The formats
 * are told in fixtures/README.md.
 */
public final class RecordRecorder {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    /** Random instances of each version, behind the one with defaults. */
    private static final int INSTANCES = 9;

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        Files.createDirectories(folder);
        List<String> schemas = new ArrayList<>();
        List<String> instances = new ArrayList<>();
        Random random = new Random(4400);
        for (MetadataRecordType type : MetadataRecordType.values()) {
            for (short v = type.lowestSupportedVersion(); v <= type.highestSupportedVersion(); v++) {
                Schema schema = schemaOf(type, v);
                describe(type.id() + "\t" + type.name() + "\t" + v + "\t", "", schema, schemas);
                instances.add(instance(type, v, type.newMetadataRecord()));
                for (int i = 0; i < INSTANCES; i++) {
                    JsonNode json = random(schema, random);
                    ApiMessage message = MetadataJsonConverters.readJson(json, type.id(), v);
                    if (i % 3 == 2) {
                        addUnknownTags(message, random);
                    }
                    instances.add(instance(type, v, message));
                }
            }
        }
        Files.write(folder.resolve("schema.tsv"), schemas);
        Files.write(folder.resolve("instances.tsv"), instances);
        levels(folder.resolve("image.tsv"), folder.resolve("levels.tsv"));
    }

    private static Schema schemaOf(MetadataRecordType type, short version) throws Exception {
        Class<?> data = type.newMetadataRecord().getClass();
        return ((Schema[]) data.getField("SCHEMAS").get(null))[version];
    }

    private static String instance(MetadataRecordType type, short version, ApiMessage message) {
        String json = MetadataJsonConverters.writeJson(message, version).toString();
        return type.name() + "\t" + version + "\t" + json + "\t"
            + HexFormat.of().formatHex(bytes(message, version));
    }

    private static byte[] bytes(ApiMessage message, short version) {
        ApiMessageAndVersion record = new ApiMessageAndVersion(message, version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int size = MetadataRecordSerde.INSTANCE.recordSize(record, cache);
        ByteBuffer buffer = ByteBuffer.allocate(size);
        MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(buffer));
        return buffer.array();
    }

    /** A line for each field: key, record, version, path, type, nullable, tag. */
    private static void describe(String start, String path, Schema schema, List<String> lines) {
        if (path.isEmpty()) {
            // A record without fields has a line too.
            lines.add(start + "\t\t\t");
        }
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (Map.Entry<Integer, Field> entry : new TreeMap<>(tagged.fields()).entrySet()) {
                    describe(start, path, entry.getValue(), entry.getKey().toString(), lines);
                }
            } else {
                describe(start, path, bound.def, "", lines);
            }
        }
    }

    private static void describe(
        String start, String path, Field field, String tag, List<String> lines
    ) {
        String name = path + camel(field.name);
        Type element = field.type.arrayElementType().orElse(null);
        Type shown = element == null ? field.type : element;
        String word = shown instanceof Schema ? "struct" : shown.toString().toLowerCase()
            .replace("compact_", "").replace("nullable_", "");
        lines.add(start + name + "\t" + (element == null ? "" : "[]") + word + "\t"
            + (field.type.isNullable() ? "nullable" : "") + "\t" + tag);
        if (shown instanceof Schema inner) {
            describe(start, name + ".", inner, lines);
        }
    }

    private static String camel(String snake) {
        StringBuilder text = new StringBuilder();
        for (String word : snake.split("_")) {
            text.append(text.isEmpty() ? word
                : Character.toUpperCase(word.charAt(0)) + word.substring(1));
        }
        return text.toString();
    }

    private static ObjectNode random(Schema schema, Random random) {
        ObjectNode node = NODES.objectNode();
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (Field field : new TreeMap<>(tagged.fields()).values()) {
                    if (random.nextInt(3) != 0) {
                        node.set(camel(field.name), random(field.type, random));
                    }
                }
            } else {
                node.set(camel(bound.def.name), random(bound.def.type, random));
            }
        }
        return node;
    }

    private static JsonNode random(Type type, Random random) {
        if (type.isNullable() && random.nextInt(3) == 0) {
            return NODES.nullNode();
        }
        if (type.arrayElementType().isPresent()) {
            ArrayNode array = NODES.arrayNode();
            for (int count = random.nextInt(4); count > 0; count--) {
                array.add(random(type.arrayElementType().get(), random));
            }
            return array;
        }
        if (type instanceof Schema inner) {
            return random(inner, random);
        }
        boolean edge = random.nextInt(6) == 0;
        boolean high = random.nextBoolean();
        String name = type.toString();
        return switch (name) {
            case "BOOLEAN" -> NODES.booleanNode(high);
            case "INT8" -> NODES.numberNode(
                edge ? (high ? Byte.MAX_VALUE : Byte.MIN_VALUE) : (byte) random.nextInt());
            case "INT16" -> NODES.numberNode(
                edge ? (high ? Short.MAX_VALUE : Short.MIN_VALUE) : (short) random.nextInt());
            case "UINT16" -> NODES.numberNode(edge ? (high ? 65535 : 0) : random.nextInt(65536));
            case "INT32" -> NODES.numberNode(
                edge ? (high ? Integer.MAX_VALUE : Integer.MIN_VALUE) : random.nextInt());
            case "INT64" -> NODES.numberNode(
                edge ? (high ? Long.MAX_VALUE : Long.MIN_VALUE) : random.nextLong());
            case "FLOAT64" -> NODES.numberNode(
                edge ? (high ? Double.MAX_VALUE : Double.MIN_VALUE) : random.nextGaussian() * 1e6);
            case "UUID" -> NODES.textNode(
                edge ? Uuid.ZERO_UUID.toString()
                    : new Uuid(random.nextLong(), random.nextLong()).toString());
            case "COMPACT_STRING", "COMPACT_NULLABLE_STRING" -> NODES.textNode(text(random, edge));
            case "COMPACT_BYTES", "COMPACT_NULLABLE_BYTES" -> {
                byte[] bytes = new byte[edge ? 0 : random.nextInt(40)];
                random.nextBytes(bytes);
                yield NODES.textNode(Base64.getEncoder().encodeToString(bytes));
            }
            default -> throw new IllegalStateException("no generator for " + name);
        };
    }

    /** Short ones, now and then empty or with a length of two bytes; any script. */
    private static String text(Random random, boolean edge) {
        int length = edge ? (random.nextBoolean() ? 0 : 130) : 1 + random.nextInt(12);
        String letters = "abcXYZ019-._ *\"\\\n\u00e9\u4e16\ud83d\ude80";
        StringBuilder text = new StringBuilder();
        int[] points = letters.codePoints().toArray();
        for (int i = 0; i < length; i++) {
            text.appendCodePoint(points[random.nextInt(points.length)]);
        }
        return text.toString();
    }

    private static void addUnknownTags(ApiMessage message, Random random) {
        int tag = 9 + random.nextInt(40);
        for (int count = 1 + random.nextInt(2); count > 0; count--) {
            byte[] data = new byte[random.nextInt(8)];
            random.nextBytes(data);
            message.unknownTaggedFields().add(new RawTaggedField(tag, data));
            tag += 1 + random.nextInt(300);
        }
    }

    /**
     * The records of one image as bytes, and what Java writes of it at each level, with what is
     * lost. A level that writes what the one before it writes is left out.
     */
    private static void levels(Path given, Path written) throws Exception {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        List<String> lines = new ArrayList<>();
        for (String line : Files.readAllLines(given)) {
            String[] parts = line.split("\t");
            MetadataRecordType type = MetadataRecordType.valueOf(parts[0]);
            short version = Short.parseShort(parts[1]);
            ApiMessage message = MetadataJsonConverters.readJson(
                JSON.readTree(parts[2]), type.id(), version);
            delta.replay(message);
            lines.add("image\t" + parts[0] + "\t" + version + "\t"
                + HexFormat.of().formatHex(bytes(message, version)));
        }
        MetadataImage image = delta.apply(MetadataProvenance.EMPTY);
        List<String> last = List.of();
        for (MetadataVersion level : MetadataVersion.values()) {
            if (level.isLessThan(MetadataVersion.MINIMUM_VERSION)
                || level.compareTo(MetadataVersion.latestProduction()) > 0) {
                continue;
            }
            List<String> texts = level(image, level);
            if (!texts.equals(last)) {
                texts.forEach(text -> lines.add(level.featureLevel() + "\t" + text));
                last = texts;
            }
        }
        Files.write(written, lines);
    }

    /** A level without eligible leader replicas goes with their feature switched off. */
    private static List<String> level(MetadataImage image, MetadataVersion level) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        delta.replay(new FeatureLevelRecord()
            .setName(MetadataVersion.FEATURE_NAME).setFeatureLevel(level.featureLevel()));
        if (!level.isElrSupported()) {
            delta.replay(new FeatureLevelRecord()
                .setName(EligibleLeaderReplicasVersion.FEATURE_NAME).setFeatureLevel((short) 0));
        }
        MetadataImage lowered = delta.apply(MetadataProvenance.EMPTY);
        TreeSet<String> losses = new TreeSet<>();
        ImageWriterOptions options = new ImageWriterOptions.Builder(lowered)
            .setLossHandler(loss -> losses.add("LOSS\t\t" + loss.loss().replaceAll("\\(.*", "")))
            .build();
        RecordListWriter writer = new RecordListWriter();
        lowered.write(writer, options);
        List<String> texts = new ArrayList<>(losses);
        for (ApiMessageAndVersion record : writer.records()) {
            MetadataRecordType type = MetadataRecordType.fromId(record.message().apiKey());
            JsonNode json = MetadataJsonConverters.writeJson(record.message(), record.version());
            // The level itself is on every line.
            if (!json.path("name").asText().equals(MetadataVersion.FEATURE_NAME)) {
                texts.add(type.name() + "\t" + record.version() + "\t" + json);
            }
        }
        // Some of Java's maps have another order in each process.
        Collections.sort(texts);
        return texts;
    }
}

package kraftd.compat;

import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Writes one log segment of metadata batches with each codec of Kafka's own batch builder, the same
 * records in each. Argument: the folder to write to.
 */
public final class BatchRecorder {
    private static final int EPOCH = 3;
    private static final long TIME = 1_700_000_000_000L;
    private static final int PARTITIONS = 1_500;

    private BatchRecorder() {}

    public static void main(String[] args) throws Exception {
        for (CompressionType type : CompressionType.values()) {
            Path dir = Path.of(args[0], type.name);
            Files.createDirectories(dir);
            try (FileChannel out = FileChannel.open(dir.resolve("00000000000000000000.log"),
                    StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING,
                    StandardOpenOption.WRITE)) {
                long offset = 0;
                for (List<ApiMessageAndVersion> records : batches()) {
                    SimpleRecord[] simple = records.stream().map(BatchRecorder::simple)
                        .toArray(SimpleRecord[]::new);
                    MemoryRecords batch = MemoryRecords.withRecords(
                        offset, Compression.of(type).build(), EPOCH, simple);
                    batch.writeFullyTo(out);
                    offset += simple.length;
                }
            }
        }
    }

    /** A small batch, one of several blocks of every codec, and one of a single record. */
    private static List<List<ApiMessageAndVersion>> batches() {
        Random random = new Random(4);
        Uuid topic = uuid(random);
        List<ApiMessageAndVersion> first = new ArrayList<>();
        first.add(new ApiMessageAndVersion(
            new FeatureLevelRecord().setName("metadata.version").setFeatureLevel((short) 29),
            (short) 0));
        first.add(new ApiMessageAndVersion(
            new TopicRecord().setName("compressed").setTopicId(topic), (short) 0));
        List<ApiMessageAndVersion> partitions = new ArrayList<>();
        for (int i = 0; i < PARTITIONS; i++) {
            partitions.add(partition(topic, i, random));
        }
        List<ApiMessageAndVersion> last = List.of(partition(topic, PARTITIONS, random));
        return List.of(first, partitions, last);
    }

    private static ApiMessageAndVersion partition(Uuid topic, int index, Random random) {
        int leader = random.nextInt(30);
        List<Integer> replicas = List.of(leader, (leader + 1) % 30, (leader + 2) % 30);
        PartitionRecord record = new PartitionRecord().setPartitionId(index).setTopicId(topic)
            .setReplicas(replicas).setIsr(replicas).setLeader(leader)
            .setLeaderEpoch(0).setPartitionEpoch(0)
            .setDirectories(List.of(uuid(random), uuid(random), uuid(random)));
        return new ApiMessageAndVersion(record, (short) 1);
    }

    private static Uuid uuid(Random random) {
        return new Uuid(random.nextLong() & ~0xf000L | 0x4000L, random.nextLong());
    }

    private static SimpleRecord simple(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int size = MetadataRecordSerde.INSTANCE.recordSize(record, cache);
        ByteBuffer value = ByteBuffer.allocate(size);
        MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(value));
        value.flip();
        return new SimpleRecord(TIME, null, value);
    }
}

package kraftd.bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.metadata.MetadataRecordSerde;

/** Fetches the metadata log as a broker does, and notes when it was told that records are committed. */
final class Observer implements AutoCloseable {
    /** In the frame of a record: version of the frame, then type, both small. */
    private static final int TYPE_AT = 1;
    private static final int PARTITION_CHANGE = 5;
    private static final int REGISTRATION_CHANGE = 17;
    private static final int BYTES = 8 << 20;
    /** A replica that is no voter. */
    private static final int ID = 9_999;

    /** When a broker's fencing was seen as committed, and how many partitions changed before it. */
    record Fenced(long at, int changes) {}

    /** One answer. */
    private record Piece(long at, long committed, MemoryRecords records) {}

    private final Connection connection;
    private final Thread thread = new Thread(this::run, "observer");
    private final List<Piece> pieces = new ArrayList<>();
    private final int epoch;
    private long next;
    private long committed;
    private volatile boolean stop;
    private volatile Exception failure;

    /** From the end of the log as it is now. */
    Observer(int port) throws IOException {
        connection = new Connection(port);
        var quorum = Requests.quorum(connection);
        epoch = quorum.leaderEpoch();
        next = quorum.highWatermark();
        committed = next;
        thread.start();
    }

    private void run() {
        try {
            while (!stop) {
                fetch();
            }
        } catch (IOException | RuntimeException e) {
            failure = e;
        }
    }

    private void fetch() throws IOException {
        FetchRequestData request = new FetchRequestData().setMaxWaitMs(100).setMinBytes(0)
            .setMaxBytes(BYTES)
            .setReplicaState(new FetchRequestData.ReplicaState().setReplicaId(ID));
        request.topics().add(new FetchRequestData.FetchTopic().setTopic("__cluster_metadata")
            .setTopicId(Uuid.METADATA_TOPIC_ID).setPartitions(List.of(
                new FetchRequestData.FetchPartition().setPartition(0)
                    .setCurrentLeaderEpoch(epoch).setFetchOffset(next)
                    .setLastFetchedEpoch(epoch).setPartitionMaxBytes(BYTES)
                    .setHighWatermark(committed))));
        var answer = (FetchResponseData) connection.call(request);
        var partition = answer.responses().isEmpty()
            ? null : answer.responses().get(0).partitions().get(0);
        if (partition == null || partition.errorCode() != 0 || answer.errorCode() != 0) {
            throw new IllegalStateException("the log is not served: " + answer);
        }
        long at = System.nanoTime();
        var records = (MemoryRecords) partition.records();
        for (RecordBatch batch : records.batches()) {
            next = batch.nextOffset();
        }
        committed = partition.highWatermark();
        synchronized (pieces) {
            pieces.add(new Piece(at, committed, records));
        }
    }

    /** Forgets what came so far. */
    void forget() {
        synchronized (pieces) {
            pieces.clear();
        }
    }

    /** Waits until the fencing of a broker is committed; records are looked at once, when they came. */
    Fenced await(int broker, long patienceMs) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(patienceMs);
        int looked = 0;
        int changes = 0;
        long fenced = Long.MAX_VALUE;
        while (System.nanoTime() < end) {
            if (failure != null) {
                throw new IllegalStateException("the observer ended", failure);
            }
            List<Piece> fresh;
            synchronized (pieces) {
                fresh = new ArrayList<>(pieces.subList(looked, pieces.size()));
            }
            looked += fresh.size();
            for (Piece piece : fresh) {
                for (Record record : piece.records.records()) {
                    int type = record.value() == null ? 0 : record.value().get(TYPE_AT);
                    if (type == PARTITION_CHANGE && fenced == Long.MAX_VALUE) {
                        changes++;
                    } else if (type == REGISTRATION_CHANGE && fences(record, broker)) {
                        fenced = Math.min(fenced, record.offset());
                    }
                }
                if (piece.committed > fenced) {
                    return new Fenced(piece.at, changes);
                }
            }
            TimeUnit.MILLISECONDS.sleep(5);
        }
        throw new IllegalStateException("broker " + broker + " is not fenced");
    }

    private static boolean fences(Record record, int broker) {
        ByteBuffer value = record.value();
        var message = MetadataRecordSerde.INSTANCE.read(
            new ByteBufferAccessor(value), value.remaining()).message();
        var change = (BrokerRegistrationChangeRecord) message;
        return change.brokerId() == broker && change.fenced() == 1;
    }

    @Override
    public void close() throws Exception {
        stop = true;
        thread.join();
        connection.close();
    }
}

package kraftd.compat;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;

/** A batch of a log as bytes, cut at a record or moved to another offset. Where the fields are is
 * the same in all releases; Java's own classes for it changed their package. */
final class Cut {
    private static final int LENGTH = 8;
    private static final int EPOCH = 12;
    private static final int CRC = 17;
    private static final int ATTRIBUTES = 21;
    private static final int LAST_OFFSET_DELTA = 23;
    private static final int COUNT = 57;
    private static final int RECORDS = 61;

    private final ByteBuffer bytes;

    private Cut(byte[] bytes) {
        this.bytes = ByteBuffer.wrap(bytes);
    }

    /** The whole batches of a log; a torn end is left out. */
    static List<Cut> all(byte[] log) {
        List<Cut> found = new ArrayList<>();
        int at = 0;
        while (log.length - at >= RECORDS) {
            int size = 12 + ByteBuffer.wrap(log).getInt(at + LENGTH);
            if (size > log.length - at) {
                break;
            }
            found.add(new Cut(Arrays.copyOfRange(log, at, at + size)));
            at += size;
        }
        return found;
    }

    static byte[] bytes(List<Cut> batches) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        batches.forEach(batch -> out.writeBytes(batch.bytes.array()));
        return out.toByteArray();
    }

    /** The batch as if only its first records had been in it. */
    Cut firstRecords(int count) {
        int at = RECORDS;
        for (int i = 0; i < count; i++) {
            int size = 0;
            int shift = 0;
            byte part;
            do {
                part = bytes.get(at++);
                size |= (part & 0x7f) << shift;
                shift += 7;
            } while (part < 0);
            at += (size >>> 1) ^ -(size & 1);
        }
        Cut cut = new Cut(Arrays.copyOf(bytes.array(), at));
        cut.bytes.putInt(LENGTH, at - 12);
        cut.bytes.putInt(LAST_OFFSET_DELTA, count - 1);
        cut.bytes.putInt(COUNT, count);
        CRC32C crc = new CRC32C();
        crc.update(cut.bytes.array(), ATTRIBUTES, at - ATTRIBUTES);
        cut.bytes.putInt(CRC, (int) crc.getValue());
        return cut;
    }

    /** The batch with the next offset and the epoch of another: both are outside of the CRC. */
    Cut movedBehind(Cut last) {
        Cut moved = new Cut(bytes.array().clone());
        moved.bytes.putLong(0, last.bytes.getLong(0) + last.bytes.getInt(LAST_OFFSET_DELTA) + 1);
        moved.bytes.putInt(EPOCH, last.bytes.getInt(EPOCH));
        return moved;
    }

    boolean contains(String text) {
        return new String(bytes.array(), StandardCharsets.ISO_8859_1).contains(text);
    }
}

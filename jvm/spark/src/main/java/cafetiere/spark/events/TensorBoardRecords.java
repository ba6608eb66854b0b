// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.events;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32C;

/**
 * Events as TensorBoard reads them: records of length, checksum, an Event message of protocol buffers
 * and its checksum. Of that message three kinds of field are needed.
 */
final class TensorBoardRecords {
  private static final int FIXED64 = 1;
  private static final int BYTES = 2;
  private static final int FIXED32 = 5;
  private static final int MASK = 0xA282EAD8;

  private String firstNet;

  /** The record that a file begins with. */
  static byte[] header() {
    ByteArrayOutputStream event = eventNow();
    putBytes(event, 3, utf8("brain.Event:2"));
    return record(event.toByteArray());
  }

  /** The numbers of a progress or test event as scalars; no bytes for other events. */
  byte[] of(JsonNode event) {
    Map<String, Double> values = new TreeMap<>();
    String prefix = "train";
    switch (event.path("event").asText()) {
      case "progress" -> {
        for (String name : new String[] {
            "loss", "lr", "rows_per_s", "wait_data", "wait_comm", "epoch"}) {
          if (event.has(name)) values.put(name, event.path(name).asDouble());
        }
      }
      case "test" -> prefix = testName(event.path("net").asText());
      default -> {
        return new byte[0];
      }
    }
    event.path("outputs").fields().forEachRemaining(
        output -> values.put(output.getKey(), output.getValue().asDouble()));
    return scalars(event.path("step").asLong(), prefix, values);
  }

  /** The first net that is tested needs no name of its own. */
  private String testName(String net) {
    if (firstNet == null) firstNet = net;
    return net.equals(firstNet) ? "test" : "test " + net;
  }

  private static byte[] scalars(long step, String prefix, Map<String, Double> values) {
    ByteArrayOutputStream summary = new ByteArrayOutputStream();
    values.forEach((name, value) -> {
      ByteArrayOutputStream scalar = new ByteArrayOutputStream();
      putBytes(scalar, 1, utf8(prefix + "/" + name));
      putVarint(scalar, 2 << 3 | FIXED32);
      scalar.writeBytes(little(Float.BYTES).putFloat(value.floatValue()).array());
      putBytes(summary, 1, scalar.toByteArray());
    });
    ByteArrayOutputStream event = eventNow();
    putVarint(event, 2 << 3);
    putVarint(event, step);
    putBytes(event, 5, summary.toByteArray());
    return record(event.toByteArray());
  }

  private static ByteArrayOutputStream eventNow() {
    ByteArrayOutputStream event = new ByteArrayOutputStream();
    putVarint(event, 1 << 3 | FIXED64);
    event.writeBytes(
        little(Double.BYTES).putDouble(System.currentTimeMillis() / 1e3).array());
    return event;
  }

  private static byte[] record(byte[] payload) {
    byte[] length = little(Long.BYTES).putLong(payload.length).array();
    return little(Long.BYTES + 2 * Integer.BYTES + payload.length).put(length)
        .putInt(maskedCrc(length)).put(payload).putInt(maskedCrc(payload)).array();
  }

  private static int maskedCrc(byte[] bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes);
    return Integer.rotateRight((int) crc.getValue(), 15) + MASK;
  }

  private static void putBytes(ByteArrayOutputStream out, int field, byte[] bytes) {
    putVarint(out, field << 3 | BYTES);
    putVarint(out, bytes.length);
    out.writeBytes(bytes);
  }

  private static void putVarint(ByteArrayOutputStream out, long value) {
    for (; value >>> 7 != 0; value >>>= 7) out.write((int) (value | 0x80));
    out.write((int) value);
  }

  private static ByteBuffer little(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}

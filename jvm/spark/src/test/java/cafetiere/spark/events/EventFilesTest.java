// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.events;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.SlowFiles;
import cafetiere.spark.TestImages;
import cafetiere.spark.TestNets;
import cafetiere.spark.util.Json;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The files of the param events, which the driver writes whatever engine trains. */
class EventFilesTest {
  @TempDir Path dir;

  @BothLines
  @Test
  void everyEngineWritesThemByHadoopPath() throws Exception {
    SparkSession spark = TestImages.session();
    spark.sparkContext().hadoopConfiguration().set("fs.slow.impl", SlowFiles.class.getName());
    for (String engine : List.of("barrier", "rounds")) {
      String prefix = "slow://" + dir.resolve(engine) + "/run";  // no path that an engine could open
      CaffeModel model = new CaffeEstimator().setSolver(TestNets.SOLVER)
          .setNet(TestNets.CLASSIFIER).setIdCol("id").setNumWorkers(2).setEngine(engine)
          .setSyncMode("average").setEvents(prefix).fit(TestNets.points(spark, 203));
      Path file = dir.resolve(engine).resolve("run.jsonl");
      assertEquals(model.events(), Files.readString(file));
      assertTrue(model.events().contains("\"progress\""), model.events());
      assertEquals(1, boards(dir.resolve(engine)).size());
    }
  }

  @Test
  void whatGoesOnDropsWhatComesAgain() throws IOException {
    try (EventFiles files = files("run")) {
      files.startFrom(0);
      files.write(Json.parse(progress(1)));
      files.write(Json.parse(progress(2)));
      files.startFrom(1);
      files.write(Json.parse(progress(2)));
    }
    String expected = progress(1) + "\n" + progress(2) + "\n";
    assertEquals(expected, Files.readString(dir.resolve("run.jsonl")));
    Files.writeString(dir.resolve("run.jsonl"), progress(1) + "\n" + progress(1).substring(0, 25));
    try (EventFiles files = files("run")) {
      files.startFrom(1);
      files.write(Json.parse(progress(2)));
    }
    assertEquals(expected, Files.readString(dir.resolve("run.jsonl")), "half a line was there");
    String warning = "{\"event\":\"log\",\"level\":\"warning\",\"text\":\"again\"}";
    try (EventFiles files = files("run")) {
      files.startFrom(0);
      files.write(Json.parse(progress(1)));
      files.write(Json.parse(warning));
      files.startFrom(0);
    }
    assertEquals(warning + "\n", Files.readString(dir.resolve("run.jsonl")));
    try (EventFiles files = files("run")) {
      files.startFrom(0);
    }
    assertEquals("", Files.readString(dir.resolve("run.jsonl")));
  }

  /** As fits of a cross-validation are; a path without a scheme is that of the same file. */
  @Test
  void filesOfFitsAtOnceAreTheirOwn() throws IOException {
    EventFiles first = files("run");
    EventFiles second = new EventFiles(dir.resolve("run").toString(), new Configuration());
    try (first; second) {
      first.startFrom(0);
      first.write(Json.parse(progress(1)));
      second.startFrom(0);
      second.write(Json.parse(progress(2)));
      second.startFrom(1);
      second.write(Json.parse(progress(3)));
    }
    assertEquals(progress(1) + "\n", Files.readString(dir.resolve("run.jsonl")));
    assertEquals(progress(3) + "\n", Files.readString(dir.resolve("run-2.jsonl")));
    try (EventFiles third = files("run")) {
      third.startFrom(0);
      third.write(Json.parse(progress(4)));
    }
    assertEquals(progress(4) + "\n", Files.readString(dir.resolve("run.jsonl")), "the next fit replaces it");
  }

  @Test
  void tensorBoardGetsScalars() throws IOException {
    try (EventFiles files = files("run")) {
      files.startFrom(0);
      files.write(Json.parse(progress(300)));
      files.write(Json.parse(
          "{\"event\":\"test\",\"step\":300,\"net\":\"\",\"outputs\":{\"accuracy\":1}}"));
      files.write(Json.parse("{\"event\":\"log\",\"text\":\"said\"}"));
    }
    List<byte[]> records = payloads(Files.readAllBytes(boards(dir).get(0)));
    assertEquals(3, records.size());
    assertEquals("1a0d" + hex("brain.Event:2"), HexFormat.of().formatHex(behindTime(records.get(0))));
    assertTrue(new String(records.get(1), StandardCharsets.ISO_8859_1).contains("train/loss"));
    // step 300 as a varint, then summary{value{tag "test/accuracy", simple_value 1.0f}}.
    assertArrayEquals(HexFormat.of().parseHex(
        "10ac022a160a140a0d" + hex("test/accuracy") + "150000803f"), behindTime(records.get(2)));
  }

  @Test
  void aPathThatCannotBeWrittenIsNamed() throws IOException {
    Files.createFile(dir.resolve("file"));
    try (EventFiles files = files("file/run")) {
      String message = assertThrows(UncheckedIOException.class, () -> files.startFrom(0)).getMessage();
      assertTrue(message.startsWith("events cannot be written to "), message);
      assertTrue(message.contains("set events to a path"), message);
    }
  }

  private EventFiles files(String prefix) {
    return new EventFiles(dir.resolve(prefix).toUri().toString(), new Configuration());
  }

  private static String progress(int step) {
    return "{\"event\":\"progress\",\"step\":" + step + ",\"loss\":0.5}";
  }

  private static List<Path> boards(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(file -> file.getFileName().toString().startsWith("events.out.tfevents."))
          .toList();
    }
  }

  /** The payloads of a file whose checksums are right. */
  private static List<byte[]> payloads(byte[] file) {
    ByteBuffer rest = ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN);
    List<byte[]> payloads = new ArrayList<>();
    while (rest.hasRemaining()) {
      byte[] length = new byte[Long.BYTES];
      rest.duplicate().get(length);
      byte[] payload = new byte[(int) rest.getLong()];
      assertEquals(crc(length), unmask(rest.getInt()));
      rest.get(payload);
      assertEquals(crc(payload), unmask(rest.getInt()));
      payloads.add(payload);
    }
    return payloads;
  }

  private static byte[] behindTime(byte[] event) {
    return java.util.Arrays.copyOfRange(event, 1 + Double.BYTES, event.length);
  }

  private static int crc(byte[] bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes);
    return (int) crc.getValue();
  }

  private static int unmask(int masked) {
    return Integer.rotateLeft(masked - 0xA282EAD8, 15);
  }

  private static String hex(String text) {
    return HexFormat.of().formatHex(text.getBytes(StandardCharsets.US_ASCII));
  }
}

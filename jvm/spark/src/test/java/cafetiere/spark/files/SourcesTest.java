// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.files;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.TestImages;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.zip.GZIPOutputStream;
import org.apache.commons.compress.archivers.ArchiveOutputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.spark.sql.DataFrameReader;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** IDX, CIFAR's binaries and tars as tables. */
@BothLines
class SourcesTest {
  private static final int CIFAR_PLANES = 3 * 32 * 32;

  @TempDir static Path dir;
  private static SparkSession spark;

  @BeforeAll
  static void start() {
    spark = TestImages.session();
  }

  @Test
  void idxRangesAreTheFilesRowsWithTheirLabels() throws IOException {
    idx("train-images-idx3-ubyte", false, new int[] {10, 2, 3}, 60);
    idx("train-labels-idx1-ubyte", false, new int[] {10}, 10);
    for (int partitions : List.of(1, 3, 20)) {
      Dataset<Row> rows = read("idx", "train-images-idx3-ubyte", "partitions", "" + partitions);
      assertEquals(Math.min(partitions, 10), rows.rdd().getNumPartitions());
      List<Row> all = rows.collectAsList();
      assertEquals(10, all.size());
      for (int i = 0; i < 10; i++) {
        Row row = all.get(i);
        assertEquals(i + "," + i + ",1,2,3,false", row.mkString(",").replaceAll(",[^,]*$", ""));
        byte[] data = row.getAs("data");
        assertEquals(6, data.length);
        assertEquals(6 * i, data[0]);
      }
    }
  }

  @Test
  void idxMayBeCompressedAndHaveOtherShapes() throws IOException {
    idx("four.gz", true, new int[] {2, 3, 1, 2}, 12);
    idx("labels.gz", true, new int[] {2}, 2);
    Dataset<Row> rows = read("idx", "four.gz", "labels", dir.resolve("labels.gz").toString());
    assertEquals("[1,1,3,1,2]", rows.collectAsList().get(1).mkString("[", ",", "]")
        .replaceAll(",false.*", "]"));
    idx("vectors", false, new int[] {2, 5}, 10);
    Row vector = read("idx", "vectors", "partitions", "2").collectAsList().get(1);
    assertTrue(vector.isNullAt(1));
    assertEquals(List.of(5, 1, 1), List.of(vector.getInt(2), vector.getInt(3), vector.getInt(4)));
  }

  @Test
  void whatIsNoIdxIsTold() throws IOException {
    idx("some-images-idx3", false, new int[] {3, 1, 1}, 3);
    idx("some-labels-idx1", false, new int[] {2}, 2);
    assertTold("has 2 records of 1 byte", () -> read("idx", "some-images-idx3", "", ""));
    assertTold("holds labels", () -> read("idx", "some-labels-idx1", "", ""));
    idx("cut", false, new int[] {3, 1, 4}, 7);
    assertTold("a whole number of at least 1 is needed",
        () -> read("idx", "cut", "partitions", "0"));
    assertTold("ends within record 1: it is cut short", () -> read("idx", "cut", "", "").collect());
    Files.writeString(dir.resolve("text"), "no such file at all");
    assertTold("is no IDX file", () -> read("idx", "text", "", ""));
    assertTold("did you mean \"labels\"", () -> read("idx", "text", "label", ""));
  }

  @Test
  void cifarOfTenAndOfAHundredClasses() throws IOException {
    Path ten = Files.createDirectory(dir.resolve("ten"));
    for (int file = 1; file <= 2; file++) {
      Files.write(ten.resolve("data_batch_" + file + ".bin"), cifar(1, 4, 10 * file));
    }
    Files.writeString(ten.resolve("readme.html"), "is left out");
    List<Row> rows = read("cifar", "ten", "partitions", "4").collectAsList();
    assertEquals(8, rows.size());
    assertEquals("data_batch_2.bin:3,23,3,32,32,false",
        rows.get(7).mkString(",").replaceAll(",[^,]*$", ""));
    assertArrayEquals(planes(23), rows.get(7).<byte[]>getAs("data"));
    Files.write(dir.resolve("train.bin"), cifar(2, 3, 40));
    Row hundred = read("cifar", "train.bin", "classes", "100").collectAsList().get(2);
    assertEquals(List.of(42, 42), List.of(hundred.getAs("label"), hundred.getAs("coarse_label")));
    assertTold("or the option classes is to be another", () -> read("cifar", "train.bin", "", ""));
  }

  @Test
  void tarsAreReadByATaskEach() throws IOException {
    Path tars = Files.createDirectory(dir.resolve("tars"));
    tar(tars.resolve("a.tar"), false, "a/", "a/0.JPEG", "a/1.JPEG");
    tar(tars.resolve("b.tar.gz"), true, "2.JPEG");
    Files.writeString(dir.resolve("classes.txt"), "0.JPEG 7\na/1.JPEG 8\n\n2.JPEG 9\n");
    Dataset<Row> rows = read("tar", "tars", "labels", dir.resolve("classes.txt").toString());
    assertEquals(2, rows.rdd().getNumPartitions());
    assertEquals("[[a/0.JPEG,7,bytes of a/0.JPEG], [a/1.JPEG,8,bytes of a/1.JPEG],"
        + " [2.JPEG,9,bytes of 2.JPEG]]", rows.selectExpr("id", "label", "string(data)")
            .collectAsList().toString());
    assertEquals(2, read("tar", "tars/a*.tar", "", "").filter("label is null").count());
    Files.writeString(dir.resolve("few.txt"), "0.JPEG 7\n");
    assertTold("has a/1.JPEG, and the labels have no line for it",
        () -> read("tar", "tars/a.tar", "labels", dir.resolve("few.txt").toString()).collect());
    byte[] whole = Files.readAllBytes(tars.resolve("a.tar"));
    Files.write(dir.resolve("cut.tar"), Arrays.copyOf(whole, 3 * 512 - 505));
    assertTold("cut.tar", () -> read("tar", "cut.tar", "", "").collect());
    assertTold("there is no file at", () -> read("tar", "nowhere", "", ""));
  }

  private static Dataset<Row> read(String format, String name, String option, String value) {
    DataFrameReader reader = spark.read().format(format);
    if (!option.isEmpty()) reader = reader.option(option, value);
    return reader.load(dir.resolve(name).toUri().toString().replace("%2A", "*"));
  }

  private static void assertTold(String text, Runnable code) {
    String message = assertThrows(Exception.class, code::run).toString();
    assertTrue(message.contains(text), message);
  }

  private static void idx(String name, boolean isCompressed, int[] sizes, int bytes)
      throws IOException {
    ByteBuffer file = ByteBuffer.allocate(4 * (1 + sizes.length) + bytes);
    file.putInt(0x800 + sizes.length);
    for (int size : sizes) file.putInt(size);
    for (int i = 0; i < bytes; i++) file.put((byte) i);
    try (OutputStream out = open(dir.resolve(name), isCompressed)) {
      out.write(file.array());
    }
  }

  private static byte[] cifar(int labels, int count, int first) throws IOException {
    ByteArrayOutputStream file = new ByteArrayOutputStream();
    for (int i = first; i < first + count; i++) {
      for (int label = 0; label < labels; label++) file.write(i);
      file.write(planes(i));
    }
    return file.toByteArray();
  }

  private static byte[] planes(int number) {
    byte[] planes = new byte[CIFAR_PLANES];
    for (int i = 0; i < planes.length; i++) planes[i] = (byte) (i * number);
    return planes;
  }

  /** By the raw type: what its methods take is another class in the version of Spark 3.5. */
  @SuppressWarnings({"rawtypes", "unchecked"})
  private static void tar(Path path, boolean isCompressed, String... names) throws IOException {
    try (ArchiveOutputStream out = new TarArchiveOutputStream(open(path, isCompressed))) {
      for (String name : names) {
        byte[] bytes = name.endsWith("/") ? new byte[0] : ("bytes of " + name).getBytes();
        TarArchiveEntry entry = new TarArchiveEntry(name);
        entry.setSize(bytes.length);
        out.putArchiveEntry(entry);
        out.write(bytes);
        out.closeArchiveEntry();
      }
    }
  }

  private static OutputStream open(Path path, boolean isCompressed) throws IOException {
    OutputStream file = Files.newOutputStream(path);
    return isCompressed ? new GZIPOutputStream(file) : file;
  }
}

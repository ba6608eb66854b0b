// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.lmdb;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import cafetiere.spark.BothLines;
import cafetiere.spark.CountingFiles;
import cafetiere.spark.LocalFiles;
import cafetiere.spark.Logged;
import cafetiere.spark.StoreFiles;
import cafetiere.spark.TestImages;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.DataFrameReader;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** LMDB read by ranges of keys, on real executors. */
@BothLines
class LmdbTest {
  private static final int RECORDS = 3_000;
  private static final int VALUE_BYTES = 6_000;

  @TempDir static Path dir;
  private static SparkSession spark;
  private static Path large;

  @BeforeAll
  static void writeDatabase() {
    spark = TestImages.session();
    large = dir.resolve("large");
    spark.range(RECORDS).selectExpr("format_string('%08d', id) id", "id % 10 label",
        "cast(repeat(chr(97 + id % 26), " + VALUE_BYTES + ") as binary) data", "true encoded")
        .coalesce(1).write().format("lmdb").save(large.toString());
  }

  @Test
  void everyKeyOnceAndNoTaskReadsMoreThanItsShare() throws IOException {
    String path = CountingFiles.path(spark.sparkContext(), large);
    Dataset<Row> rows = spark.read().format("lmdb").option("partitions", 4).load(path);
    assertEquals(4, rows.rdd().getNumPartitions());
    CountingFiles.takeReads(large.resolve("data.mdb"));
    List<Row> all = rows.selectExpr("id", "label", "length(data)",
        "chr(ascii(decode(data, 'utf-8')))").collectAsList();
    for (int i = 0; i < RECORDS; i++) {
      Row row = all.get(i);
      assertEquals(String.format("%08d", i), row.getString(0), "ranges are in the order of keys");
      assertEquals(i % 10, row.getInt(1));
      assertEquals(VALUE_BYTES, row.getInt(2));
      assertEquals((char) ('a' + i % 26), row.getString(3).charAt(0));
    }
    assertEquals(RECORDS, all.size());
    double share = Files.size(large.resolve("data.mdb")) / 4.0;
    Map<Integer, Long> reads = CountingFiles.takeReads(large.resolve("data.mdb"));
    assertEquals(4, reads.size());
    reads.forEach((partition, bytes) ->
        assertTrue(bytes <= 1.05 * share, partition + " read " + bytes + ", its share " + share));
  }

  @Test
  void keysAloneReadNoValues() throws IOException {
    String path = CountingFiles.path(spark.sparkContext(), large);
    Dataset<Row> rows = spark.read().format("lmdb").option("partitions", 2).load(path);
    CountingFiles.takeReads(large.resolve("data.mdb"));
    assertEquals(RECORDS, new HashSet<>(rows.select("id").collectAsList()).size());
    assertEquals(RECORDS, rows.count());
    long bytes = CountingFiles.takeReads(large.resolve("data.mdb")).values().stream()
        .mapToLong(Long::longValue).sum();
    assertTrue(bytes < Files.size(large.resolve("data.mdb")) / 20, bytes + " bytes");
  }

  @Test
  void rawGivesKeysAndValues() {
    Dataset<Row> rows = read().option("raw", true).load(large.toString());
    assertEquals(List.of("key", "value"), List.of(rows.columns()));
    Row row = rows.first();
    assertEquals("00000000", new String(row.<byte[]>getAs(0), StandardCharsets.UTF_8));
    byte[] value = row.getAs(1);
    assertTrue(value.length > VALUE_BYTES && value.length < VALUE_BYTES + 20, "" + value.length);
  }

  @Test
  void columnsAreThoseOfAnImageDataFrame() {
    String path = write("colour", "'a' id", "'3' label", "3 channels", "1 height", "2 width",
        "false encoded", "cast('abcdef' as binary) data");
    Dataset<Row> rows = read().load(path);
    assertEquals("id string, label int, channels int, height int, width int, encoded boolean,"
        + " data binary, float_data array<float>",
        rows.schema().toDDL().replace(" NOT NULL", "").replace(",", ", ").toLowerCase());
    Row row = rows.first();
    assertEquals("a", row.getString(0));
    assertEquals(List.of(3, 3, 1, 2), List.of(
        row.getInt(1), row.getInt(2), row.getInt(3), row.getInt(4)));
    assertEquals(false, row.getBoolean(5));
    assertEquals("abcdef", text(row, "data"));
    assertNull(row.get(7));
  }

  @Test
  void rawImagesLieByChannelOrByPixel() {
    String path = write("planes", "3 channels", "1 height", "2 width",
        "cast('abcdef' as binary) data");
    assertEquals("acebdf", text(read().option("layout", "hwc").load(path).first(), "data"));
    String pixels = dir.resolve("pixels").toString();
    spark.range(0, 1, 1, 1).selectExpr("3 channels", "1 height", "2 width",
        "cast('acebdf' as binary) data").write().format("lmdb").option("layout", "hwc").save(pixels);
    assertEquals("abcdef", text(read().load(pixels).first(), "data"));
  }

  @Test
  void numbersAreKept() {
    String path = write("floats", "2 channels", "1 height", "1 width",
        "array(1.5f, cast(-2 as float)) float_data", "7 label");
    Row row = read().load(path).first();
    assertNull(row.getAs("data"));
    assertEquals(List.of(1.5f, -2f), row.getList(row.fieldIndex("float_data")));
    assertEquals(7, row.<Integer>getAs("label"));
    assertEquals("00000-0000000000", row.<String>getAs("id"));
  }

  @Test
  void whatCannotBeReadIsToldInASentence() throws IOException {
    Path folder = Files.createDirectory(dir.resolve("nothing"));
    refused(folder, "the folder " + folder + " is no LMDB: neither it nor a folder in it has");
    refused(dir.resolve("nowhere"), "there is no LMDB at " + dir.resolve("nowhere"));
    Path other = Files.write(dir.resolve("other"), new byte[9_000]);
    refused(other, "other\": is not an LMDB file of a 64-bit machine, or is damaged");
    byte[] whole = Files.readAllBytes(large.resolve("data.mdb"));
    Path half = Files.write(dir.resolve("half.mdb"), Arrays.copyOf(whole, whole.length / 2));
    refused(half, "half.mdb\": page ");
    String path = dir.resolve("no datum").toString();
    spark.range(0, 1, 1, 1).selectExpr("cast('k' as binary) key",
        "cast('text' as binary) value").write().format("lmdb").save(path);
    refused(Path.of(path), "the record with the key k is no Datum: read it with the option raw");
    assertEquals("k", read().load(path).select("id").first().getString(0));
  }

  @Test
  void anOptionThatIsNotUnderstoodIsRefused() {
    for (List<String> option : List.of(List.of("partition", "4", "did you mean \"partitions\"?"),
        List.of("partitions", "0", "a whole number of at least 1 is needed"),
        List.of("layout", "nchw", "set it to \"chw\""))) {
      String message = assertThrows(IllegalArgumentException.class,
          () -> read().option(option.get(0), option.get(1)).load(large.toString())).getMessage();
      assertTrue(message.contains(option.get(2)), message);
    }
  }

  @Test
  void anotherOrderOfKeysIsReadByOneTask() throws IOException {
    byte[] bytes = Files.readAllBytes(large.resolve("data.mdb"));
    for (int page = 0; page < 2; page++) bytes[page * 4096 + 92] |= 2; // MDB_REVERSEKEY
    Path file = Files.write(dir.resolve("reverse.mdb"), bytes);
    try (Logged logged = new Logged(LmdbScan.class)) {
      Dataset<Row> rows = read().option("partitions", 4).load(file.toString());
      assertEquals(RECORDS, rows.select("id").collectAsList().size());
      assertEquals(1, rows.rdd().getNumPartitions());
      assertTrue(logged.text().contains("is read by one task: its keys lie in an order of their"));
    }
  }

  @Test
  void aPartitionIsADatabaseAndTheirFolderIsRead() throws IOException {
    Path path = dir.resolve("parts");
    spark.range(0, 100, 1, 3).selectExpr("cast(id as string) id", "id label", "true encoded",
        "cast('x' as binary) data").write().format("lmdb").save(path.toString());
    for (String part : List.of("part-00000", "part-00001", "part-00002")) {
      assertTrue(Files.exists(path.resolve(part).resolve("data.mdb")), part);
      assertTrue(Files.exists(path.resolve(part).resolve("lock.mdb")), part);
    }
    assertTrue(Files.exists(path.resolve("_SUCCESS")));
    List<Row> rows = read().load(path.toString()).select("id", "label").collectAsList();
    assertEquals(100, rows.size());
    rows.forEach(row -> assertEquals(row.getString(0), "" + row.getInt(1)));
    assertEquals(100, new HashSet<>(rows).size());
  }

  /** Where a rename copies file after file, and a request fails or the driver ends in the middle of it. */
  @Test
  void whatIsNotAllThereIsNotRead() {
    StoreFiles.configure(spark.sparkContext(), dir.resolve("none"));
    save(20, "counted");
    StoreFiles.failAt(0, false);
    save(30, "counted");
    int last = StoreFiles.requests();
    Set<Long> seen = new HashSet<>();
    for (int fault = last; fault > Math.max(0, last - 42); fault -= 3) {
      String name = "stored" + fault;
      save(20, name);
      StoreFiles.failAt(fault, fault % 2 == 0);
      boolean isDone = isDone(() -> save(30, name));
      StoreFiles.recover();
      long rows = isDone(() -> count(name)) ? count(name) : 0;
      List<Long> possible = fault % 2 == 0 ? List.of(0L, 20L, 30L) : List.of(20L);
      assertTrue(isDone ? rows == 30 : possible.contains(rows), name + ": " + rows);
      seen.add(rows);
    }
    assertTrue(seen.contains(0L), "no write was broken off: " + seen);
  }

  @Test
  void namesHaveTheSameDigitsInEveryLocale() {
    Locale before = Locale.getDefault();
    Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
    try {
      assertEquals("part-00003", LmdbFiles.part(3));
      assertEquals("00003-0000000020", LmdbOutput.place(3, 20));
    } finally {
      Locale.setDefault(before);
    }
  }

  private static void save(int rows, String name) {
    spark.range(0, rows, 1, 2).selectExpr("id label", "cast('x' as binary) data").write()
        .format("lmdb").mode("overwrite").save(StoreFiles.path(dir.resolve(name)));
  }

  private static long count(String name) {
    return read().load(StoreFiles.path(dir.resolve(name))).count();
  }

  private static boolean isDone(Runnable work) {
    try {
      work.run();
      return true;
    } catch (UncheckedIOException | CafetiereException e) {
      return false;
    }
  }

  @Test
  void whatIsThereStaysUnlessItIsToBeReplaced() throws IOException {
    String path = write("once", "1 label", "cast('x' as binary) data");
    Dataset<Row> other = spark.range(2).selectExpr("2 label", "cast('y' as binary) data");
    for (String mode : List.of("error", "append")) {
      assertTrue(assertThrows(Exception.class,
          () -> other.write().format("lmdb").mode(mode).save(path)).getMessage().contains(path));
    }
    other.write().format("lmdb").mode("ignore").save(path);
    assertEquals(1, read().load(path).first().<Integer>getAs("label"));
    Dataset<Row> failing = spark.range(0, 2, 1, 1).selectExpr("id + 0.5 label",
        "cast('y' as binary) data");
    String message = assertThrows(Exception.class,
        () -> failing.write().format("lmdb").mode("overwrite").save(path)).getMessage();
    assertTrue(message.contains("a label of a database is a whole number, and one is 0.5"), message);
    assertEquals(1, read().load(path).first().<Integer>getAs("label"));
    other.coalesce(1).write().format("lmdb").mode("overwrite").save(path);
    assertEquals(2, read().load(path).count());
    assertEquals(2, read().load(path).first().<Integer>getAs("label"));
    try (var entries = Files.list(dir)) {
      assertTrue(entries.noneMatch(entry -> entry.getFileName().toString().startsWith("_once")));
    }
  }

  /** In an executor's folder, where its own is made, too. */
  @Test
  void theDatabaseOfAKilledTaskGoesWithTheNext() throws IOException {
    Set<Path> left = new HashSet<>();
    for (Path blocks : LocalFiles.find(Path.of(System.getProperty("spark.local.dir")), 4,
        path -> path.getFileName().toString().startsWith("blockmgr-"))) {
      Path folder = blocks.resolveSibling("cafetiere-task-killed");
      if (left.contains(folder)) continue;
      try {
        Files.createFile(Files.createDirectory(folder).resolve(".lock"));
        left.add(folder);
      } catch (NoSuchFileException e) {
        continue;  // of an executor that ends, and removes all of its files
      }
    }
    write("after a killed one", "1 label", "cast('x' as binary) data");
    assertTrue(left.stream().anyMatch(folder -> Files.notExists(folder) && Files.exists(folder.getParent())),
        "all are there: " + left);
    for (Path folder : left) {
      Files.deleteIfExists(folder.resolve(".lock"));
      Files.deleteIfExists(folder);
    }
  }

  @Test
  void rowsThatAreNoRecordsAreRefused() {
    unwritten("has 2 values, and its sizes (channels 3, height 1, width 1) ask for 3",
        "3 channels", "1 height", "1 width", "cast('ab' as binary) data");
    unwritten("the table has image: select them by these names", "1 image");
    Dataset<Row> twice = spark.range(0, 2, 1, 1).selectExpr("'k' id", "cast('x' as binary) data");
    assertTrue(assertThrows(Exception.class, () -> twice.write().format("lmdb")
        .save(dir.resolve("never").toString())).getMessage()
        .contains("the row with the key \"k\" is there twice in one partition"));
  }

  private static void unwritten(String sentence, String... columns) {
    String message = assertThrows(Exception.class, () -> write("never", columns)).getMessage();
    assertTrue(message.contains(sentence), message);
  }

  private static void refused(Path path, String sentence) {
    String message = assertThrows(Exception.class,
        () -> read().load(path.toString()).collectAsList()).getMessage();
    assertTrue(message.contains(sentence), message);
  }

  private static String write(String name, String... columns) {
    String path = dir.resolve(name).toString();
    spark.range(0, 1, 1, 1).selectExpr(columns).write().format("lmdb").save(path);
    return path;
  }

  private static DataFrameReader read() {
    return spark.read().format("lmdb");
  }

  private static String text(Row row, String column) {
    return new String(row.<byte[]>getAs(column), StandardCharsets.UTF_8);
  }
}

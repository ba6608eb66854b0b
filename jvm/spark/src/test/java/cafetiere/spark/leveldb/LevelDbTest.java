// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.leveldb;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import cafetiere.spark.BothLines;
import cafetiere.spark.TestImages;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.Option;

/** LevelDBs, which LevelDB itself writes and reads. */
@BothLines
class LevelDbTest {
  @TempDir static Path dir;
  private static SparkSession spark;

  @BeforeAll
  static void start() {
    spark = TestImages.session();
  }

  @Test
  void eachDatabaseIsATaskAndIsLeftAsItWas() throws IOException {
    Dataset<Row> images = images(6);
    String path = path("three");
    images.repartition(3).write().format("leveldb").save(path);
    List<String> before = files(dir.resolve("three"));
    Dataset<Row> read = spark.read().format("leveldb").load(path);
    assertEquals(3, read.rdd().getNumPartitions());
    assertEquals(images.orderBy("id").selectExpr("id", "label", "height", "string(data)")
        .collectAsList(),
        read.orderBy("id").selectExpr("id", "label", "height", "string(data)").collectAsList());
    assertEquals(before, files(dir.resolve("three")));
  }

  @Test
  void rowsComeInTheOrderOfTheirKeys() {
    String path = path("one");
    images(12).coalesce(1).write().format("leveldb").option("layout", "hwc").save(path);
    Dataset<Row> read = spark.read().format("leveldb").load(path);
    assertEquals("[[0], [1], [10], [11], [2]]", read.select("id").takeAsList(5).toString());
    assertEquals("adbecf", read.selectExpr("string(data)").first().getString(0));
    assertEquals("abcdef", spark.read().format("leveldb").option("layout", "hwc").load(path)
        .selectExpr("string(data)").first().getString(0));
    assertEquals(List.of("key", "value"), List.of(
        spark.read().format("leveldb").option("raw", "true").load(path).columns()));
  }

  /** Its database is closed, and another thread may still feed Python. */
  @Test
  void aTaskThatHasEndedReadsNoMore() {
    images(3).coalesce(1).write().format("leveldb").save(path("ended"));
    RDD<Row> rdd = spark.read().format("leveldb").load(path("ended")).rdd();
    TaskContextImpl context = TaskContext$.MODULE$.empty();
    TaskContext$.MODULE$.setTaskContext(context);
    try {
      scala.collection.Iterator<Row> rows = rdd.iterator(rdd.partitions()[0], context);
      assertTrue(rows.hasNext());
      rows.next();
      context.markTaskCompleted(Option.empty());
      String message = assertThrows(IllegalStateException.class, rows::hasNext).getMessage();
      assertTrue(message.contains("the task has ended"), message);
    } finally {
      TaskContext$.MODULE$.unset();
    }
  }

  @Test
  void numbersAndOtherValues() {
    String floats = path("floats");
    spark.range(1).selectExpr("'a' id", "2 channels", "1 height", "1 width",
        "array(0.5f, -1f) float_data").write().format("leveldb").save(floats);
    Row row = spark.read().format("leveldb").load(floats).first();
    assertTrue(row.isNullAt(6));
    assertEquals(List.of(0.5f, -1f), row.getList(7));

    String raw = path("raw");
    spark.range(1).selectExpr("binary('k') key", "binary('no datum') value")
        .write().format("leveldb").save(raw);
    String message = assertThrows(Exception.class,
        () -> spark.read().format("leveldb").load(raw).collect()).toString();
    assertTrue(message.contains("the record with the key k is no Datum"), message);
    assertEquals(1, spark.read().format("leveldb").option("raw", "true").load(raw)
        .filter("string(value) = 'no datum'").count());
  }

  @Test
  void whatIsNoneIsTold() throws IOException {
    Files.createDirectory(dir.resolve("empty"));
    assertTrue(assertThrows(CafetiereException.class,
        () -> spark.read().format("leveldb").load(path("empty"))).getMessage()
        .startsWith("there is no LevelDB at"));
    Files.createDirectory(dir.resolve("broken"));
    Files.writeString(dir.resolve("broken/CURRENT"), "MANIFEST-000007\n");
    String message = assertThrows(Exception.class,
        () -> spark.read().format("leveldb").load(path("broken")).collect()).toString();
    assertTrue(message.contains("cannot open it"), message);
  }

  /** Raw images of one row, two columns and three channels. */
  private static Dataset<Row> images(int count) {
    return spark.range(count).selectExpr("cast(id as string) id", "cast(id % 3 as int) label",
        "3 channels", "1 height", "2 width", "binary('abcdef') data");
  }

  private static String path(String name) {
    return dir.resolve(name).toUri().toString();
  }

  private static List<String> files(Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(Files::isRegularFile)
          .map(file -> file + " " + file.toFile().length() + " " + file.toFile().lastModified())
          .sorted().toList();
    }
  }
}

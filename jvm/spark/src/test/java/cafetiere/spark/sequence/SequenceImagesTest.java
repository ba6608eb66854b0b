// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sequence;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import cafetiere.spark.BothLines;
import cafetiere.spark.StoreFiles;
import cafetiere.spark.TestImages;
import com.yahoo.ml.caffe.tools.Pair;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.PrintWriter;
import java.io.Serializable;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.mapred.SequenceFileOutputFormat;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.Tuple2;
import scala.Tuple6;

/** CaffeOnSpark's SequenceFiles. */
@BothLines
class SequenceImagesTest {
  @TempDir static Path dir;

  @Test
  void keysAreTuplesAndPairs() throws IOException {
    Object[] two = {"a", "7"};
    assertArrayEquals(two, elements(new Tuple2<>("a", "7")));
    assertArrayEquals(two, elements(new Pair("a", "7")));
    assertArrayEquals(new Object[] {"b", "b"}, elements(new Tuple2<>("b", "b")), "one twice");
    assertArrayEquals(new Object[] {null, null}, elements(new Pair(null, null)));
    assertArrayEquals(new Object[] {"c", "1", 3, 28, 28, false},
        elements(new Tuple6<>("c", "1", 3, 28, 28, false)));
  }

  /** Those of the Scalas that CaffeOnSpark ran on, each in a JVM of its own. */
  @ParameterizedTest
  @ValueSource(strings = {"2.10.4", "2.11.12"})
  void keysOfOldScalas(String version) throws Exception {
    Path scala = Path.of(System.getProperty("old.scala"), "scala-library-" + version + ".jar");
    Path tests = Path.of(OldKeys.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    Process java = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin/java").toString(),
        "-cp", scala + ":" + tests, OldKeys.class.getName()).redirectErrorStream(true).start();
    List<String> lines;
    try (BufferedReader output = java.inputReader()) {
      lines = output.lines().toList();
    }
    assertEquals(0, java.waitFor(), lines.toString());
    assertEquals(version, lines.get(0));
    byte[] pair = HexFormat.of().parseHex(lines.get(1));
    byte[] six = HexFormat.of().parseHex(lines.get(2));
    assertArrayEquals(new Object[] {"a", "7"}, SerializedKey.elements(pair, pair.length));
    assertArrayEquals(
        new Object[] {"b", "1", 3, 28, 20, true}, SerializedKey.elements(six, six.length));
  }

  /** Deserialization would run this; reading the key does not even load its class. */
  private static final class Gadget implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final AtomicInteger RUNS = new AtomicInteger();

    private void readObject(ObjectInputStream in) {
      RUNS.incrementAndGet();
    }
  }

  @Test
  void aKeyRunsNoCode() throws Exception {
    for (Serializable key : List.of(new Gadget(), new Tuple2<>("a", new Gadget()),
        new Pair(new Gadget(), "7"))) {
      byte[] bytes = bytes(key);
      assertThrows(IOException.class, () -> SerializedKey.elements(bytes, bytes.length));
      assertEquals(0, Gadget.RUNS.get(), key.toString());
      new ObjectInputStream(new ByteArrayInputStream(bytes)).readObject();
      assertEquals(1, Gadget.RUNS.getAndSet(0), "Java's own reader runs it");
    }
  }

  @Test
  void noOtherClassIsRead() {
    List<Serializable> others = List.of(new Tuple2<>("a", new PriorityQueue<>(List.of(1))),
        new PriorityQueue<>(List.of(1)), new Tuple2<>("a", new Object[] {1}), "text",
        new Pair("a", new Pair("b", new Pair("c", new Pair("d", new Pair("e", new Pair(1, 2)))))));
    for (Serializable other : others) {
      assertThrows(IOException.class, () -> elements(other), other.toString());
    }
    String message = assertThrows(IOException.class, () -> elements(others.get(0))).getMessage();
    assertTrue(message.startsWith("java.util.PriorityQueue; keys hold tuples"), message);
  }

  @Test
  void damagedBytesAreAnError() throws IOException {
    byte[] whole = bytes(new Tuple6<>("c", "1", 3, 28, 28, false));
    for (int count = 0; count < whole.length; count++) {
      int cut = count;
      assertThrows(IOException.class, () -> SerializedKey.elements(whole, cut), "" + count);
    }
    for (int i = 0; i < whole.length; i++) {
      byte[] changed = whole.clone();
      changed[i] ^= 0x41;
      try {
        SerializedKey.elements(changed, changed.length);
      } catch (IOException e) {
        assertTrue(e.toString().length() > 0); // an error of this kind, and no other
      }
    }
  }

  @Test
  void aFileIsATable() {
    SparkSession spark = TestImages.session();
    String path = dir.resolve("sequence").toUri().toString();
    JavaSparkContext.fromSparkContext(spark.sparkContext())
        .parallelize(List.of(0, 1, 2), 2).mapToPair(SequenceImagesTest::record)
        .saveAsHadoopFile(path, BytesWritable.class, BytesWritable.class,
            SequenceFileOutputFormat.class);
    List<Row> rows = SequenceImages.read(spark, path).orderBy("id").collectAsList();
    assertEquals(2, rows.size(), "what could not be read is left out");
    assertEquals("[a,5,null,null,null,true]", values(rows.get(0)));
    assertEquals("[b,6,3,1,2,false]", values(rows.get(1)));
    assertEquals("value 1", new String(rows.get(1).<byte[]>getAs("data"), StandardCharsets.UTF_8));
  }

  /** Each third of the last requests to an object store is refused, in turn. */
  @Test
  void whatIsToBeReplacedStaysIfItCannotBe() {
    SparkSession spark = TestImages.session();
    StoreFiles.configure(spark.sparkContext(), dir.resolve("none"));
    save(spark, 2, "counted");
    StoreFiles.failAt(0, false);
    save(spark, 3, "counted");
    int last = StoreFiles.requests();
    int refused = 0;
    for (int fault = Math.max(1, last - 20); fault <= last; fault += 3) {
      String name = "stored" + fault;
      save(spark, 2, name);
      StoreFiles.failAt(fault, false);
      String error = error(() -> save(spark, 3, name));
      StoreFiles.recover();
      long rows = spark.read().format("sequence").load(dir.resolve("store/" + name).toString()).count();
      assertEquals(error.isEmpty() ? 3 : 2, rows, "request " + fault + " of " + last + ": " + error);
      if (!error.isEmpty()) refused++;
    }
    assertTrue(refused > 0, "each of the last of " + last + " requests may fail");
  }

  /** Of a request that was refused, or "". */
  private static String error(Runnable work) {
    try {
      work.run();
      return "";
    } catch (Exception e) {  // a job of Spark's that fails throws checked ones, too
      StringWriter stack = new StringWriter();
      e.printStackTrace(new PrintWriter(stack, true));
      assertTrue(stack.toString().contains("503"), stack.toString());
      return e.toString();
    }
  }

  private static void save(SparkSession spark, int rows, String name) {
    spark.range(0, rows, 1, 1).selectExpr("cast(id as string) id", "id label", "cast('x' as binary) data")
        .write().format("sequence").mode("overwrite").save(StoreFiles.path(dir.resolve("store/" + name)));
  }

  @Test
  void tablesAreWrittenAndReadBack() throws IOException {
    SparkSession spark = TestImages.session();
    String path = dir.resolve("written").toUri().toString();
    Dataset<Row> files = spark.range(3).selectExpr("cast(id as string) id", "id + 4 label",
        "cast(concat('file ', id) as binary) data");
    files.write().format("sequence").save(path);
    Dataset<Row> read = spark.read().format("sequence").load(path).orderBy("id");
    assertEquals("[[0,4,null,null,null,true], [1,5,null,null,null,true], [2,6,null,null,null,true]]",
        read.collectAsList().stream().map(SequenceImagesTest::values).toList().toString());
    assertEquals("file 2", read.selectExpr("string(data)").collectAsList().get(2).getString(0));

    read.filter("id <> '1'").write().format("sequence").mode("overwrite").save(path);
    assertEquals(2, spark.read().format("sequence").load(path).count());
    files.write().format("sequence").mode("overwrite").save(path);

    Dataset<Row> sized = spark.range(1).selectExpr("'x' id", "'9' label", "3 channels", "1 height",
        "2 width", "false encoded", "cast('abcdef' as binary) data");
    assertThrows(CafetiereException.class, () -> sized.write().format("sequence").save(path));
    sized.write().format("sequence").mode("ignore").save(path);
    assertEquals(3, spark.read().format("sequence").load(path).count());
    sized.write().format("sequence").mode("overwrite").save(path);
    assertEquals("[x,9,3,1,2,false]", values(spark.read().format("sequence").load(path).first()));

    try (Stream<Path> left = Files.list(dir)) {
      assertTrue(left.noneMatch(file -> file.getFileName().toString().startsWith("_")));
    }

    String message = assertThrows(CafetiereException.class,
        () -> sized.drop("label").write().format("sequence").save(path + "2")).getMessage();
    assertTrue(message.contains("the table has id, channels"), message);
    assertTrue(assertThrows(IllegalArgumentException.class,
        () -> spark.read().format("sequence").option("pathh", "x").load(path)).getMessage()
        .contains("did you mean \"path\""));
  }

  private static String values(Row row) {
    Object[] values = new Object[row.size() - 1];
    for (int i = 0; i < values.length; i++) values[i] = row.get(i);
    return Arrays.toString(values).replace(", ", ",");
  }

  private static Tuple2<BytesWritable, BytesWritable> record(int number) throws IOException {
    Serializable key = switch (number) {
      case 0 -> new Tuple2<>("a", "5");
      case 1 -> new Tuple6<>("b", "6", 3, 1, 2, false);
      default -> new Pair(null, null);
    };
    byte[] value = ("value " + number).getBytes(StandardCharsets.UTF_8);
    return new Tuple2<>(new BytesWritable(bytes(key)), new BytesWritable(value));
  }

  private static Object[] elements(Serializable key) throws IOException {
    byte[] bytes = bytes(key);
    return SerializedKey.elements(bytes, bytes.length);
  }

  private static byte[] bytes(Serializable key) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(key);
    }
    return bytes.toByteArray();
  }
}

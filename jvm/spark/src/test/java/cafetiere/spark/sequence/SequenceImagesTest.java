// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sequence;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.TestImages;
import com.yahoo.ml.caffe.tools.Pair;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.PriorityQueue;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.mapred.SequenceFileOutputFormat;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
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

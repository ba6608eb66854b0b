// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.pixels;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.TestImages;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.hadoop.io.ArrayPrimitiveWritable;
import org.apache.hadoop.io.FloatWritable;
import org.apache.hadoop.mapred.SequenceFileOutputFormat;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.Tuple2;

/** DeepSpark's files of images, read and trained on. */
@BothLines
class PixelSourceTest {
  @TempDir static Path dir;
  private static SparkSession spark;

  @BeforeAll
  static void start() {
    spark = TestImages.session();
  }

  @Test
  void linesOfPixelsTrainLikeTheSameTable() throws IOException {
    Dataset<Row> images = TestImages.images(spark, 200).drop("id");
    List<String> lines = images.collectAsList().stream().map(PixelSourceTest::line).toList();
    Files.write(dir.resolve("digits.txt"), lines);
    Dataset<Row> read = spark.read().format("pixels").load(uri("digits.txt"));
    assertEquals(200, read.filter("channels = 1 and height = 28 and width = 28").count());
    assertArrayEquals(weights(images.withColumnRenamed("image", "data")), weights(read));
  }

  @Test
  void recordsOfCifar() throws IOException {
    ByteArrayOutputStream ten = new ByteArrayOutputStream();
    ByteArrayOutputStream hundred = new ByteArrayOutputStream();
    for (int i = 0; i < 5; i++) {
      byte[] pixels = new byte[3072];
      pixels[i] = (byte) (200 + i);
      ten.write(i + 5);
      ten.write(pixels);
      hundred.write(1);
      hundred.write(i + 90);
      hundred.write(pixels);
    }
    Files.write(dir.resolve("ten.bin"), ten.toByteArray());
    Files.write(dir.resolve("hundred.bin"), hundred.toByteArray());
    expectCifar("cifar", "ten.bin", 5);
    expectCifar("cifar100", "hundred.bin", 90);
  }

  @Test
  void sequenceFilesOfBytesAndOfFloats() {
    write("bytes", new byte[] {1, 2, 3, (byte) 200});
    Row bytes = spark.read().format("pixels").option("form", "sequence").load(uri("bytes")).first();
    assertEquals(7f, bytes.<Float>getAs("label"));
    assertArrayEquals(new byte[] {1, 2, 3, (byte) 200}, bytes.<byte[]>getAs("data"));
    write("floats", new float[] {0.5f, -1, 2, 3, 4, 5});
    Row floats = spark.read().format("pixels").option("form", "sequence").option("channels", 1)
        .option("height", 2).option("width", 3).load(uri("floats")).first();
    assertEquals(List.of(0.5f, -1f, 2f, 3f, 4f, 5f), floats.getList(floats.fieldIndex("float_data")));
    assertEquals(3, floats.<Integer>getAs("width"));
  }

  @Test
  void whatIsWrongIsTold() throws IOException {
    Files.writeString(dir.resolve("bad.txt"), "1\t2\t300\t4\t0\n");
    Exception pixel = assertThrows(Exception.class,
        () -> spark.read().format("pixels").load(uri("bad.txt")).count());
    assertTrue(pixel.toString().contains("has '300' as value 3"), pixel.toString());
    Files.writeString(dir.resolve("odd.txt"), "1\t2\t3\t4\t5\t0\n");
    Exception size = assertThrows(Exception.class,
        () -> spark.read().format("pixels").load(uri("odd.txt")).collect());
    assertTrue(size.toString().contains("an image has 5 values, which make no square of one channel or"
        + " of three: give the options channels, height and width"), size.toString());
    Files.writeString(dir.resolve("nan.txt"), "1\t2\t3\t4\tNaN\n");
    Exception label = assertThrows(Exception.class,
        () -> spark.read().format("pixels").load(uri("nan.txt")).collect());
    assertTrue(label.toString().contains("has 'NaN' as value 5"), label.toString());
    Exception option = assertThrows(Exception.class,
        () -> spark.read().format("pixels").option("heigth", 2).load(uri("odd.txt")));
    assertTrue(option.toString().contains(
        "pixels has no option \"heigth\"; did you mean \"height\"?"), option.toString());
    Exception form = assertThrows(Exception.class,
        () -> spark.read().format("pixels").option("form", "xml").load(uri("bad.txt")));
    assertTrue(form.toString().contains("text, cifar, cifar100, sequence"), form.toString());
  }

  private static void expectCifar(String form, String file, int first) {
    List<Row> rows = spark.read().format("pixels").option("form", form).load(uri(file))
        .orderBy("label").collectAsList();
    assertEquals(5, rows.size());
    for (int i = 0; i < 5; i++) {
      assertEquals(first + i, rows.get(i).<Float>getAs("label"));
      assertEquals((byte) (200 + i), rows.get(i).<byte[]>getAs("data")[i]);
      assertEquals(32, rows.get(i).<Integer>getAs("height"));
    }
  }

  private static void write(String name, Object image) {
    JavaSparkContext.fromSparkContext(spark.sparkContext()).parallelize(List.of(7), 1)
        .mapToPair(label -> new Tuple2<>(new FloatWritable(label), new ArrayPrimitiveWritable(image)))
        .saveAsHadoopFile(uri(name), FloatWritable.class, ArrayPrimitiveWritable.class,
            SequenceFileOutputFormat.class);
  }

  private static byte[] weights(Dataset<Row> table) {
    return new CaffeEstimator().setSolver(TestImages.solver(4)).setNet(TestImages.lenet())
        .setFeaturesCol("data").setNumWorkers(2).fit(table.selectExpr("data", "cast(label as int) label"))
        .weights();
  }

  private static String line(Row row) {
    byte[] pixels = row.getAs("image");
    return IntStream.range(0, pixels.length).mapToObj(i -> Integer.toString(pixels[i] & 0xff))
        .collect(Collectors.joining("\t")) + "\t" + row.getAs("label");
  }

  private static String uri(String name) {
    return dir.resolve(name).toUri().toString();
  }
}

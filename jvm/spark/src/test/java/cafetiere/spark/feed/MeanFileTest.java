// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.TestImages;
import cafetiere.spark.TestWeights;
import cafetiere.spark.sql.Functions;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** transform_param { mean_file } names a Hadoop path, which executors need not see as a file. */
@Timeout(value = 240, unit = TimeUnit.SECONDS)
@BothLines
class MeanFileTest {
  private static final int ROWS = 100;

  @TempDir static Path dir;
  private static Dataset<Row> images;

  @BeforeAll
  static void write() throws IOException {
    images = TestImages.images(TestImages.session(), ROWS).cache();
    Files.write(dir.resolve("mean.binaryproto"), mean());
  }

  @ParameterizedTest
  @ValueSource(strings = {"barrier", "rounds"})
  void aUriIsReadByTheDriverForAllRanks(String engine) {
    CaffeModel plain = estimator(engine, "").fit(images);
    CaffeModel local = estimator(engine, dir.resolve("mean.binaryproto").toString()).fit(images);
    CaffeModel uri = estimator(engine, uri()).fit(images);
    assertEquals(TestWeights.of(local), TestWeights.of(uri));
    assertNotEquals(TestWeights.of(plain), TestWeights.of(uri));
    assertTrue(uri.getNet().contains(uri()), "the model's net names the file as it was given");
    assertEquals(uri.transform(images).select("prediction").collectAsList(),
        local.transform(images).select("prediction").collectAsList());
  }

  @Test
  void theFunctionOfSqlReadsItToo() throws IOException {
    CaffeModel model = estimator("barrier", uri()).fit(images).setBatchSize(1);
    String path = dir.resolve("model").toString();
    model.write().save(path);
    List<Row> expected = model.transform(images).select("id", "ip2").orderBy("id").collectAsList();
    images.selectExpr("id", "transform(sequence(1, 784),"
        + " i -> cast(conv(hex(substring(image, i, 1)), 16, 10) as float)) pixels")
        .createOrReplaceTempView("pixels");
    SparkSession spark = TestImages.session();
    spark.conf().set("spark.sql.catalog.cafetiere", Functions.class.getName());
    assertEquals(expected, spark.sql("SELECT id, cafetiere.predict('" + path
        + "', pixels) ip2 FROM pixels ORDER BY id").collectAsList());
  }

  @Test
  void onlyTheFieldIsRead() throws IOException {
    String text = "# mean_file: 'a comment'\nsource: \"mean_file: 'a string' # and no comment\""
        + " mean_file: \"" + uri() + "\" meanfile : '" + dir.resolve("mean.binaryproto") + "'";
    Configuration conf = new Configuration();
    MeanFiles files = MeanFiles.of(conf, text, "transform_param { scale: 1 }");
    assertEquals(Set.of(uri(), dir.resolve("mean.binaryproto").toString()), files.base64().keySet());
    assertArrayEquals(mean(), files.bytes().get(uri()));
    assertEquals(MeanFiles.NONE, MeanFiles.of(conf, "mean_file: ''"));
  }

  @Test
  void aFileThatIsNotThereIsTold() {
    String message = assertThrows(RuntimeException.class,
        () -> estimator("barrier", uri() + ".gone").fit(images)).getMessage();
    assertTrue(message.startsWith("cannot read " + uri() + ".gone"), message);
  }

  private static CaffeEstimator estimator(String engine, String mean) {
    String field = mean.isEmpty() ? "" : " mean_file: '" + mean + "'";
    String net = TestImages.lenet();
    assertTrue(net.contains("transform_param {"), net);
    return new CaffeEstimator().setSolver(TestImages.solver(4)).setEngine(engine)
        .setSyncMode("average").setSyncPeriod(2)
        .setNet(net.replace("transform_param {", "transform_param {" + field))
        .setFeaturesCol("image").setLabelCol("label").setNumWorkers(2).setShards(2);
  }

  private static String uri() {
    return dir.resolve("mean.binaryproto").toUri().toString();
  }

  /** A BlobProto of 1 x 1 x SIDE x SIDE floats. */
  private static byte[] mean() {
    int count = TestImages.SIDE * TestImages.SIDE;
    ByteBuffer proto = ByteBuffer.allocate(11 + 4 * count).order(ByteOrder.LITTLE_ENDIAN);
    int[] sizes = {1, 1, TestImages.SIDE, TestImages.SIDE};
    for (int i = 0; i < sizes.length; i++) proto.put((byte) ((i + 1) << 3)).put((byte) sizes[i]);
    int bytes = 4 * count;
    proto.put((byte) (5 << 3 | 2)).put((byte) (bytes & 0x7f | 0x80)).put((byte) (bytes >> 7));
    for (int i = 0; i < count; i++) proto.putFloat(i % 50);
    return proto.array();
  }
}

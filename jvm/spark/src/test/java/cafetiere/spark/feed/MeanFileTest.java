// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.TestImages;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
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
    assertArrayEquals(local.weights(), uri.weights());
    assertFalse(Arrays.equals(plain.weights(), uri.weights()));
    assertTrue(uri.getNet().contains(uri()), "the model's net names the file as it was given");
    assertEquals(uri.transform(images).select("prediction").collectAsList(),
        local.transform(images).select("prediction").collectAsList());
  }

  @Test
  void onlyTheFieldIsReplaced() {
    String text = "# mean_file: 'a comment'\nsource: \"mean_file: 'a string' # and no comment\""
        + " mean_file: \"" + uri() + "\" meanfile : '" + uri() + "'";
    String shipped = MeanFiles.shipped(text, () -> TestImages.session().sparkContext());
    String name = "\"cafetiere-mean-[0-9a-f-]{36}.binaryproto\"";
    assertTrue(shipped.matches("# mean_file: 'a comment'\nsource: \"mean_file: 'a string' # and no"
        + " comment\" mean_file: " + name + " meanfile : " + name), shipped);
    assertEquals(shipped, MeanFiles.shipped(shipped, () -> TestImages.session().sparkContext()));
    String none = "transform_param { scale: 1 }";
    assertEquals(none, MeanFiles.shipped(none, () -> fail("there is no file")));
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

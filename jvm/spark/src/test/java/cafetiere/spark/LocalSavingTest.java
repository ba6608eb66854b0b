// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.ml.util.MLReader;
import org.apache.spark.ml.util.MLWriter;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Models on the disk of a server of Spark Connect, whose default file system is another one. */
class LocalSavingTest {
  private static final String DEFAULT = "fs.defaultFS";
  private static final String RETRIES = "ipc.client.connect.max.retries";
  private static final byte[] WEIGHTS = {10, 1, 'm'};

  private static final SparkSession spark = TestImages.session();
  private final Configuration conf = spark.sparkContext().hadoopConfiguration();
  private final String before = conf.get(DEFAULT);

  @TempDir Path dir;

  @BeforeEach
  void anotherFileSystem() throws Exception {
    boolean isThere = true;
    try {
      MLWriter.class.getMethod("saveToLocal", String.class);
    } catch (NoSuchMethodException e) {
      isThere = false;  // before Spark 4.1
    }
    assumeTrue(isThere);
    conf.set(DEFAULT, "hdfs://127.0.0.1:1");  // where nobody listens
    conf.set(RETRIES, "0");
  }

  @AfterEach
  void theOwnOne() {
    conf.set(DEFAULT, before);
    conf.unset(RETRIES);
    spark.conf().unset("spark.cafetiere.largestModel");
  }

  @Test
  void weightsAreThere() throws Exception {
    CaffeModel model = CaffeModel.ofWeights(WEIGHTS, Map.of()).setNet("name: 'n'");
    String place = dir.resolve("model").toString();
    model.write().saveToLocal(place);
    assertTrue(Files.exists(Path.of(place, "data/model.caffemodel")));
    MLReader<CaffeModel> reader = CaffeModel.read();
    CaffeModel loaded = reader.loadFromLocal(place);
    assertArrayEquals(WEIGHTS, loaded.weights());
    assertEquals("name: 'n'", loaded.getNet());
  }

  @Test
  void weightsThatExecutorsReadStayWhereTheyAre() throws Exception {
    Path file = Files.write(dir.resolve("large.caffemodel"), WEIGHTS);
    spark.conf().set("spark.cafetiere.largestModel", "1b");
    CaffeModel model = CaffeModel.ofWeightsFile(file.toUri().toString(), Map.of());
    String place = dir.resolve("model").toString();
    model.write().saveToLocal(place);
    assertEquals(model.weightsFile(), CaffeModel.read().loadFromLocal(place).weightsFile());
  }
}

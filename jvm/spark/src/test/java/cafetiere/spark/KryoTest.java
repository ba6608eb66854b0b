// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

import cafetiere.core.net.Net;
import cafetiere.spark.ml.CaffeRegressor;
import java.awt.image.BufferedImage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.imageio.ImageIO;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Where spark.serializer is Kryo, what travels between driver and executors arrives. */
@Timeout(value = 480, unit = TimeUnit.SECONDS)
@BothLines
class KryoTest {
  private static final int ROWS = 64;

  @TempDir Path dir;

  @Test
  void whatTravelsArrives() throws Exception {
    Path log = dir.resolve("log");
    Process driver = DriverProcess.start(Driver.class, log, dir.toString());
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(log));
  }

  /** Fits, each of which checks the executors first, and reads files; all in one session. */
  static final class Driver {
    private Driver() {}

    public static void main(String[] args) throws IOException {
      try (SparkSession spark = SparkSession.builder().appName("kryo")
          .master("local-cluster[2,1,512]").config("spark.executor.memory", "512m")
          .config("spark.serializer", KryoSerializer.class.getName()).getOrCreate()) {
        fitTables(spark);
        readRecords(spark, Path.of(args[0]));
        fitFiles(spark, Path.of(args[0]));
      }
    }

    private static void fitTables(SparkSession spark) {
      Dataset<Row> numbers = spark.range(ROWS).selectExpr("id % 7 x", "id % 3 + 0.5 label");
      CaffeRegressor table = new CaffeRegressor().setFeaturesCols("x").setNumWorkers(2).setMaxEpochs(1);
      assertEquals(ROWS, table.fit(numbers.repartition(3)).summary().rowsGiven());
      CaffeEstimator rounds = new CaffeEstimator().setSolver(TestNets.SOLVER)
          .setNet(TestNets.CLASSIFIER).setFeaturesCol("features").setLabelCol("label").setNumWorkers(2)
          .setMaxIter(4).setSyncMode("average").setEngine("rounds");
      assertEquals("rounds", rounds.fit(TestNets.points(spark, ROWS)).summary().engine());
    }

    private static void readRecords(SparkSession spark, Path dir) throws IOException {
      ByteBuffer vectors = ByteBuffer.allocate(12 + 4 * ROWS);
      Files.write(dir.resolve("vectors"), vectors.putInt(0x802).putInt(ROWS).putInt(4).array());
      Files.write(dir.resolve("train.bin"), new byte[ROWS * (1 + 3 * 32 * 32)]);
      for (String file : List.of("idx vectors", "cifar train.bin")) {
        String[] words = file.split(" ");
        Dataset<Row> rows = spark.read().format(words[0]).option("partitions", "3")
            .load(dir.resolve(words[1]).toUri().toString());
        assertEquals(ROWS, rows.collectAsList().size(), file);
      }
    }

    private static void fitFiles(SparkSession spark, Path dir) throws IOException {
      BufferedImage image = new BufferedImage(2, 2, BufferedImage.TYPE_BYTE_GRAY);
      ImageIO.write(image, "png", dir.resolve("image.png").toFile());
      Files.writeString(dir.resolve("images"), (dir.resolve("image.png") + " 1\n").repeat(ROWS));
      fitFiles(spark, "type: 'ImageData' image_data_param { batch_size: 8 is_color: false source: '"
          + dir.resolve("images") + "' }");
      String rows = "layer { name: 'in' type: 'Input' top: 'data' top: 'label' input_param {"
          + " shape { dim: " + ROWS + " dim: 3 } shape { dim: " + ROWS + " dim: 1 } } }"
          + " layer { name: 'out' type: 'HDF5Output' bottom: 'data' bottom: 'label'"
          + " hdf5_output_param { file_name: '" + dir.resolve("rows.h5") + "' } }";
      try (Net net = Net.of(rows, "TEST")) {
        net.forward();
      }
      Files.writeString(dir.resolve("hdf5"), dir.resolve("rows.h5") + "\n");
      fitFiles(spark, "type: 'HDF5Data' hdf5_data_param { batch_size: 8 source: '"
          + dir.resolve("hdf5") + "' }");
    }

    private static void fitFiles(SparkSession spark, String source) {
      String layer = "layer { name: 'data' top: 'data' top: 'label' " + source + " }\n";
      String net = layer + TestNets.CLASSIFIER.substring(TestNets.CLASSIFIER.indexOf('\n') + 1);
      CaffeModel model = new CaffeEstimator().setSolver(TestNets.SOLVER).setNet(net)
          .setNumWorkers(2).setMaxIter(2).fitFiles(spark);
      assertEquals(ROWS, model.summary().rowsGiven());
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.cluster.ClusterSlots;
import cafetiere.spark.util.Unchecked;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Tuple2;

/** A small table of images with labels, and LeNet to train on it. */
public final class TestImages {
  public static final int EXECUTORS = 2;
  public static final int SIDE = 28;
  public static final int CLASSES = 10;
  public static final StructType SCHEMA = new StructType()
      .add("id", DataTypes.LongType)
      .add("image", DataTypes.BinaryType)
      .add("label", DataTypes.IntegerType);

  private TestImages() {}

  /** The tests' session, with its two executors there: an earlier test may have ended one. */
  public static SparkSession session() {
    SparkSession spark = TestCluster.session();
    try {
      ClusterSlots.await(spark.sparkContext(), EXECUTORS, 60, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      throw Unchecked.rethrow(e);
    }
    return spark;
  }

  /** Images of a bright bar on noise, whose place tells the label. */
  public static Dataset<Row> images(SparkSession spark, int rows) {
    List<Row> table = new ArrayList<>();
    for (int id = 0; id < rows; id++) table.add(RowFactory.create((long) id, image(id), label(id)));
    return spark.createDataFrame(table, SCHEMA);
  }

  public static int label(int id) {
    return id % CLASSES;
  }

  /** Caffe's LeNet, as the quickstart trains it. */
  public static String lenet() {
    return example("quickstart/lenet_train_test.prototxt");
  }

  /** The path of a file below examples/. */
  public static Path examplePath(String name) {
    return Path.of(System.getProperty("examples"), name);
  }

  static String example(String name) {
    try {
      return Files.readString(examplePath(name));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** A solver for {@link #lenet} that runs {@code steps} steps. */
  public static String solver(int steps) {
    return "base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: \"inv\" gamma: 0.0001"
        + " power: 0.75 max_iter: " + steps + " random_seed: 7 snapshot_prefix: \"lenet\"";
  }

  /** Process ids of the executors. */
  public static List<Long> executorPids(SparkSession spark) {
    return List.copyOf(executors(spark).values());
  }

  /** Process ids of the executors, by Spark's ids. */
  public static Map<String, Long> executors(SparkSession spark) {
    List<Integer> tasks = IntStream.range(0, 8 * EXECUTORS).boxed().toList();
    return JavaSparkContext.fromSparkContext(spark.sparkContext())
        .parallelize(tasks, tasks.size()).mapToPair(task -> {
          Thread.sleep(50);
          return new Tuple2<>(SparkEnv.get().executorId(), ProcessHandle.current().pid());
        }).distinct().collectAsMap();
  }

  /** The pixels of an image. */
  static byte[] image(int id) {
    byte[] pixels = new byte[SIDE * SIDE];
    new Random(id).nextBytes(pixels);
    for (int i = 0; i < pixels.length; i++) pixels[i] = (byte) ((pixels[i] & 0xff) / 4);
    int top = 2 + 2 * label(id);
    for (int y = top; y < top + 3; y++) {
      for (int x = 4; x < SIDE - 4; x++) pixels[y * SIDE + x] = (byte) 230;
    }
    return pixels;
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManager;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import scala.Function1;
import scala.runtime.AbstractFunction1;

/** How long the weights that a model sends to the executors are kept. */
@Timeout(value = 240, unit = TimeUnit.SECONDS)
@BothLines
class ModelBroadcastTest {
  private static final int MODELS = 12;

  @TempDir Path dir;

  @Test
  void aModelOutlivesItsSession() throws Exception {
    Path log = dir.resolve("log");
    Process driver = DriverProcess.start(TwoSessions.class, log);
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(log));
  }

  @Test
  void modelsThatAreKeptKeepNoBroadcast() throws Exception {
    SparkSession spark = TestImages.session();
    Dataset<Row> points = TestNets.points(spark, 50);
    CaffeModel trained = TestNets.model(points);
    List<CaffeModel> models = new ArrayList<>();
    for (int i = 0; i < MODELS; i++) {
      models.add(trained.copy(trained.extractParamMap()));
      assertEquals(50, models.get(i).transform(points).count());
    }
    // Spark's cleaner frees them after a collection, on a thread of its own.
    int left = mostBroadcasts(spark); // among them those of the jobs that count
    for (int i = 0; i < 100 && left >= MODELS; i++) {
      System.gc();
      TimeUnit.MILLISECONDS.sleep(100);
      left = mostBroadcasts(spark);
    }
    assertTrue(left < MODELS, "broadcasts: " + left);
    assertEquals(50, models.get(0).transform(points).count(), "sent again");
  }

  /** On the driver or on an executor, where there are more. */
  private static int mostBroadcasts(SparkSession spark) throws ReflectiveOperationException {
    int executors = JavaSparkContext.fromSparkContext(spark.sparkContext())
        .parallelize(List.of(1, 2, 3, 4), 4).map(task -> broadcasts()).reduce(Math::max);
    return Math.max(broadcasts(), executors);
  }

  /** In this process, Spark's own included. The method's Seq is another class in Scala 2.12. */
  private static int broadcasts() throws ReflectiveOperationException {
    BlockManager blocks = SparkEnv.get().blockManager();
    Object ids = BlockManager.class.getMethod("getMatchingBlockIds", Function1.class)
        .invoke(blocks, new IsBroadcast());
    return ((scala.collection.Iterable<?>) ids).size();
  }

  /** Picks a broadcast's value, not its pieces. */
  private static final class IsBroadcast extends AbstractFunction1<BlockId, Object> {
    @Override
    public Object apply(BlockId id) {
      return id.name().matches("broadcast_\\d+");
    }
  }

  /** Uses a model in two sessions, one after the other. */
  static final class TwoSessions {
    private TwoSessions() {}

    public static void main(String[] args) throws IOException {
      CaffeModel model = null;
      for (int i = 0; i < 2; i++) {
        try (SparkSession spark = SparkSession.builder().appName("sessions").master("local[1]")
            .getOrCreate()) {
          Dataset<Row> points = TestNets.points(spark, 50);
          if (model == null) model = TestNets.model(points);
          model.transform(points).count();
          model.transform(points).select("prediction").collectAsList();
        }
      }
    }
  }
}

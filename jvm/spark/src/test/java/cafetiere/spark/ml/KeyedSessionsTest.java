// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import cafetiere.spark.BothLines;
import cafetiere.spark.DriverProcess;
import cafetiere.spark.TestImages;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Nets of keys after their fit: when its table has changed, and when its session has ended. */
@Timeout(value = 240, unit = TimeUnit.SECONDS)
class KeyedSessionsTest {
  @Test
  void savedNetsOutliveTheirSession(@TempDir Path folder) throws Exception {
    Path log = folder.resolve("log");
    Process driver = DriverProcess.start(TwoSessions.class, log, folder.resolve("model").toString());
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(log));
  }

  /** Spark plans cached tables anew whose source somebody writes to. */
  @BothLines
  @Test
  void whatIsWrittenToTheTableAfterTheFitDoesNotChangeTheNets(@TempDir Path folder) {
    SparkSession spark = TestImages.session();
    String source = folder.resolve("rows").toString();
    TwoSessions.rows(spark).write().parquet(source);
    CaffeRegressionModel model = TwoSessions.keyed().fit(spark.read().parquet(source));
    List<String> wanted = hashes(model);
    List<Row> predicted = TwoSessions.predictions(model, spark);
    TwoSessions.rows(spark).selectExpr("id + 40 id", "key", "x", "-label label")
        .write().mode("append").parquet(source);
    assertEquals(wanted, hashes(model));
    spark.catalog().clearCache();
    assertEquals(wanted, hashes(model));
    assertEquals(predicted, TwoSessions.predictions(model, spark));
    JavaSparkContext sc = JavaSparkContext.fromSparkContext(spark.sparkContext());
    Set<Integer> before = Set.copyOf(sc.getPersistentRDDs().keySet());
    CaffeRegressionModel next = TwoSessions.keyed().fit(spark.read().parquet(source));
    assertEquals(before.size() + 1, sc.getPersistentRDDs().size());
    next.nets().unpersist(true);
    assertEquals(before, sc.getPersistentRDDs().keySet());
  }

  private static List<String> hashes(CaffeRegressionModel model) {
    return model.nets().selectExpr("concat(key, ' ', rows, ' ', sha2(weights, 256))").orderBy("key")
        .collectAsList().stream().map(row -> row.getString(0)).toList();
  }

  /** Trains and loads nets of keys in a session, and uses them in the next one. */
  static final class TwoSessions {
    private TwoSessions() {}

    public static void main(String[] args) throws Exception {
      SparkSession first = session();
      CaffeRegressionModel trained = keyed().fit(rows(first));
      trained.write().save(args[0]);
      CaffeRegressionModel loaded = CaffeRegressionModel.load(args[0]);
      List<Row> wanted = predictions(trained, first);
      first.stop();
      try (SparkSession second = session()) {
        assertEquals(wanted, predictions(loaded, second));
        assertEquals(2, loaded.nets().count());
        assertNotNull(loaded.modelOf(1));
        loaded.write().save(args[0] + "2");
        for (Executable use : List.<Executable>of(() -> predictions(trained, second), trained::nets,
            () -> trained.netOf(1), () -> trained.write().save(args[0] + "3"))) {
          assertEquals("the session that trained these nets has ended: save the model before, and load it",
              assertThrows(IllegalStateException.class, use).getMessage());
        }
      }
    }

    private static CaffeRegressor keyed() {
      return new CaffeRegressor().setGroupCol("key").setFeaturesCols("x").setMaxEpochs(1);
    }

    private static SparkSession session() {
      return SparkSession.builder().appName("keys").master("local[1]").getOrCreate();
    }

    private static Dataset<Row> rows(SparkSession spark) {
      return spark.range(40).selectExpr("id", "id % 2 key", "id % 7 x", "id % 3 + 0.5 label");
    }

    private static List<Row> predictions(CaffeRegressionModel model, SparkSession spark) {
      return model.transform(rows(spark)).select("id", "prediction").orderBy("id").collectAsList();
    }
  }
}

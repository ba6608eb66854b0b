// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A model scores a stream: each row once, whatever ends on the way. */
@BothLines
@Timeout(value = 180, unit = TimeUnit.SECONDS)
class StreamTest {
  private static final int ROWS = 1_000;
  private static final int FILES = 10;
  private static final String CHECKPOINTS = "spark.sql.streaming.checkpointLocation";

  @TempDir Path folder;

  @Test
  void aQueryThatIsStoppedAndLosesAnExecutorScoresEachRowOnce() throws Exception {
    SparkSession spark = TestImages.session();
    Dataset<Row> points = TestNets.points(spark, ROWS);
    CaffeModel model = TestNets.model(points.limit(200));
    points.repartition(FILES, points.col("id")).write().parquet(path("in"));
    List<Row> expected =
        model.transform(points).select("id", "score", "prediction").orderBy("id").collectAsList();

    StreamingQuery first = start(spark, model);
    while (first.recentProgress().length == 0) TimeUnit.MILLISECONDS.sleep(10);
    first.stop(); // perhaps in the midst of a batch
    long before = spark.read().parquet(path("out")).count();
    assertTrue(before > 0, "no row was scored before the query was stopped");

    StreamingQuery second = start(spark, model);
    ProcessHandle.of(TestImages.executorPids(spark).get(0)).orElseThrow().destroyForcibly();
    second.processAllAvailable();
    second.stop();
    assertEquals(expected, spark.read().parquet(path("out")).orderBy("id").collectAsList());
  }

  private StreamingQuery start(SparkSession spark, CaffeModel model) throws Exception {
    Dataset<Row> rows = spark.readStream().schema(spark.read().parquet(path("in")).schema())
        .option("maxFilesPerTrigger", 1).parquet(path("in"));
    assertTrue(model.transform(rows).isStreaming());
    // The writer's option() is another method on each line of Spark.
    spark.conf().set(CHECKPOINTS, path("checkpoints"));
    try {
      return model.transform(rows).select("id", "score", "prediction").writeStream()
          .queryName("scored").start(path("out"));
    } finally {
      spark.conf().unset(CHECKPOINTS);
    }
  }

  private String path(String name) {
    return folder.resolve(name).toString();
  }
}

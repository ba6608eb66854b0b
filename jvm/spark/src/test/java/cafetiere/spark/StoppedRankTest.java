// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A rank of {@code easgd} on the barrier engine that is stopped (SIGSTOP), which the others train on
 * without: it is replaced when they have ended. Spark itself would wait an hour for it.
 */
@Timeout(value = 480, unit = TimeUnit.SECONDS)
class StoppedRankTest {
  private static final int ROWS = 1_007;
  private static final int STEPS = 300;

  @TempDir Path dir;

  /** The result of the others stands where rank 0, which stores it, is among them. */
  @ParameterizedTest
  @CsvSource({"1, 1", "0, 2"})
  void itIsReplacedWhenTheOthersHaveEnded(int stopped, int attempts) throws Exception {
    SparkSession spark = TestImages.session();
    Map<String, Long> executors = TestImages.executors(spark);
    Ranks ranks = new Ranks();
    spark.sparkContext().addSparkListener(ranks);
    CompletableFuture<String> victim = CompletableFuture.supplyAsync(() -> {
      KillTest.awaitCheckpoint(dir);
      String executor = ranks.executors.get(stopped);
      Processes.signal("STOP", executors.get(executor));
      return executor;
    });
    try {
      JsonNode result = Json.parse(new CaffeEstimator()
          .setSolver(TestImages.solver(STEPS)).setNet(TestImages.lenet())
          .setFeaturesCol("image").setLabelCol("label").setNumWorkers(TestImages.EXECUTORS)
          .setSyncMode("easgd").setSyncPeriod(5)
          .setCheckpointDir(dir.toUri().toString()).setCheckpointInterval(20)
          .fit(TestImages.images(spark, ROWS)).result());
      SparkInternals.awaitEvents(spark.sparkContext(), 60_000);
      List<String> events = List.copyOf(ranks.events);
      int ended = events.indexOf("ended " + (1 - stopped));
      assertTrue(ended >= 0 && ended < events.indexOf("removed " + victim.get()),
          events.toString());
      assertEquals(attempts, result.path("attempts").asInt(), events.toString());
      assertEquals(STEPS, result.path("steps").asInt());
    } finally {
      spark.sparkContext().removeSparkListener(ranks);
      Long stoppedPid = executors.get(victim.getNow(""));
      if (stoppedPid != null) Processes.signal("KILL", stoppedPid);
    }
  }

  /** Where the newest tasks of each partition run; and what ends, in order. */
  private static final class Ranks extends SparkListener {
    private final Map<Integer, String> executors = new ConcurrentHashMap<>();
    private final Queue<String> events = new ConcurrentLinkedQueue<>();

    @Override
    public void onTaskStart(SparkListenerTaskStart start) {
      executors.put(start.taskInfo().partitionId(), start.taskInfo().executorId());
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      // The tasks before the ranks' shuffle the rows.
      boolean rank = end.taskType().equals("ResultTask");
      if (rank && end.taskInfo().successful()) events.add("ended " + end.taskInfo().partitionId());
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
      events.add("removed " + removed.executorId());
    }
  }
}

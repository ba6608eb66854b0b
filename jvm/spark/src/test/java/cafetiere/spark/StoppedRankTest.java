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
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A rank of {@code easgd} on the barrier engine that is stopped (SIGSTOP), which the others train
 * on without: it is replaced when they have ended. Spark itself would wait an hour for it.
 */
@LongRun
@Timeout(value = 480, unit = TimeUnit.SECONDS)
class StoppedRankTest {
  private static final int ROWS = 1_007;
  private static final int STEPS = 300;

  @TempDir Path dir;
  private SparkSession spark;
  private Map<String, Long> pids;
  private Ranks ranks;
  private CompletableFuture<String> victim;

  @BeforeEach
  void listen() {
    spark = TestImages.session();
    pids = TestImages.executors(spark);
    ranks = new Ranks();
    spark.sparkContext().addSparkListener(ranks);
  }

  @AfterEach
  void kill() {
    spark.sparkContext().removeSparkListener(ranks);
    Long stopped = pids.get(victim.getNow(""));
    if (stopped != null) Processes.signal("KILL", stopped);
  }

  /** The result of the others stands where rank 0, which stores it, is among them. */
  @ParameterizedTest
  @CsvSource({"1, 1", "0, 2"})
  void itIsReplacedWhenTheOthersHaveEnded(int stopped, int attempts) throws Exception {
    JsonNode result = fitWhile(stopped);
    List<String> events = List.copyOf(ranks.events);
    int ended = events.indexOf("ended " + (1 - stopped));
    assertTrue(ended >= 0 && ended < events.indexOf("removed " + victim.get()), events.toString());
    assertEquals(attempts, result.path("attempts").asInt(), events.toString());
    assertEquals(STEPS, result.path("steps").asInt());
  }

  /** It finds itself given up then. */
  @Test
  void oneThatGoesOnWhenTheResultIsStoredDoesNotUndoIt() throws Exception {
    ranks.atFirstEnd = () -> Processes.signal("CONT", pids.get(victim.join()));
    JsonNode result = fitWhile(1);
    assertEquals("ended 0", ranks.events.peek());
    assertEquals(1, result.path("attempts").asInt(), ranks.events.toString());
    assertEquals(STEPS, result.path("steps").asInt());
  }

  /** Trains, and stops the executor of a rank in mid-run. */
  private JsonNode fitWhile(int stopped) {
    victim = CompletableFuture.supplyAsync(() -> {
      KillTest.awaitCheckpoint(dir);
      String executor = ranks.executors.get(stopped);
      Processes.signal("STOP", pids.get(executor));
      ranks.listens = true;
      return executor;
    });
    CaffeModel model = new CaffeEstimator()
        .setSolver(TestImages.solver(STEPS)).setNet(TestImages.lenet())
        .setFeaturesCol("image").setLabelCol("label").setNumWorkers(TestImages.EXECUTORS)
        .setSyncMode("easgd").setSyncPeriod(5)
        .setCheckpointDir(dir.toUri().toString()).setCheckpointInterval(20)
        .fit(TestImages.images(spark, ROWS));
    SparkInternals.awaitEvents(spark.sparkContext(), 60_000);
    return Json.parse(model.result());
  }

  /** Where the newest tasks of each partition run; and what ends from some time on, in order. */
  private static final class Ranks extends SparkListener {
    private final Map<Integer, String> executors = new ConcurrentHashMap<>();
    private final Queue<String> events = new ConcurrentLinkedQueue<>();
    private volatile Runnable atFirstEnd = () -> {};
    private volatile boolean listens;

    @Override
    public void onTaskStart(SparkListenerTaskStart start) {
      executors.put(start.taskInfo().partitionId(), start.taskInfo().executorId());
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      if (!listens || !end.taskInfo().successful()) return;
      if (events.isEmpty()) atFirstEnd.run();
      events.add("ended " + end.taskInfo().partitionId());
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
      events.add("removed " + removed.executorId());
    }
  }
}

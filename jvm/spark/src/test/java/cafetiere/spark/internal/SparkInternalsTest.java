// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.TestImages;
import cafetiere.spark.run.RankWork;
import cafetiere.spark.run.TaskOutcome;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.VoidFunction;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorMetricsUpdate;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.LongAccumulator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What Spark does not promise to keep, on each of its lines: no look-up may come back empty. */
@BothLines
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class SparkInternalsTest {
  private final SparkSession spark = TestImages.session();
  private final SparkContext sc = spark.sparkContext();
  private final JavaSparkContext jobs = JavaSparkContext.fromSparkContext(sc);

  @Test
  void aCancelledJobIsKnownFromOneThatFailed() throws Exception {
    Exception cancelled = with(new SparkListener() {
      @Override
      public void onTaskStart(SparkListenerTaskStart start) {
        sc.cancelAllJobs();
      }
    }, () -> assertThrows(Exception.class, () -> run(task -> Thread.sleep(1_000))));
    assertTrue(SparkInternals.isCancelled(cancelled));
    Exception failed = assertThrows(Exception.class, () -> run(task -> {
      throw new IllegalStateException("Job 7 cancelled");
    }));
    assertFalse(SparkInternals.isCancelled(failed));
  }

  @Test
  void theTellingLineOfAFailureIsThatOfTheTask() {
    Exception one = assertThrows(Exception.class, () -> run(task -> {
      throw new IllegalStateException("the task's words");
    }));
    String line = SparkInternals.tellingLine(one);
    assertTrue(line.endsWith("java.lang.IllegalStateException: the task's words"), line);
    JavaRDD<Iterator<InternalRow>> rows = jobs.parallelize(List.of(1), 1).map(number -> null);
    Exception barrier = assertThrows(Exception.class, () -> rows.rdd().barrier()
        .mapPartitions(new FailingRank(), false, RankWork.STRING).collect());
    assertEquals("java.lang.IllegalStateException: the rank's words",
        SparkInternals.tellingLine(barrier));
  }

  private static final class FailingRank extends RankWork {
    private static final long serialVersionUID = 1L;

    @Override
    public TaskOutcome run(Iterator<InternalRow> train, Iterator<InternalRow> validation) {
      throw new IllegalStateException("the rank's words");
    }
  }

  @Test
  void listenersHaveHeardWhatHasHappened() {
    assertTrue(SparkInternals.awaitEvents(sc, 30_000));
  }

  @Test
  void sparkTellsHowManyTasksCanRun() {
    assertEquals(OptionalInt.of(TestImages.EXECUTORS), SparkInternals.taskSlots(sc));
  }

  @Test
  void sparkTellsWhereItsLocalFilesAre() {
    List<Boolean> found = jobs.parallelize(List.of(1), 1)
        .map(task -> Files.isWritable(SparkInternals.localFolder())).collect();
    assertEquals(List.of(true), found);
    assertTrue(SparkInternals.localFolder().toString().contains("spark-local"));
  }

  @Test
  void thePlannerTellsTheSizeOfATable() {
    long bytes = SparkInternals.tableBytes(spark.range(1_000).toDF()).orElseThrow();
    assertEquals(8_000, bytes);
    assertEquals(1_000, SparkInternals.rows(spark.range(1_000).toDF()).count());
  }

  @Test
  void aTaskKnowsItsExecutor() {
    List<String> executors = jobs.parallelize(List.of(1), 1).map(task ->
        SparkInternals.executorId() + " on " + SparkInternals.executorHost() + " of "
            + SparkInternals.executorConf().get("spark.app.id")).collect();
    assertTrue(executors.get(0).matches("\\d+ on 127\\.0\\.0\\.1 of " + sc.applicationId()),
        executors.get(0));
  }

  @Test
  void theStagesOfATaggedJobAreKnown() throws Exception {
    Set<Boolean> tagged = ConcurrentHashMap.newKeySet();
    with(new SparkListener() {
      @Override
      public void onStageSubmitted(SparkListenerStageSubmitted stage) {
        tagged.add(SparkInternals.isTagged(stage, "ours"));
      }
    }, () -> {
      sc.addJobTag("theirs");
      sc.addJobTag("ours");
      try {
        run(task -> {});
      } finally {
        sc.clearJobTags();
      }
      assertTrue(SparkInternals.awaitEvents(sc, 30_000));
      return null;
    });
    assertEquals(Set.of(true), tagged);
  }

  @Test
  void heartbeatsTellOfTheAccumulatorsOfRunningTasks() throws Exception {
    LongAccumulator count = sc.longAccumulator();
    CountDownLatch told = new CountDownLatch(1);
    with(new SparkListener() {
      @Override
      public void onExecutorMetricsUpdate(SparkListenerExecutorMetricsUpdate heartbeat) {
        boolean isOurs = SparkInternals.accumulators(heartbeat).stream()
            .anyMatch(info -> info.id() == count.id() && info.update().isDefined());
        if (isOurs) told.countDown();
      }
    }, () -> {
      Future<Void> job = jobs.parallelize(List.of(1), 1).foreachAsync(task -> {
        count.add(1);
        while (!TaskContext.get().isInterrupted()) Thread.sleep(10);
      });
      try {
        assertTrue(told.await(60, TimeUnit.SECONDS));
      } finally {
        job.cancel(true);
      }
      return null;
    });
  }

  /** Its own words, which stand in the class that says them. */
  @Test
  void sparkSaysWhyAnExecutorCannotStart() throws IOException {
    String backend = "/org/apache/spark/executor/CoarseGrainedExecutorBackend.class";
    try (InputStream in = SparkContext.class.getResourceAsStream(backend)) {
      String constants = new String(in.readAllBytes(), StandardCharsets.ISO_8859_1);
      assertTrue(constants.contains(SparkInternals.CANNOT_START));
    }
    assertEquals(Optional.of("no class"), SparkInternals.failedStart(
        new SparkListenerExecutorRemoved(0, "1", SparkInternals.CANNOT_START + "no class")));
    assertEquals(Optional.empty(),
        SparkInternals.failedStart(new SparkListenerExecutorRemoved(0, "1", "Command exited")));
  }

  private <T> T with(SparkListener listener, Callable<T> work) throws Exception {
    sc.addSparkListener(listener);
    try {
      return work.call();
    } finally {
      sc.removeSparkListener(listener);
    }
  }

  private void run(VoidFunction<Integer> work) {
    jobs.parallelize(List.of(1), 1).foreach(work);
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException.Code;
import cafetiere.spark.BothLines;
import cafetiere.spark.TestImages;
import cafetiere.spark.run.RankWork;
import cafetiere.spark.run.TaskOutcome;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The meeting of a barrier stage's tasks, on each line of Spark. */
@BothLines
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class BarrierGatherTest {
  private final SparkContext sc = TestImages.session().sparkContext();

  @Test
  void eachTaskGetsAllTextsInOrder() {
    assertEquals(
        List.of("0: [text 0, text 1]", "0: [text 0, text 1]"), stage(new Meet()));
  }

  /** A task that waits for another one gives its slot back when it is killed. */
  @Test
  void aTaskThatIsKilledEnds(@TempDir Path dir) throws Exception {
    Path waits = dir.resolve("waits");
    CompletableFuture<Throwable> ended = CompletableFuture.supplyAsync(() -> {
      sc.setJobGroup("killed", "tasks that are killed", false);
      return assertThrows(Exception.class, () -> stage(new WaitInVain(waits.toString())));
    });
    while (!Files.exists(waits)) {
      assertFalse(ended.isDone(), "the stage has ended by itself");
      Thread.sleep(10);
    }
    sc.cancelJobGroup("killed");
    assertTrue(SparkInternals.isCancelled((Exception) ended.get()));
    assertEquals(2, stage(new Meet()).size());
  }

  /** What the tasks of a barrier stage, one an executor, have answered. */
  private List<String> stage(RankWork work) {
    JavaRDD<Iterator<InternalRow>> rows = JavaSparkContext.fromSparkContext(sc)
        .parallelize(List.of(0, 1), TestImages.EXECUTORS).map(rank -> null);
    String[] outcomes =
        (String[]) rows.rdd().barrier().mapPartitions(work, false, RankWork.STRING).collect();
    return Arrays.stream(outcomes).map(text -> TaskOutcome.fromJson(text).message()).toList();
  }

  private static TaskOutcome answer(BarrierTaskContext context, String text) {
    return TaskOutcome.failed(
        context.partitionId(), SparkInternals.executorId(), Code.OK, text);
  }

  private static final class Meet extends RankWork {
    private static final long serialVersionUID = 1L;

    /** How often Spark's own allGather() was called, and the texts. */
    @Override
    public TaskOutcome run(Iterator<InternalRow> train, Iterator<InternalRow> validation)
        throws Exception {
      BarrierTaskContext context = SparkInternals.barrierTask();
      List<String> texts = BarrierGather.texts(context, "text " + context.partitionId());
      Field meetings = Arrays.stream(BarrierTaskContext.class.getDeclaredFields())
          .filter(field -> field.getName().endsWith("barrierEpoch")).findFirst().orElseThrow();
      meetings.setAccessible(true);
      return answer(context, meetings.get(context) + ": " + texts);
    }
  }

  private static final class WaitInVain extends RankWork {
    private static final long serialVersionUID = 1L;

    private final String waits;

    WaitInVain(String waits) {
      this.waits = waits;
    }

    /** The first task waits for the second one, which does not come. */
    @Override
    public TaskOutcome run(Iterator<InternalRow> train, Iterator<InternalRow> validation)
        throws Exception {
      BarrierTaskContext context = SparkInternals.barrierTask();
      if (context.partitionId() == 0) {
        Files.createFile(Path.of(waits));
        return answer(context, BarrierGather.texts(context, "").toString());
      }
      while (!context.isInterrupted()) Thread.sleep(10);
      throw new InterruptedException("killed");
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.TestImages;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import scala.collection.Iterator;
import scala.collection.Iterator$;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/** The meeting of a barrier stage's tasks, on each line of Spark. */
@BothLines
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class BarrierGatherTest {
  private static final ClassTag<String> TEXT = ClassTag$.MODULE$.apply(String.class);

  private final SparkContext sc = TestImages.session().sparkContext();

  @Test
  void eachTaskGetsAllTextsInOrder() {
    List<String> got = List.of(stage(new Meet()));
    assertEquals(List.of("0: [text 0, text 1]", "0: [text 0, text 1]"), got);
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
      assertTrue(!ended.isDone(), "the stage has ended by itself");
      Thread.sleep(10);
    }
    sc.cancelJobGroup("killed");
    assertTrue(SparkInternals.isCancelled((Exception) ended.get()));
    assertEquals(2, stage(new Meet()).length);
  }

  /** Runs a barrier stage of a task an executor. */
  private String[] stage(Work work) {
    JavaRDD<Integer> ranks =
        JavaSparkContext.fromSparkContext(sc).parallelize(List.of(0, 1), TestImages.EXECUTORS);
    return (String[]) ranks.rdd().barrier().mapPartitions(work, false, TEXT).collect();
  }

  private abstract static class Work extends AbstractFunction1<Iterator<Integer>, Iterator<String>>
      implements java.io.Serializable {
    private static final long serialVersionUID = 1L;

    @Override
    public Iterator<String> apply(Iterator<Integer> ranks) {
      try {
        return Iterator$.MODULE$.single(run(SparkInternals.barrierTask()));
      } catch (ReflectiveOperationException | java.io.IOException | InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }

    abstract String run(BarrierTaskContext context)
        throws ReflectiveOperationException, java.io.IOException, InterruptedException;
  }

  private static final class Meet extends Work {
    private static final long serialVersionUID = 1L;

    /** How often Spark's own allGather() was called, and the texts. */
    @Override
    String run(BarrierTaskContext context)
        throws ReflectiveOperationException, InterruptedException {
      List<String> texts = BarrierGather.texts(context, "text " + context.partitionId());
      Field meetings = Arrays.stream(BarrierTaskContext.class.getDeclaredFields())
          .filter(field -> field.getName().endsWith("barrierEpoch")).findFirst().orElseThrow();
      meetings.setAccessible(true);
      return meetings.get(context) + ": " + texts;
    }
  }

  private static final class WaitInVain extends Work {
    private static final long serialVersionUID = 1L;

    private final String waits;

    WaitInVain(String waits) {
      this.waits = waits;
    }

    /** The first task waits for the second one, which does not come. */
    @Override
    String run(BarrierTaskContext context) throws java.io.IOException, InterruptedException {
      if (context.partitionId() == 0) {
        Files.createFile(Path.of(waits));
        return BarrierGather.texts(context, "").toString();
      }
      while (!context.isInterrupted()) Thread.sleep(10);
      throw new InterruptedException("killed");
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import cafetiere.core.CafetiereException;
import cafetiere.spark.TestNets;
import cafetiere.spark.TestWeights;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.predict.PredictorPool.Key;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

/** Which predictors an executor keeps between the partitions of its tasks. */
class PredictorPoolTest {
  private static final Duration KEPT = Duration.ofHours(1);
  private static final byte[] WEIGHTS = TestWeights.initial(TestNets.CLASSIFIER);
  private static final Key SMALL = key(1);
  private static final Key LARGE = key(8);

  private final AtomicLong now = new AtomicLong(42);
  private final PredictorPool pool = new PredictorPool(KEPT, now::get);
  private int sent;

  @Test
  void oneServesPartitionAfterPartition() {
    BatchPredictor first = take(SMALL);
    for (int partition = 0; partition < 3; partition++) {
      pool.give(SMALL, first);
      assertSame(first, take(SMALL));
    }
  }

  @Test
  void tasksAtTheSameTimeHaveOneEachAndTheWeightsOnce() {
    BatchPredictor first = take(SMALL);
    assertNotSame(first, take(SMALL));
    assertEquals(1, sent);
    assertEquals(2, pool.size());
  }

  @Test
  void anotherPlanHasAnother() {
    pool.give(SMALL, take(SMALL));
    assertNotSame(take(SMALL), take(LARGE));
    assertEquals(2, sent);
  }

  @Test
  void thereAreNoMoreThanTasksHadAtOneTime() {
    BatchPredictor first = take(SMALL);
    BatchPredictor second = take(SMALL);
    pool.give(SMALL, first);
    pool.give(SMALL, second);
    for (int batch = 2; batch < 20; batch++) {
      Key key = key(batch);
      pool.give(key, take(key));
      assertEquals(2, pool.size());
    }
    assertThrows(IllegalStateException.class, first::reset);
    assertThrows(IllegalStateException.class, second::reset);
  }

  @Test
  void oneThatIsNotTakenIsClosed() {
    BatchPredictor early = take(SMALL);
    BatchPredictor late = take(LARGE);
    pool.give(SMALL, early);
    now.addAndGet(KEPT.toNanos() / 2);
    pool.give(LARGE, late);
    now.addAndGet(KEPT.toNanos() / 2);
    pool.closeUnused();
    assertThrows(IllegalStateException.class, early::reset);
    assertSame(late, take(LARGE));
    now.addAndGet(KEPT.toNanos());
    pool.closeUnused();
    late.reset();
    pool.give(LARGE, late);
    now.addAndGet(KEPT.toNanos());
    pool.closeUnused();
    assertEquals(0, pool.size());
  }

  @Test
  void oneThatCannotBeMadeTakesNoPlace() {
    Key wrong = new Key(plan("no blob of the net", 1), 1);
    assertThrows(CafetiereException.class, () -> take(wrong));
    assertEquals(0, pool.size());
    take(SMALL);
    assertEquals(1, pool.size());
  }

  private BatchPredictor take(Key key) {
    return pool.take(key, () -> {
      sent++;
      return key.plan().open(WEIGHTS);
    });
  }

  private static Key key(int batch) {
    return new Key(plan("score", batch), 1);
  }

  private static PredictionPlan plan(String output, int batch) {
    StructType table = new StructType()
        .add("features", DataTypes.createArrayType(DataTypes.FloatType, false));
    FeedSchema schema =
        FeedSchema.of(table, List.of(new FeedSchema.Input("data", "features")), "");
    return new PredictionPlan(
        TestNets.CLASSIFIER, "none", schema, List.of(output), batch, 1, "float32", "");
  }
}

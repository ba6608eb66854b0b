// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.explain;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.TestImages;
import cafetiere.spark.explain.Explanation.Scaling;
import cafetiere.spark.ml.CaffeClassifier;
import cafetiere.spark.util.Json;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is told of a training before it is done. */
@BothLines
@Timeout(value = 240, unit = TimeUnit.SECONDS)
class ExplainTest {
  private static final int ROWS = 1_007;
  private static final long PARAMETERS = 431_080;  // of LeNet

  @Test
  void aNetIsExplainedByTrainingAMoment() {
    Dataset<Row> table = TestImages.images(TestImages.session(), ROWS);
    Explanation told = lenet().setMaxIter(4).explain(table);
    long batch = told.blobs().get(0).shape().get(0);
    assertTrue(told.isProbed());
    assertEquals(PARAMETERS, told.parameters());
    assertEquals(ROWS, told.rows());
    assertEquals(List.of(2, 4, 1), List.of(told.workers(), told.shards(), told.threads()));
    assertEquals(4 * batch, told.stepRows());
    assertEquals((ROWS / 4 + batch) / batch, told.stepsPerEpoch());
    // The two convolutions and the two inner products, forward alone.
    double forward = 2 * (24. * 24 * 20 * 25 + 8. * 8 * 50 * 500 + 800 * 500 + 500 * 10);
    assertTrue(told.stepFlops() >= 2.5 * forward * told.stepRows()
        && told.stepFlops() <= 3.2 * forward * told.stepRows(), told.text());
    assertEquals(PARAMETERS * Float.BYTES, told.exchangedBytes());
    assertTrue(told.netBytes() > 3 * PARAMETERS * Float.BYTES, told.text());
    // An image and a label and the lengths of both.
    assertEquals((784 + 4 + 8) * (double) ROWS / 2, told.rowBytes(), 0.1 * told.rowBytes());
    assertTrue(told.time().computing() > 0 && told.time().total() < 60, told.text());
    assertEquals(told.stepsPerEpoch() * told.time().total(), told.epochSeconds(), 1e-9);
    Map<Integer, Double> epochs = told.scaling().stream()
        .collect(Collectors.toMap(Scaling::workers, Scaling::epochSeconds));
    assertEquals(List.of(1, 2, 4), told.scaling().stream().map(Scaling::workers).toList());
    assertEquals(told.epochSeconds(), epochs.get(2), 1e-9);
    assertTrue(epochs.containsKey(told.bestWorkers()) && told.text().contains("<- best"));
    assertEquals(told.epochSeconds(),
        Json.parse(told.toJson()).path("epoch_seconds").asDouble(), 1e-9);
  }

  @Test
  void theLimitsOfTheMachineNeedNoTraining() {
    Dataset<Row> table = TestImages.images(TestImages.session(), ROWS);
    Explanation told = lenet().explain(table, false);
    assertFalse(told.isProbed());
    assertTrue(told.time().computing() > 0, told.text());
    assertTrue(told.text().contains("a step should take"), told.text());
  }

  @Test
  void aTableIsExplained() {
    Dataset<Row> table = TestImages.session().range(600)
        .selectExpr("id % 7 AS a", "CAST(id % 5 AS string) AS b", "id % 2 AS label");
    Explanation told = new CaffeClassifier().setFeaturesCols(new String[] {"a", "b"})
        .setNumWorkers(2).setBatchSize(32).explain(table);
    assertEquals(32, told.stepRows());
    assertEquals(19, told.stepsPerEpoch());
    assertTrue(told.time().computing() > 0, told.text());
  }

  private static CaffeEstimator lenet() {
    return new CaffeEstimator()
        .setSolver(TestImages.solver(10)).setNet(TestImages.lenet())
        .setFeaturesCol("image").setLabelCol("label").setNumWorkers(2).setShards(4);
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.SyncSettings;
import cafetiere.spark.util.ParamChecks;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.spark.ml.param.IntParam;
import org.apache.spark.ml.param.LongParam;
import org.apache.spark.ml.param.Param;
import org.junit.jupiter.api.Test;

/** A value that a param cannot have is refused when it is set. */
@BothLines
class ParamsTest {
  /** The smallest number that is taken. */
  private static final Map<String, Long> LEAST = Map.of("numWorkers", 0L, "shards", 0L,
      "maxIter", 0L, "epochs", 0L, "checkpointInterval", 0L, "peerTimeout", 1L, "seed", 0L,
      "batchSize", 0L, "threadsPerWorker", 0L, "syncPeriod", 0L);

  private static final Map<String, List<String>> WORDS = Map.of(
      "syncMode", ParamChecks.SYNC_MODES, "syncHistory", ParamChecks.SYNC_HISTORIES,
      "engine", ParamChecks.ENGINES, "encrypt", ParamChecks.ENCRYPTIONS,
      "connection", ParamChecks.CONNECTIONS);

  /** Any text is taken at first; what it means is told by fit. */
  private static final List<String> FREE = List.of("solver", "net", "weights", "snapshot",
      "featuresCol", "labelCol", "idCol", "outputCols", "predictionCol", "resize", "syncOptions",
      "syncParamFile", "survivors", "requireGpu", "checkpointDir", "resume",
      "validationIndicatorCol", "events");

  private final CaffeEstimator estimator = new CaffeEstimator();

  @Test
  void everyParamIsInOneOfTheLists() {
    TreeSet<String> listed = new TreeSet<>(FREE);
    listed.addAll(LEAST.keySet());
    listed.addAll(WORDS.keySet());
    TreeSet<String> there = new TreeSet<>();
    TreeMap<String, Param<?>> numbers = new TreeMap<>();
    for (Param<?> param : estimator.params()) {
      there.add(param.name());
      if (param instanceof IntParam || param instanceof LongParam) {
        numbers.put(param.name(), param);
      }
    }
    assertEquals(there, listed);
    assertEquals(numbers.keySet(), new TreeSet<>(LEAST.keySet()));
  }

  @Test
  void numbersBelowTheLeastAreRefused() {
    LEAST.forEach((name, least) -> {
      assertDoesNotThrow(() -> set(name, least), name);
      for (long value : new long[] {least - 1, -3}) {
        assertEquals(name + " is " + value + ": set it to " + least + " or more",
            assertThrows(IllegalArgumentException.class, () -> set(name, value)).getMessage());
      }
    });
  }

  @Test
  void otherWordsAreRefused() {
    WORDS.forEach((name, words) -> {
      words.forEach(word -> assertDoesNotThrow(() -> set(name, word), name + " " + word));
      String message = assertThrows(
          IllegalArgumentException.class, () -> set(name, "averge")).getMessage();
      assertTrue(message.startsWith(name + " is \"averge\""), message);
      assertTrue(message.endsWith(": set it to one of \"" + String.join("\", \"", words) + "\""),
          message);
    });
  }

  @Test
  void theEngineTakesTheWordsThatAreAllowed() {
    for (String word : ParamChecks.SYNC_MODES) described(new CaffeEstimator().setSyncMode(word));
    for (String word : ParamChecks.SYNC_HISTORIES) {
      described(new CaffeEstimator().setSyncMode("average").setSyncHistory(word));
    }
  }

  private static void described(CaffeEstimator estimator) {
    NetDescription.ofTraining(TestNets.SOLVER, TestNets.CLASSIFIER,
        SyncSettings.of(estimator, new org.apache.hadoop.conf.Configuration()));
  }

  private void set(String name, Object value) {
    Param<Object> param = estimator.getParam(name);
    boolean isInt = param instanceof IntParam;
    estimator.set(param, isInt ? (Object) ((Long) value).intValue() : value);
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.PreflightException;
import cafetiere.spark.TestImages;
import cafetiere.spark.TestNets;
import cafetiere.spark.cluster.ClusterSlots;
import java.util.OptionalInt;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a training without numWorkers takes from the cluster's settings. */
@Timeout(value = 240, unit = TimeUnit.SECONDS)
class ParallelismTest {
  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
      "local|1|",
      "local[6]|6|",
      "local[6,3]|3|spark.task.cpus=2",
      "local-cluster[2,4,1024]|8|",
      "local-cluster[2,4,1024]|3|spark.executor.cores=3 spark.task.cpus=1 spark.cores.max=4",
      "local-cluster[2,5,1024]|4|spark.executor.cores=5 spark.task.cpus=2",
      "spark://host:7077|-1|spark.executor.cores=4",
      "spark://host:7077|10|spark.cores.max=21 spark.task.cpus=2",
      "spark://host:7077|8|spark.cores.max=11 spark.executor.cores=4",
      "yarn|2|",
      "yarn|12|spark.executor.instances=3 spark.executor.cores=4",
      "k8s://https://host|3|spark.executor.instances=3 spark.executor.cores=5 spark.task.cpus=3",
      "yarn|16|spark.dynamicAllocation.enabled=true spark.dynamicAllocation.maxExecutors=4"
          + " spark.executor.cores=4",
      "yarn|5|spark.dynamicAllocation.enabled=true spark.dynamicAllocation.initialExecutors=5",
      "other|-1|spark.executor.instances=3"})
  void slotsOfTheSettings(String master, int slots, String settings) {
    SparkConf conf = new SparkConf(false);
    for (String setting : settings == null ? new String[0] : settings.split(" ")) {
      conf.set(setting.split("=")[0], setting.split("=")[1]);
    }
    assertEquals(slots < 0 ? OptionalInt.empty() : OptionalInt.of(slots),
        ClusterSlots.configured(master, conf));
  }

  @Test
  void whereNothingTellsTheNumberItIsAskedFor() {
    PreflightException e = assertThrows(PreflightException.class,
        () -> Parallelism.of("spark://host:7077", new SparkConf(false), 0, 0, () -> 3));
    assertEquals("numWorkers is not set, and the settings of spark://host:7077 do not tell how many"
        + " tasks will run at once: set numWorkers (the executors that are there now run 3), or add"
        + " --conf spark.cores.max=N", e.findings().get(0));
  }

  /** The weights depend on shards alone, so a training starts with the workers that there are. */
  @Test
  void shardsAreThoseOfTheSettingsAndWorkersThoseThatCame() {
    SparkConf conf = new SparkConf(false).set("spark.executor.instances", "4");
    assertEquals(new Parallelism(3, 4), Parallelism.of("yarn", conf, 0, 0, () -> 3));
    assertEquals(new Parallelism(4, 4), Parallelism.of("yarn", conf, 0, 0, () -> 5));
    assertEquals(new Parallelism(4, 4), Parallelism.of("yarn", conf, 0, 0, () -> 0));
    assertEquals(new Parallelism(2, 2), Parallelism.of("yarn", conf, 0, 2, () -> 4));
    assertEquals(new Parallelism(6, 6), Parallelism.of("yarn", conf, 6, 0, () -> 1));
    assertEquals(new Parallelism(6, 9), Parallelism.of("yarn", conf, 6, 9, () -> 1));
  }

  @BothLines
  @Test
  void executorsThatRegisterLateDoNotShowInTheWeights() throws Exception {
    SparkSession spark = TestImages.session();
    Dataset<Row> points = TestNets.points(spark, 203).cache();
    byte[] early = fit(points);
    long victim = TestImages.executorPids(spark).get(0);
    assertTrue(ProcessHandle.of(victim).orElseThrow().destroyForcibly());
    while (ClusterSlots.available(spark.sparkContext()) > 1) Thread.sleep(10);
    assertArrayEquals(early, fit(points));
  }

  private static byte[] fit(Dataset<Row> points) {
    return new CaffeEstimator().setSolver(TestNets.SOLVER).setNet(TestNets.CLASSIFIER)
        .setIdCol("id").fit(points).weights();
  }
}

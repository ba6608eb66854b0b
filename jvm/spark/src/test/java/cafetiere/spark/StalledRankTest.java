// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.util.Json;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * While a rank stores a checkpoint for longer than it may, it and those that wait for it are told of, survivors
 * too; with engine {@code rounds}, a shard whose task does not end.
 */
@Timeout(value = 180, unit = TimeUnit.SECONDS)
class StalledRankTest {
  /** Steps of LeNet that take several times as long as a shard may. */
  private static final int PASSES = 1_000;  // of an iteration, so that it takes seconds

  @TempDir Path dir;

  @Test
  void whereAllRanksStandIsAmongTheEvents() {
    List<String> reports = whileACheckpointIsStored(new CaffeEstimator());
    String second = about(reports, "rank 1 on executor ");
    assertTrue(second.contains("after step 40, storing a checkpoint"), second);
    assertTrue(second.contains("libcafetiere"), "where it waits for rank 0: " + second);
  }

  @LongRun
  @Test
  void whereASurvivorStandsIsAmongTheEvents() {
    whileACheckpointIsStored(
        new CaffeEstimator().setSyncMode("average").setSyncPeriod(10).setSurvivors(true));
  }

  /** What is told while rank 0 stores a checkpoint for longer than it may. */
  private List<String> whileACheckpointIsStored(CaffeEstimator estimator) {
    SparkSession spark = TestImages.session();
    spark.conf().set("spark.cafetiere.stallTime", "1s");
    try {
      CaffeModel model = estimator.setSolver(TestNets.SOLVER).setNet(TestNets.CLASSIFIER)
          .setIdCol("id").setNumWorkers(2).setCheckpointInterval(40)
          .setCheckpointDir(SlowFiles.path(spark.sparkContext(), dir))
          .fit(TestNets.points(spark, 103));
      List<String> reports = warnings(model);
      String first = about(reports, "rank 0 on executor ");
      assertTrue(first.contains("storing a checkpoint"), first);
      assertTrue(first.contains("SlowFiles.rename"), first);
      return reports;
    } finally {
      spark.conf().unset("spark.cafetiere.stallTime");
    }
  }

  @LongRun
  @Test
  void aShardWhoseStepDoesNotEndIsAmongTheEvents() {
    SparkSession spark = TestImages.session();
    spark.conf().set("spark.cafetiere.stallTime", "1s");
    try {
      CaffeModel model = new CaffeEstimator().setEngine("rounds").setSyncMode("average")
          .setSyncPeriod(2).setSolver(TestImages.solver(2) + " iter_size: " + PASSES)
          .setNet(TestImages.lenet()).setFeaturesCol("image").setLabelCol("label").setNumWorkers(2)
          .fit(TestImages.images(spark, 1_007));
      List<String> reports = warnings(model);
      for (int shard : List.of(0, 1)) {
        String who = "shard " + shard + " on executor ";
        String first = about(reports, who);
        String doing = ", training a round of 2 steps";
        assertTrue(first.contains("after step 0" + doing), first);
        assertTrue(first.contains("RoundsTask.train"), first);
        assertTrue(first.contains("libcafetiere"), "where the round is: " + first);
        assertTrue(reports.stream().anyMatch(text -> text.startsWith(who)
            && text.contains("after step 1" + doing)), reports.toString());
      }
    } finally {
      spark.conf().unset("spark.cafetiere.stallTime");
    }
  }

  private static List<String> warnings(CaffeModel model) {
    return model.events().lines().map(Json::parse)
        .filter(event -> event.path("level").asText().equals("warning"))
        .map(event -> event.path("text").asText()).toList();
  }

  private static String about(List<String> reports, String who) {
    return reports.stream().filter(text -> text.startsWith(who)).findFirst()
        .orElseThrow(() -> new AssertionError("no word about " + who + " in " + reports));
  }
}

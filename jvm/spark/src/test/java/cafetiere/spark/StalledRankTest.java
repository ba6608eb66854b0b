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

/** While a rank stores a checkpoint for longer than it may, it and those that wait for it are told of. */
@Timeout(value = 180, unit = TimeUnit.SECONDS)
class StalledRankTest {
  @TempDir Path dir;

  @Test
  void whereAllRanksStandIsAmongTheEvents() {
    SparkSession spark = TestImages.session();
    spark.conf().set("spark.cafetiere.stallTime", "1s");
    try {
      CaffeModel model = new CaffeEstimator().setSolver(TestNets.SOLVER)
          .setNet(TestNets.CLASSIFIER).setIdCol("id").setNumWorkers(2).setCheckpointInterval(40)
          .setCheckpointDir(SlowFiles.path(spark.sparkContext(), dir))
          .fit(TestNets.points(spark, 103));
      List<String> reports = model.events().lines().map(Json::parse)
          .filter(event -> event.path("level").asText().equals("warning"))
          .map(event -> event.path("text").asText()).toList();
      String first = about(reports, "rank 0 on executor ");
      assertTrue(first.contains("storing a checkpoint"), first);
      assertTrue(first.contains("SlowFiles.rename"), first);
      String second = about(reports, "rank 1 on executor ");
      assertTrue(second.contains("after step 40, storing a checkpoint"), second);
      assertTrue(second.contains("libcafetiere"), "where it waits for rank 0: " + second);
    } finally {
      spark.conf().unset("spark.cafetiere.stallTime");
    }
  }

  private static String about(List<String> reports, String who) {
    return reports.stream().filter(text -> text.startsWith(who)).findFirst()
        .orElseThrow(() -> new AssertionError("no word about " + who + " in " + reports));
  }
}

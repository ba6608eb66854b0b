// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.cluster.PortRange;
import cafetiere.spark.util.Json;
import java.io.IOException;
import java.net.BindException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Ranks listen where spark.cafetiere.rankPorts says, and nowhere else. */
@LongRun
@Timeout(value = 240, unit = TimeUnit.SECONDS)
class RankPortsTest {
  private static final int ROWS = 503;
  private static final int STEPS = 5;

  @TempDir Path dir;

  @Test
  void bothEnginesWithAGroupListenThere() throws Exception {
    Path log = dir.resolve("log");
    Process driver = DriverProcess.start(Driver.class, log, dir.toString());
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(log));
    List<String> answer = Files.readAllLines(dir.resolve("answer"));
    assertEquals(4, answer.size(), answer::toString);
    for (String taken : answer.subList(0, 2)) assertTrue(taken.contains("no port of "), taken);
    assertEquals(List.of("" + STEPS, "" + STEPS), answer.subList(2, 4));
  }

  /** Trains by each engine while the ports are taken, then while they are free. */
  static final class Driver {
    private Driver() {}

    public static void main(String[] args) throws Exception {
      List<ServerSocket> others = neighbours();
      int first = others.get(0).getLocalPort();
      try (SparkSession spark = SparkSession.builder().appName("ports")
          .master("local-cluster[2,1,512]").config("spark.executor.memory", "512m")
          .config(PortRange.RANKS, first + "-" + (first + 1)).getOrCreate()) {
        String taken = steps(spark, false) + "\n" + steps(spark, true) + "\n";
        for (ServerSocket other : others) other.close();
        Files.writeString(Path.of(args[0], "answer"),
            taken + steps(spark, false) + "\n" + steps(spark, true) + "\n");
      }
    }

    /** Servers on two consecutive ports. */
    private static List<ServerSocket> neighbours() throws IOException {
      while (true) {
        ServerSocket first = new ServerSocket(0);
        try {
          return List.of(first, new ServerSocket(first.getLocalPort() + 1));
        } catch (BindException | IllegalArgumentException e) {
          first.close();
        }
      }
    }

    /** The steps that were made, or why there were none. */
    private static String steps(SparkSession spark, boolean survivors) {
      try {
        CaffeModel model = new CaffeEstimator()
            .setSolver(TestImages.solver(STEPS)).setNet(TestImages.lenet())
            .setFeaturesCol("image").setLabelCol("label").setNumWorkers(TestImages.EXECUTORS)
            .setSyncMode("average").setSurvivors(survivors)
            .fit(TestImages.images(spark, ROWS));
        return Json.parse(model.result()).path("steps").asText();
      } catch (RuntimeException e) {
        return e.getMessage().replace('\n', ' ');
      }
    }
  }
}

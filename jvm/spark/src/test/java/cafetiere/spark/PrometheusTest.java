// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A scrape of the driver's UI, which is told of Spark's Prometheus sink and of nothing of ours. */
@BothLines
@Timeout(value = 240, unit = TimeUnit.SECONDS)
class PrometheusTest {
  private static final int STEPS = 10;
  private static final Pattern OURS =
      Pattern.compile("metrics_\\S+_driver_cafetiere_(\\w+?)_(?:Value|Number)\\{[^}]*} (\\S+)");

  @TempDir Path dir;

  @Test
  void aScrapeShowsTheRun() throws Exception {
    Path log = dir.resolve("log");
    Process driver = DriverProcess.start(Driver.class, log, dir.toString());
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(log));
    String page = Files.readString(dir.resolve("page"));
    Map<String, Double> shown = new TreeMap<>();
    Matcher line = OURS.matcher(page);
    while (line.find()) shown.put(line.group(1), Double.valueOf(line.group(2)));
    String[] fitted = Files.readString(dir.resolve("fitted")).split(" ");
    assertEquals(STEPS, shown.get("step"), page);
    assertEquals(STEPS, shown.get("maxIter"));
    assertEquals(2, shown.get("fits"));
    assertEquals(Double.parseDouble(fitted[0]), shown.get("loss"));
    assertEquals(Double.parseDouble(fitted[1]), shown.get("rowsUsed"));
    assertEquals(Double.parseDouble(fitted[2]), shown.get("coreHours_computing"), 1e-9);
    assertTrue(shown.get("rowsPerSecond") > 0 && shown.get("waitData") >= 0
        && shown.get("waitNetwork") >= 0, shown.toString());
  }

  /** Trains twice and reads the page. */
  static final class Driver {
    private Driver() {}

    public static void main(String[] args) throws Exception {
      try (SparkSession spark = SparkSession.builder().appName("scraped").master("local[2]")
          .config("spark.ui.enabled", "true").config("spark.ui.port", "0")
          .config("spark.metrics.conf.driver.sink.prometheusServlet.class",
              "org.apache.spark.metrics.sink.PrometheusServlet")
          .config("spark.metrics.conf.driver.sink.prometheusServlet.path", "/metrics/prometheus")
          .getOrCreate()) {
        TrainingSummary first = fit(spark);
        TrainingSummary second = fit(spark);
        double computing = first.account().coreHours().computing()
            + second.account().coreHours().computing();
        Files.writeString(Path.of(args[0], "fitted"), second.loss() + " "
            + (first.rowsUsed() + second.rowsUsed()) + " " + computing);
        URI page = URI.create(spark.sparkContext().uiWebUrl().get() + "/metrics/prometheus/");
        Files.writeString(Path.of(args[0], "page"), HttpClient.newHttpClient()
            .send(HttpRequest.newBuilder(page).build(), BodyHandlers.ofString()).body());
      }
    }

    private static TrainingSummary fit(SparkSession spark) {
      return new CaffeEstimator()
          .setSolver(TestImages.solver(STEPS)).setNet(TestImages.lenet())
          .setFeaturesCol("image").setLabelCol("label").setNumWorkers(2)
          .fit(TestImages.images(spark, 257)).summary();
    }
  }
}

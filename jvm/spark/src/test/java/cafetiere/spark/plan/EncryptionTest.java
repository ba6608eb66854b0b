// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.DriverProcess;
import cafetiere.spark.TestImages;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** When the ranks' connections are encrypted, and that no bit of the weights shows it. */
@Timeout(value = 480, unit = TimeUnit.SECONDS)
class EncryptionTest {
  private static final int ROWS = 503;
  private static final int STEPS = 20;

  @TempDir Path dir;

  @BothLines
  @Test
  void autoDoesAsSparkDoes() {
    assertFalse(Encryption.of("auto", new SparkConf(false)));
    for (String key : List.of(
        "spark.network.crypto.enabled", "spark.ssl.rpc.enabled", "spark.ssl.enabled")) {
      assertTrue(Encryption.of("auto", new SparkConf(false).set(key, "true")), key);
      assertFalse(Encryption.of("off", new SparkConf(false).set(key, "true")), key);
      assertFalse(Encryption.of("auto", new SparkConf(false).set(key, "false")), key);
    }
    assertTrue(Encryption.of("on", new SparkConf(false)));
  }

  @Test
  void aSecretThatSparkSendsInTheClearIsWarnedOf() {
    SparkConf yarn = new SparkConf(false).set("spark.master", "yarn");
    String warning = Encryption.warning("on", yarn).orElseThrow();
    assertTrue(warning.contains("--conf spark.network.crypto.enabled=true"), warning);
    assertTrue(Encryption.warning("auto", yarn).isEmpty());
    assertTrue(
        Encryption.warning("on", yarn.set("spark.network.crypto.enabled", "true")).isEmpty());
    assertTrue(
        Encryption.warning("on", new SparkConf(false).set("spark.master", "local[2]")).isEmpty());
  }

  @Test
  void executorsOfAnEncryptedClusterTrainTheSameWeights() throws Exception {
    Path log = dir.resolve("log");
    Process driver = DriverProcess.start(Driver.class, log, dir.toString());
    JsonNode plain = fit(TestImages.session());
    assertFalse(plain.path("encrypted").asBoolean(true));
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(log));
    JsonNode encrypted = Json.parse(DriverProcess.read(dir.resolve("answer")));
    assertTrue(encrypted.path("encrypted").asBoolean(), encrypted::toString);
    assertEquals(2, encrypted.path("executors").asInt());
    assertEquals(plain.path("sha256"), encrypted.path("sha256"));
  }

  private static JsonNode fit(SparkSession spark) {
    CaffeModel model = new CaffeEstimator()
        .setSolver(TestImages.solver(STEPS)).setNet(TestImages.lenet())
        .setFeaturesCol("image").setLabelCol("label").setNumWorkers(TestImages.EXECUTORS)
        .fit(TestImages.images(spark, ROWS));
    return Json.parse(model.result());
  }

  /** Trains where Spark encrypts what travels between its processes. */
  static final class Driver {
    private Driver() {}

    public static void main(String[] args) throws Exception {
      try (SparkSession spark = SparkSession.builder().appName("encryption")
          .master("local-cluster[2,1,512]").config("spark.executor.memory", "512m")
          .config("spark.authenticate", true).config("spark.authenticate.secret", "of the test")
          .config("spark.network.crypto.enabled", true).getOrCreate()) {
        Files.writeString(Path.of(args[0], "answer"), fit(spark).toString());
      }
    }
  }
}

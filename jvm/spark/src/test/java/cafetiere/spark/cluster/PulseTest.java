// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.Processes;
import cafetiere.spark.TestImages;
import cafetiere.spark.line.LineChannel;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Who is told to be silent, and who is not. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
class PulseTest {
  private static final int PATIENCE_MILLIS = 3_000;

  @Test
  void theSilentOneIsToldAndNeitherTheOneThatBeatsNorTheOneThatLeft() throws Exception {
    BlockingQueue<String> silent = new LinkedBlockingQueue<>();
    SparkConf conf = new SparkConf(false).set("spark.driver.host", "127.0.0.1");
    try (PulseServer server = new PulseServer(conf, "test", PATIENCE_MILLIS, silent::add);
        PulseSender beats = new PulseSender(server.address(), "beats");
        LineChannel hangs = server.address().connect();
        LineChannel leaves = server.address().connect()) {
      leaves.write("leaves");
      leaves.close();
      hangs.write("hangs");
      assertEquals("hangs", silent.take());
      hangs.write("");
      assertNull(silent.poll(PATIENCE_MILLIS + 500, TimeUnit.MILLISECONDS), "told twice");
      beats.close();
    }
  }

  /** One that Spark still hears is listened to again, as it may yet fall silent for good. */
  @Test
  void whoIsJudgedToLiveIsAskedForAgain() throws Exception {
    BlockingQueue<String> doubted = new LinkedBlockingQueue<>();
    SparkConf conf = new SparkConf(false).set("spark.driver.host", "127.0.0.1");
    Predicate<String> lives = executor -> !doubted.add(executor);
    try (PulseServer server = new PulseServer(conf, "test", 300, lives);
        LineChannel hangs = server.address().connect()) {
      hangs.write("hangs");
      assertEquals("hangs", doubted.take());
      assertEquals("hangs", doubted.take());
    }
  }

  /** An executor whose connection is silent and whose heartbeats go on is not killed. */
  @BothLines
  @Test
  void onlyWhomSparkDoesNotHearEitherIsReplaced() {
    SparkSession spark = TestImages.session();
    SparkContext sc = spark.sparkContext();
    Map.Entry<String, Long> executor =
        TestImages.executors(spark).entrySet().iterator().next();
    try (ExecutorPulse pulse = new ExecutorPulse(sc, "")) {
      assertFalse(pulse.replaceIfSilent(executor.getKey()));
      assertTrue(ProcessHandle.of(executor.getValue()).orElseThrow().isAlive());
      Processes.signal("STOP", executor.getValue());
      assertTrue(pulse.replaceIfSilent(executor.getKey()));
    } finally {
      ProcessHandle.of(executor.getValue()).ifPresent(ProcessHandle::destroyForcibly);
    }
  }
}

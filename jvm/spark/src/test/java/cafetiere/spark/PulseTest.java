// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
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
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.stall;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A rank that stands still is told of; one that goes on is not. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
class StallWatchTest {
  private static final long LIMIT = TimeUnit.MILLISECONDS.toNanos(200);

  private final BlockingQueue<String> told = new LinkedBlockingQueue<>();

  @Test
  void itsPlaceAndStacksAreTold() throws InterruptedException, IOException {
    JsonNode place = ((ObjectNode) place(57, "network")).put("thread", thread());
    try (StallWatch watch = new StallWatch("rank 1", LIMIT, () -> place, told::add)) {
      String text = told.take();
      assertTrue(text.startsWith("rank 1 stands still for"), text);
      assertTrue(text.contains("after step 57, waiting for other ranks"), text);
      assertTrue(text.contains("StallWatchTest.itsPlaceAndStacksAreTold"), text);
      assertTrue(text.contains("libc.so.6+0x"), text);
    }
  }

  @Test
  void itIsToldAgainWhenTheTimeHasDoubled() throws InterruptedException {
    try (StallWatch watch = new StallWatch("rank 0", LIMIT, () -> place(1, "data"), told::add)) {
      told.take();
      long first = System.nanoTime();
      told.take();
      assertTrue(System.nanoTime() - first >= LIMIT / 2);
    }
  }

  @Test
  void oneThatGoesOnIsNot() throws InterruptedException {
    AtomicLong step = new AtomicLong();
    try (StallWatch watch = new StallWatch("rank 0", LIMIT,
        () -> place(step.incrementAndGet(), "computing"), told::add)) {
      assertNull(told.poll(5 * LIMIT, TimeUnit.NANOSECONDS));
    }
    assertTrue(step.get() > 1, "it was not looked at");
  }

  @Test
  void withoutALimitNobodyIsWatched() throws InterruptedException {
    AtomicLong looks = new AtomicLong();
    try (StallWatch watch = new StallWatch("rank 0", 0,
        () -> place(looks.incrementAndGet(), "data"), told::add)) {
      assertNull(told.poll(LIMIT, TimeUnit.NANOSECONDS));
    }
    assertEquals(0, looks.get());
  }

  private static JsonNode place(long step, String doing) {
    return Json.object().put("step", step).put("doing", doing).put("thread", 0);
  }

  /** The kernel's id of the calling thread. */
  private static int thread() throws IOException {
    Path own = Files.readSymbolicLink(Path.of("/proc/thread-self"));
    return Integer.parseInt(own.getFileName().toString());
  }
}

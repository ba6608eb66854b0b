// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.events.MetricsRoute.Address;
import cafetiere.spark.line.LineChannel;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class MetricsTest {
  private static final String SECRET = "a secret of thirty-two characters";
  private final ByteArrayOutputStream printed = new ByteArrayOutputStream();

  @Test
  void eventsArriveByTheSocketInOrder() throws Exception {
    BlockingQueue<RunEvent> arrived = new LinkedBlockingQueue<>();
    try (MetricsServer server = new MetricsServer(socket(), "r", SECRET, arrived::add);
        MetricsRoute route = new MetricsRoute(address(server.port(), SECRET), 3)) {
      assertEquals("a socket to the driver", route.name());
      route.send("{\"event\":\"log\",\"text\":\"größe\"}");
      route.send(progress(2));
      assertEquals(new RunEvent("r", 3, 1, "{\"event\":\"log\",\"text\":\"größe\"}"),
          arrived.poll(5, TimeUnit.SECONDS));
      assertEquals(new RunEvent("r", 3, 2, progress(2)), arrived.poll(5, TimeUnit.SECONDS));
    }
  }

  /** The times of some thousand ranks are more than a line may have. */
  @Test
  void anEventTooLongForALineComesWithoutItsRanks() throws Exception {
    BlockingQueue<RunEvent> arrived = new LinkedBlockingQueue<>();
    try (MetricsServer server = new MetricsServer(socket(), "r", SECRET, arrived::add);
        MetricsRoute route = new MetricsRoute(address(server.port(), SECRET), 0)) {
      String times = "0.25, ".repeat(LineChannel.MAX_LINE / 6) + "0.25";
      String ranks = "{\"step_ms\": [" + times + "], \"wait_data\": [" + times + "]}";
      route.send("{\"event\":\"progress\",\"step\":2,\"loss\":0.5,\"ranks\":" + ranks + "}");
      route.send(progress(3));
      assertEquals(new RunEvent("r", 0, 1, "{\"event\":\"progress\",\"step\":2,\"loss\":0.5}"),
          arrived.poll(5, TimeUnit.SECONDS));
      assertEquals(progress(3), arrived.poll(5, TimeUnit.SECONDS).json());
    }
  }

  @Test
  void whoDoesNotKnowTheSecretIsRefusedAndTheNextIsServed() throws Exception {
    BlockingQueue<RunEvent> arrived = new LinkedBlockingQueue<>();
    InetAddress loopback = InetAddress.getLoopbackAddress();
    try (MetricsServer server = new MetricsServer(socket(), "r", SECRET, arrived::add)) {
      try (LineChannel intruder =
          LineChannel.connect(loopback.getHostAddress(), server.port(), "another secret")) {
        assertNull(intruder.read());
        assertThrows(IOException.class, () -> {
          while (true) intruder.write("0 1 " + progress(1));
        });
      }
      try (MetricsRoute route = new MetricsRoute(address(server.port(), SECRET), 0)) {
        route.send(progress(7));
        assertEquals(progress(7), arrived.poll(5, TimeUnit.SECONDS).json());
      }
    }
  }

  @Test
  void withoutASocketTheAccumulatorTakesOverAndStaysBounded() {
    Address nowhere = address(0, SECRET);
    try (MetricsRoute route = new MetricsRoute(nowhere, 0)) {
      assertEquals("accumulators", route.name());
      for (int step = 1; step <= 1000; step++) route.send(progress(step));
      List<RunEvent> kept = nowhere.accumulator().value();
      assertEquals(EventAccumulator.KEPT, kept.size());
      assertEquals(1000, kept.get(kept.size() - 1).sequence());
      assertEquals(kept, route.last());
    }
  }

  @Test
  void anEventByTwoRoutesCountsOnce() {
    RunEvents events = events(100);
    events.accept(new RunEvent("r", 0, 1, progress(1)));
    events.accept(new RunEvent("r", 0, 1, progress(1)));
    events.accept(new RunEvent("r", 0, 2, progress(2)));
    assertEquals(2, events.jsonLines().lines().count());
  }

  @Test
  void aRetryForgetsWhatItRepeatsAndIgnoresTheAttemptBefore() {
    RunEvents events = events(100);
    for (int i = 1; i <= 5; i++) events.accept(new RunEvent("r", 0, i, progress(i)));
    events.startAttempt(1, 3);
    events.accept(new RunEvent("r", 0, 6, progress(6)));
    events.accept(new RunEvent("r", 1, 1, progress(4)));
    assertEquals(4, events.jsonLines().lines().count());
    assertEquals(4, events.step());
  }

  @Test
  void aLongRunIsThinnedAndKeepsItsEnds() {
    RunEvents events = events(64);
    events.accept(new RunEvent("r", 0, 1, progress(1)));
    events.accept(new RunEvent("r", 0, 2, "{\"event\":\"test\",\"step\":1,\"outputs\":{}}"));
    for (int i = 3; i <= 5000; i++) events.accept(new RunEvent("r", 0, i, progress(i)));
    List<String> lines = events.jsonLines().lines().toList();
    assertTrue(lines.size() <= 64);
    assertTrue(lines.get(0).contains("\"step\":1,") && lines.get(1).contains("\"test\""));
    assertTrue(lines.get(lines.size() - 1).contains("\"step\":5000,"));
  }

  @Test
  void theLineSaysWhereTheRunIs() {
    RunEvents events = events(100);
    events.accept(new RunEvent("r", 0, 1,
        "{\"event\":\"test\",\"step\":40,\"outputs\":{\"accuracy\":0.9712}}"));
    events.accept(new RunEvent("r", 0, 2, progress(50)));
    events.accept(new RunEvent("r", 0, 3, progress(200)));
    List<String> lines = printed.toString(StandardCharsets.UTF_8).lines().toList();
    assertEquals("cafetiere  epoch 2.5  step 50/200  loss 0.1250  test accuracy 0.9712"
        + "  11,023 rows/s  waits: data 1 %, network 8 %", lines.get(0));
    assertTrue(lines.get(1).endsWith("  took 00:40"), lines.get(1));
  }

  @Test
  void aLogGetsALineEveryFewSecondsOnly() {
    RunEvents events = events(1000);
    for (int i = 1; i <= 50; i++) events.accept(new RunEvent("r", 0, i, progress(i)));
    assertEquals(1, printed.toString(StandardCharsets.UTF_8).lines().count());
    assertFalse(printed.toString(StandardCharsets.UTF_8).contains("\r"));
  }

  private static ServerSocket socket() throws IOException {
    return new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
  }

  private RunEvents events(int limit) {
    return new RunEvents(limit, new ProgressLine(new PrintStream(printed), false), event -> {});
  }

  private static Address address(int port, String secret) {
    String host = InetAddress.getLoopbackAddress().getHostAddress();
    return new Address("r", secret, host, port, new EventAccumulator());
  }

  private static String progress(int step) {
    return "{\"event\":\"progress\",\"step\":" + step + ",\"max_iter\":200,\"epoch\":2.5,"
        + "\"loss\":0.125,\"lr\":0.01,\"rows_per_s\":11023,\"wait_data\":0.01,"
        + "\"wait_comm\":0.08,\"seconds\":" + step / 5.0 + "}";
  }
}

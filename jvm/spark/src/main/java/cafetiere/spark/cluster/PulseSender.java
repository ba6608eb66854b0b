// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cluster;

import cafetiere.spark.line.LineChannel;
import cafetiere.spark.line.LineServer;
import cafetiere.spark.line.SilenceClock;
import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Tells a {@link PulseServer} that this executor lives, until closed or the server is gone. */
public final class PulseSender implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(PulseSender.class);

  private final CountDownLatch done = new CountDownLatch(1);

  /** Connects and beats from a thread of its own: nobody waits for it. */
  public PulseSender(LineServer.Address server, String executor) {
    Thread thread = new Thread(() -> beat(server, executor), "cafetiere-pulse");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void close() {
    done.countDown();
  }

  private void beat(LineServer.Address server, String executor) {
    try (LineChannel channel = server.connect()) {
      channel.write(executor);
      while (!done.await(SilenceClock.BEAT_MILLIS, TimeUnit.MILLISECONDS)) channel.write("");
    } catch (IOException e) {
      // The run is over; or its driver cannot be reached, and a hang is left to Spark to notice.
      LOG.info("The driver is not told any more that this executor lives: {}", e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}

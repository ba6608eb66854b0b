// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.survivors;

import cafetiere.spark.line.LineChannel;
import java.io.IOException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The driver's way to a member. What is sent is written by a thread of its own, which lasts as long as
 * there is something to write: the socket of a member that is stopped takes nothing at some point, and
 * nobody else may wait for that.
 */
final class MemberLink implements Membership.Link {
  private static final Logger LOG = LoggerFactory.getLogger(MemberLink.class);

  private final LineChannel channel;
  private final ThreadPoolExecutor writer = new ThreadPoolExecutor(
      0, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), MemberLink::daemon,
      new ThreadPoolExecutor.DiscardPolicy());  // what comes after close()

  MemberLink(LineChannel channel) {
    this.channel = channel;
  }

  @Override
  public void send(MembershipMessage message) {
    writer.execute(() -> {
      try {
        channel.write(message.toLine());
      } catch (IOException e) {
        LOG.debug("a member is not reached", e);
      }
    });
  }

  /** Ends a write under way, too. */
  @Override
  public void close() {
    writer.shutdownNow();
    try {
      channel.close();
    } catch (IOException e) {
      LOG.debug("closing a member's connection", e);
    }
  }

  private static Thread daemon(Runnable task) {
    Thread thread = new Thread(task, "cafetiere-member-link");
    thread.setDaemon(true);
    return thread;
  }
}

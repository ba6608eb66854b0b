// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.Membership.Member;
import cafetiere.spark.Notice.Kind;
import java.io.IOException;
import java.net.InetAddress;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The driver's ends of the members' connections, and the clock by which silence is noticed. */
final class MembershipServer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(MembershipServer.class);

  private final Membership membership;
  private final LineServer server;
  private final SilenceClock clock;

  /**
   * Serves {@code membership} on a free port of {@code bind}; {@code onSilence} is called when
   * members have been dropped because they were silent.
   */
  MembershipServer(InetAddress bind, String name, String secret, Membership membership,
      Runnable onSilence) throws IOException {
    this.membership = membership;
    this.server = new LineServer(bind, name, secret, this::serve);
    this.clock = new SilenceClock(name, () -> {
      if (membership.dropSilent()) onSilence.run();
    }, membership::excuseSilence);
  }

  int port() {
    return server.port();
  }

  @Override
  public void close() {
    clock.close();
    server.close();
  }

  private void serve(LineChannel channel) throws IOException {
    Notice hello = next(channel);
    if (hello == null || hello.kind() != Kind.JOIN) throw new IOException("a member must join");
    Member member = membership.join(hello.rank(), new ChannelLink(channel));
    String why = "its connection has ended";
    try {
      for (Notice notice = next(channel); notice != null; notice = next(channel)) {
        membership.heard(member, notice);
      }
    } catch (IOException e) {
      why = "its connection is broken (" + e.getMessage() + ")";
    } finally {
      membership.lost(member, why);
    }
  }

  private static Notice next(LineChannel channel) throws IOException {
    String line = channel.read();
    return line == null ? null : Notice.fromLine(line);
  }

  /** Lines are short and few, so they always find room in the socket's buffer. */
  private record ChannelLink(LineChannel channel) implements Membership.Link {
    @Override
    public void send(Notice notice) {
      try {
        channel.write(notice.toLine());
      } catch (IOException e) {
        LOG.debug("a member is not reached", e);
      }
    }

    @Override
    public void close() {
      try {
        channel.close();
      } catch (IOException e) {
        LOG.debug("closing a member's connection", e);
      }
    }
  }
}

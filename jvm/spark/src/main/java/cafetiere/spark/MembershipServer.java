// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.Membership.Member;
import cafetiere.spark.Notice.Kind;
import java.io.IOException;
import java.net.ServerSocket;

/** The driver's ends of the members' connections, and the clock by which silence is noticed. */
final class MembershipServer implements LineServer.Service, AutoCloseable {
  private final Membership membership;
  private final LineServer server;
  private final SilenceClock clock;

  /**
   * Serves {@code membership} at {@code socket}; {@code onSilence} is called when members have been
   * dropped because they were silent.
   */
  MembershipServer(ServerSocket socket, String name, String secret, Membership membership,
      Runnable onSilence) {
    this.membership = membership;
    this.server = new LineServer(socket, name, secret, this);
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

  @Override
  public void serve(LineChannel channel) throws IOException {
    Notice hello = next(channel);
    if (hello == null || hello.kind() != Kind.JOIN) throw new IOException("a member must join");
    Member member = membership.join(hello.rank(), new MemberLink(channel));
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

  @Override
  public void ended(Throwable why) {
    membership.fail(new IOException(
        "the driver can accept no more connections of members: " + why.getMessage(), why));
  }

  private static Notice next(LineChannel channel) throws IOException {
    String line = channel.read();
    return line == null ? null : Notice.fromLine(line);
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.survivors;

import cafetiere.spark.line.LineChannel;
import cafetiere.spark.line.LineServer;
import cafetiere.spark.line.SilenceClock;
import cafetiere.spark.survivors.Membership.Member;
import cafetiere.spark.survivors.MembershipMessage.Kind;
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
    MembershipMessage hello = next(channel);
    if (hello == null || hello.kind() != Kind.JOIN) throw new IOException("a member must join");
    Member member = membership.join(hello.rank(), new MemberLink(channel));
    String why = "its connection has ended";
    try {
      for (MembershipMessage message = next(channel); message != null; message = next(channel)) {
        membership.heard(member, message);
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

  private static MembershipMessage next(LineChannel channel) throws IOException {
    String line = channel.read();
    return line == null ? null : MembershipMessage.fromLine(line);
  }
}

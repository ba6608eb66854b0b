// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.events;

import cafetiere.spark.line.LineChannel;
import cafetiere.spark.line.LineServer;
import java.io.IOException;
import java.net.ServerSocket;
import java.util.function.Consumer;

/** The driver's end of the event sockets; {@link RunEvents} drops what it has already. */
final class MetricsServer implements AutoCloseable {
  private final String run;
  private final Consumer<RunEvent> sink;
  private final LineServer server;

  MetricsServer(ServerSocket socket, String run, String secret, Consumer<RunEvent> sink) {
    this.run = run;
    this.sink = sink;
    this.server = new LineServer(socket, "cafetiere-metrics-" + run, secret, this::receive);
  }

  int port() {
    return server.port();
  }

  @Override
  public void close() {
    server.close();
  }

  private void receive(LineChannel channel) throws IOException {
    for (String line = channel.read(); line != null; line = channel.read()) {
      String[] parts = line.split(" ", 3);
      try {
        sink.accept(
            new RunEvent(run, Integer.parseInt(parts[0]), Long.parseLong(parts[1]), parts[2]));
      } catch (NumberFormatException | ArrayIndexOutOfBoundsException e) {
        throw new IOException("an event line has the wrong form", e);
      }
    }
  }
}

package cafetiere.spark;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The driver's end of rank 0's event socket. It serves one connection at a time (there is one rank
 * 0), refuses whoever cannot answer its challenge, and bounds what it reads.
 */
final class MetricsServer implements AutoCloseable {
  static final int MAX_LINE = 1 << 16;

  private static final Logger LOG = LoggerFactory.getLogger(MetricsServer.class);
  private static final int HANDSHAKE_MILLIS = 5_000;

  private final String run;
  private final String secret;
  private final Consumer<RunEvent> sink;
  private final ServerSocket server;
  private final Thread thread;
  private volatile Socket client;

  MetricsServer(InetAddress address, String run, String secret, Consumer<RunEvent> sink)
      throws IOException {
    this.run = run;
    this.secret = secret;
    this.sink = sink;
    this.server = new ServerSocket(0, 8, address);
    this.thread = new Thread(this::serve, "cafetiere-metrics-" + run);
    thread.setDaemon(true);
    thread.start();
  }

  int port() {
    return server.getLocalPort();
  }

  @Override
  public void close() {
    try {
      server.close();
      Socket open = client;
      if (open != null) open.close();
    } catch (IOException e) {
      LOG.debug("closing the metrics server", e);
    }
  }

  private void serve() {
    while (!server.isClosed()) {
      try (Socket socket = server.accept()) {
        client = socket;
        receive(socket);
      } catch (SocketException e) {
        LOG.debug("the metrics connection ended", e);
      } catch (IOException e) {
        LOG.info("A metrics connection was dropped: {}", e.getMessage());
      }
    }
  }

  private void receive(Socket socket) throws IOException {
    socket.setSoTimeout(HANDSHAKE_MILLIS);
    String challenge = MetricsHandshake.challenge();
    OutputStream out = socket.getOutputStream();
    out.write((challenge + "\n").getBytes(StandardCharsets.US_ASCII));
    out.flush();
    BufferedReader in = new BufferedReader(
        new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
    String answer = readLine(in);
    if (answer == null || !MetricsHandshake.accepts(secret, challenge, answer)) {
      throw new IOException(socket.getRemoteSocketAddress() + " did not know the run's secret");
    }
    socket.setSoTimeout(0);
    for (String line = readLine(in); line != null; line = readLine(in)) {
      String[] parts = line.split(" ", 3);
      if (parts.length < 3) throw new IOException("an event line has the wrong form");
      sink.accept(
          new RunEvent(run, Integer.parseInt(parts[0]), Long.parseLong(parts[1]), parts[2]));
    }
  }

  /** One line of at most {@link #MAX_LINE} characters; null at the end. */
  private static String readLine(BufferedReader in) throws IOException {
    StringBuilder line = new StringBuilder();
    for (int c = in.read(); c != '\n'; c = in.read()) {
      if (c < 0) return null;
      if (line.length() >= MAX_LINE) throw new IOException("a line longer than " + MAX_LINE);
      line.append((char) c);
    }
    return line.toString();
  }
}

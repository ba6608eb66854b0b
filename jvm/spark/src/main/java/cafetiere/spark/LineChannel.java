package cafetiere.spark;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/**
 * A connection between a task and the driver that carries lines of text, each of a bounded length.
 * One thread may read while others write.
 */
final class LineChannel implements AutoCloseable {
  static final int MAX_LINE = 1 << 16;

  private static final int CONNECT_MILLIS = 2_000;
  private static final int HANDSHAKE_MILLIS = 5_000;

  private final Socket socket;
  private final BufferedReader in;

  private LineChannel(Socket socket) throws IOException {
    this.socket = socket;
    socket.setTcpNoDelay(true);
    socket.setSoTimeout(HANDSHAKE_MILLIS);
    in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
  }

  /** The task's end: proves to the driver that it knows the secret. */
  static LineChannel connect(String host, int port, String secret) throws IOException {
    Socket socket = new Socket();
    try {
      socket.connect(new InetSocketAddress(host, port), CONNECT_MILLIS);
      LineChannel channel = new LineChannel(socket);
      String challenge = channel.read();
      if (challenge == null) throw new IOException("the driver closed the connection");
      channel.write(Handshake.answer(secret, challenge));
      socket.setSoTimeout(0);
      return channel;
    } catch (IOException e) {
      socket.close();
      throw e;
    }
  }

  /** The driver's end: refuses whoever does not know the secret. */
  static LineChannel accept(Socket socket, String secret) throws IOException {
    LineChannel channel = new LineChannel(socket);
    String challenge = Handshake.challenge();
    channel.write(challenge);
    String answer = channel.read();
    if (answer == null || !Handshake.accepts(secret, challenge, answer)) {
      throw new IOException(socket.getRemoteSocketAddress() + " did not know the run's secret");
    }
    socket.setSoTimeout(0);
    return channel;
  }

  /** The next line; null at the end. */
  String read() throws IOException {
    StringBuilder line = new StringBuilder();
    for (int c = in.read(); c != '\n'; c = in.read()) {
      if (c < 0) return null;
      if (line.length() >= MAX_LINE) throw new IOException("a line longer than " + MAX_LINE);
      line.append((char) c);
    }
    return line.toString();
  }

  /** Sends a line, which has no end of line within it. */
  synchronized void write(String line) throws IOException {
    socket.getOutputStream().write((line + "\n").getBytes(StandardCharsets.UTF_8));
  }

  /** Ends the connection; a thread that reads or writes sees its end. */
  @Override
  public void close() throws IOException {
    socket.close();
  }
}

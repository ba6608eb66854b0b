// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.line;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;

/**
 * A connection between a task and the driver that carries lines of text, encrypted, each of a
 * bounded length. One thread may read while others write.
 */
public final class LineChannel implements AutoCloseable {
  public static final int MAX_LINE = 1 << 16;

  private static final int MAX_GREETING = 256;
  // Three bytes a character and a tag, as base64.
  private static final int MAX_SEALED = 4 * MAX_LINE + 32;
  private static final int CONNECT_MILLIS = 2_000;
  private static final int HANDSHAKE_MILLIS = 5_000;
  private static final long NO_END = 0;

  private final Socket socket;
  private final BufferedReader in;
  private LineCipher cipher;

  private LineChannel(Socket socket) throws IOException {
    this.socket = socket;
    socket.setTcpNoDelay(true);
    in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
  }

  /** The task's end: proves to the driver that it knows the secret. */
  public static LineChannel connect(String host, int port, String secret) throws IOException {
    Socket socket = new Socket();
    try {
      socket.connect(new InetSocketAddress(host, port), CONNECT_MILLIS);
      LineChannel channel = new LineChannel(socket);
      Handshake handshake = new Handshake(secret);
      String challenge = channel.readPlain(MAX_GREETING, end(HANDSHAKE_MILLIS));
      if (challenge == null) throw new IOException("the driver closed the connection");
      channel.writePlain(handshake.answer(challenge));
      channel.cipher = handshake.trust(challenge);
      socket.setSoTimeout(0);
      return channel;
    } catch (IOException e) {
      socket.close();
      throw e;
    }
  }

  /** The driver's end: refuses whoever does not prove in time that it knows the secret. */
  static LineChannel accept(Socket socket, String secret, int millis) throws IOException {
    LineChannel channel = new LineChannel(socket);
    Handshake handshake = new Handshake(secret);
    channel.writePlain(handshake.challenge());
    String answer = channel.readPlain(MAX_GREETING, end(millis));
    try {
      channel.cipher = handshake.accept(answer == null ? "" : answer);
    } catch (IOException e) {
      throw new IOException(socket.getRemoteSocketAddress() + " " + e.getMessage(), e);
    }
    socket.setSoTimeout(0);
    return channel;
  }

  /** The next line; null at the end. */
  public String read() throws IOException {
    String sealed = readPlain(MAX_SEALED, NO_END);
    return sealed == null ? null : cipher.open(sealed);
  }

  /** Sends a line, which has no end of line within it. */
  public synchronized void write(String line) throws IOException {
    writePlain(cipher.seal(line));
  }

  /** A line that is there before {@code end}, a time of the clock, however it trickles in. */
  private String readPlain(int most, long end) throws IOException {
    StringBuilder line = new StringBuilder();
    for (int c = readBefore(end); c != '\n'; c = readBefore(end)) {
      if (c < 0) return null;
      if (line.length() >= most) throw new IOException("a line longer than " + most);
      line.append((char) c);
    }
    return line.toString();
  }

  private int readBefore(long end) throws IOException {
    if (end == NO_END) return in.read();
    long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
    if (left <= 0) throw new SocketTimeoutException("the handshake took too long");
    socket.setSoTimeout((int) left);
    return in.read();
  }

  private static long end(int millis) {
    return System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
  }

  private void writePlain(String line) throws IOException {
    socket.getOutputStream().write((line + "\n").getBytes(StandardCharsets.UTF_8));
  }

  /** Ends the connection; a thread that reads or writes sees its end. */
  @Override
  public void close() throws IOException {
    socket.close();
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.line;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.cluster.DriverPorts;
import cafetiere.spark.cluster.PortRange;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the driver's sockets bear: slow clients, too many of them, an accept that fails. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
class LineServerTest {
  private static final String SECRET = "a secret of thirty-two characters";
  private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();

  @Test
  void aClientHasOneLimitOfTimeForAllItSays() throws Exception {
    int bytes = 200;
    try (ServerSocket server = new ServerSocket(0, 1, LOOPBACK);
        Socket client = new Socket(LOOPBACK, server.getLocalPort());
        Socket accepted = server.accept()) {
      AtomicInteger sent = new AtomicInteger();
      CompletableFuture<Void> says = CompletableFuture.runAsync(() -> trickle(client, bytes, sent));
      assertThrows(IOException.class, () -> LineChannel.accept(accepted, SECRET, 500));
      assertTrue(sent.get() < bytes, "it was listened to until it had said all");
      accepted.close();
      client.close();
      says.join();
    }
  }

  @Test
  void connectionsBeyondTheLimitAreRefused() throws Exception {
    LineServer.Limits two = new LineServer.Limits(8, 2, 5_000, 12);
    try (LineServer server =
            new LineServer(new ServerSocket(0, 8, LOOPBACK), "test", SECRET, this::echo, two);
        LineChannel first = connect(server);
        LineChannel second = connect(server)) {
      assertEquals("1", ask(first));
      assertEquals("1", ask(second));
      assertThrows(IOException.class, () -> connect(server).close());
      first.write("end");
      assertNull(first.read());
      assertEquals("1", ask(second));
    }
  }

  @Test
  void anAcceptThatFailsForAWhileIsTriedAgain() throws Exception {
    FailingSocket socket = new FailingSocket(3);
    try (LineServer server = new LineServer(socket, "test", SECRET, this::echo);
        LineChannel channel = connect(server)) {
      assertEquals("1", ask(channel));
    }
  }

  @Test
  void anAcceptThatFailsForGoodEndsTheServerAndIsTold() throws Exception {
    FailingSocket socket = new FailingSocket(Integer.MAX_VALUE);
    CompletableFuture<Throwable> told = new CompletableFuture<>();
    LineServer.Service service = new LineServer.Service() {
      @Override
      public void serve(LineChannel channel) {}

      @Override
      public void ended(Throwable why) {
        told.complete(why);
      }
    };
    LineServer.Limits limits = new LineServer.Limits(8, 8, 5_000, 4);
    try (LineServer server = new LineServer(socket, "test", SECRET, service, limits)) {
      assertEquals("Too many open files", told.get().getMessage());
      assertEquals(4, socket.asked.get());
      assertTrue(socket.isClosed());
    }
  }

  @Test
  void thePortIsOneOfThoseOfTheSettings() throws Exception {
    SparkConf conf = new SparkConf(false).set("spark.driver.host", "127.0.0.1");
    int taken;
    try (ServerSocket first = DriverPorts.listen(conf)) {
      taken = first.getLocalPort();
      conf.set(PortRange.DRIVER, taken + "-" + (taken + 20));
      try (ServerSocket next = DriverPorts.listen(conf)) {
        assertTrue(next.getLocalPort() > taken && next.getLocalPort() <= taken + 20);
      }
      conf.set(PortRange.DRIVER, "" + taken);
      String message = assertThrows(IOException.class, () -> DriverPorts.listen(conf)).getMessage();
      assertTrue(message.startsWith("no port of " + taken + " (spark.cafetiere.port) is free at "),
          message);
    }
    for (String wrong : new String[] {"any", "9-8", "70000", "1-2-3"}) {
      conf.set(PortRange.DRIVER, wrong);
      String message = assertThrows(IOException.class, () -> DriverPorts.listen(conf)).getMessage();
      assertTrue(message.contains("'" + wrong + "': set it to a port"), message);
    }
  }

  private void echo(LineChannel channel) throws IOException {
    for (String line = channel.read(); !"end".equals(line); line = channel.read()) {
      channel.write(line);
    }
  }

  private static String ask(LineChannel channel) throws IOException {
    channel.write("1");
    return channel.read();
  }

  private static LineChannel connect(LineServer server) throws IOException {
    return LineChannel.connect(LOOPBACK.getHostAddress(), server.port(), SECRET);
  }

  private static void trickle(Socket socket, int bytes, AtomicInteger sent) {
    try {
      for (; sent.get() < bytes; sent.incrementAndGet()) {
        socket.getOutputStream().write('a');
        Thread.sleep(50);
      }
    } catch (IOException | InterruptedException e) {
      // the driver has had enough
    }
  }

  /** Fails to accept, as often as it is told to, with what a process without free files gets. */
  private static final class FailingSocket extends ServerSocket {
    private final int failures;
    private final AtomicInteger asked = new AtomicInteger();

    FailingSocket(int failures) throws IOException {
      super(0, 8, LOOPBACK);
      this.failures = failures;
    }

    @Override
    public Socket accept() throws IOException {
      if (asked.incrementAndGet() <= failures) throw new SocketException("Too many open files");
      return super.accept();
    }
  }
}

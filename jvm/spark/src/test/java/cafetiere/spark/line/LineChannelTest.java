// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.line;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 60, unit = TimeUnit.SECONDS)
class LineChannelTest {
  private static final String SECRET = "a secret of thirty-two characters";

  /** Both ends of the lines between a driver and a task. */
  private record Ciphers(LineCipher driver, LineCipher task) {
    static Ciphers of(String driverSecret, String taskSecret) throws IOException {
      Handshake driver = new Handshake(driverSecret);
      Handshake task = new Handshake(taskSecret);
      LineCipher taskEnd = task.trust(driver.challenge());
      return new Ciphers(driver.accept(task.answer(driver.challenge())), taskEnd);
    }
  }

  @Test
  void theLongestLinesGoBothWays() throws Exception {
    InetAddress loopback = InetAddress.getLoopbackAddress();
    try (ServerSocket server = new ServerSocket(0, 1, loopback)) {
      CompletableFuture<Void> driver = CompletableFuture.runAsync(() -> echo(server));
      try (LineChannel task = LineChannel.connect(
          loopback.getHostAddress(), server.getLocalPort(), SECRET)) {
        for (String line : new String[] {"", "ALIVE", "€".repeat(LineChannel.MAX_LINE)}) {
          task.write(line);
          assertEquals(line, task.read());
        }
      }
      driver.get();
    }
  }

  @Test
  void nothingOfALineIsReadable() throws Exception {
    Ciphers ends = Ciphers.of(SECRET, SECRET);
    String once = ends.driver().seal("COMMIT 10.0.0.7:41000");
    String again = ends.driver().seal("COMMIT 10.0.0.7:41000");
    assertFalse(once.equals(again), "the same line looks the same");
    assertEquals("COMMIT 10.0.0.7:41000", ends.task().open(once));
    assertEquals("COMMIT 10.0.0.7:41000", ends.task().open(again));
  }

  @Test
  void whatIsChangedRepeatedOrLeftOutIsRefused() throws Exception {
    String line = Ciphers.of(SECRET, SECRET).driver().seal("END");
    assertThrows(IOException.class, () -> Ciphers.of(SECRET, SECRET).task().open(line));
    Ciphers ends = Ciphers.of(SECRET, SECRET);
    String first = ends.driver().seal("1");
    char changed = first.charAt(3) == 'A' ? 'B' : 'A';
    String other = first.substring(0, 3) + changed + first.substring(4);
    IOException told = assertThrows(IOException.class, () -> ends.task().open(other));
    assertTrue(told.getMessage().contains("changed on the way"), told.getMessage());
    Ciphers repeated = Ciphers.of(SECRET, SECRET);
    String said = repeated.task().seal("AGREE");
    assertEquals("AGREE", repeated.driver().open(said));
    assertThrows(IOException.class, () -> repeated.driver().open(said));
    Ciphers shortened = Ciphers.of(SECRET, SECRET);
    shortened.task().seal("left out");
    String second = shortened.task().seal("2");
    assertThrows(IOException.class, () -> shortened.driver().open(second));
  }

  @Test
  void whoDoesNotKnowTheSecretIsRefused() {
    IOException told =
        assertThrows(IOException.class, () -> Ciphers.of(SECRET, "another secret"));
    assertTrue(told.getMessage().contains("did not know the run's secret"), told.getMessage());
  }

  private static void echo(ServerSocket server) {
    try (Socket socket = server.accept(); LineChannel channel = LineChannel.accept(socket, SECRET, 5_000)) {
      for (String line = channel.read(); line != null; line = channel.read()) channel.write(line);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }
}

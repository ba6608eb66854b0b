// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Where a rank listens when its host's name is an address that other hosts cannot reach. */
class PeerAddressTest {
  private static final InetAddress OWN = address(127, 0, 1, 1);
  private static final InetAddress LAN = address(10, 0, 0, 7);
  private static final InetSocketAddress DRIVER = new InetSocketAddress("127.0.0.1", 1);

  @Test
  void aLoopbackAddressIsKeptWhereAllRanksAre() {
    assertEquals(OWN, PeerAddress.choose("node", OWN, true, List.of(LAN)));
  }

  @Test
  void elseTheFirstAddressOfANetworkIsTaken() {
    InetAddress route = InetAddress.getLoopbackAddress();
    assertEquals(LAN,
        PeerAddress.choose("node", OWN, false, List.of(route, LAN, address(192, 168, 0, 1))));
  }

  @Test
  void withoutOneTheCauseIsTold() {
    String message = assertThrows(CafetiereException.class,
        () -> PeerAddress.choose("node", OWN, false, List.of(OWN))).getMessage();
    assertTrue(message.contains("own name node is 127.0.1.1"), message);
    assertTrue(message.contains("correct node in its /etc/hosts"), message);
  }

  @Test
  void whatSparkWasToldIsKept() throws IOException {
    assertEquals("127.0.0.1", PeerAddress.of("localhost", false, DRIVER));
    assertEquals("127.0.0.2", PeerAddress.of("127.0.0.2", false, DRIVER));
    assertEquals("10.0.0.7", PeerAddress.of("10.0.0.7", false, DRIVER));
  }

  /** This host's own name, on a host that is in a network. */
  @Test
  void theOwnNameGivesNoLoopbackAddress() throws IOException {
    String host = InetAddress.getLocalHost().getHostName();
    if (host.equals("localhost")) return;
    InetAddress chosen;
    try {
      chosen = InetAddress.getByName(PeerAddress.of(host, false, DRIVER));
    } catch (CafetiereException e) {
      assertTrue(e.getMessage().contains("could reach"), e.getMessage());
      return;
    }
    assertFalse(chosen.isLoopbackAddress(), chosen::toString);
  }

  private static InetAddress address(int... bytes) {
    byte[] raw = new byte[bytes.length];
    for (int i = 0; i < raw.length; i++) raw[i] = (byte) bytes[i];
    try {
      return InetAddress.getByAddress(raw);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cluster;

import cafetiere.core.CafetiereException;
import cafetiere.core.CafetiereException.Code;
import java.io.IOException;
import java.net.DatagramSocket;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The address at which a rank listens, and which it tells the others. */
public final class PeerAddress {
  private static final Logger LOG = LoggerFactory.getLogger(PeerAddress.class);

  private PeerAddress() {}

  /**
   * That of {@code host}, this executor's name in Spark. Many distributions map the own name to
   * 127.0.1.1, where only this host's processes can connect: unless {@code alone} says that all ranks
   * are here, the address of a network is taken then, if possible that of the route to {@code driver}.
   */
  public static String of(String host, boolean alone, InetSocketAddress driver) throws IOException {
    InetAddress named = InetAddress.getByName(host);
    if (!named.isLoopbackAddress() || isLoopbackName(host)) return named.getHostAddress();
    InetAddress chosen = choose(host, named, alone, networks(driver));
    if (!chosen.equals(named)) {
      LOG.warn("{} is {} here, which other hosts cannot reach: the rank listens on {}", host,
          named.getHostAddress(), chosen.getHostAddress());
    }
    return chosen.getHostAddress();
  }

  /** The same for a name of the loopback address; {@code networks}: this host's others, best first. */
  static InetAddress choose(String host, InetAddress named, boolean alone,
      List<InetAddress> networks) {
    if (alone) return named;
    return networks.stream().filter(address -> !address.isLoopbackAddress()).findFirst()
        .orElseThrow(() -> new CafetiereException(Code.INVALID_ARGUMENT, "the executor's own"
            + " name " + host + " is " + named.getHostAddress() + " on its host, and the host has no"
            + " address that the other ranks could reach: correct " + host + " in its /etc/hosts, or"
            + " set SPARK_LOCAL_IP there"));
  }

  /** Spark was told to stay on this host, by SPARK_LOCAL_IP or as a local master. */
  private static boolean isLoopbackName(String host) {
    return host.equals("localhost") || host.equals("::1") || host.matches("127[.0-9]+");
  }

  private static List<InetAddress> networks(InetSocketAddress driver) throws SocketException {
    List<InetAddress> networks = new ArrayList<>();
    try (DatagramSocket probe = new DatagramSocket()) {
      probe.connect(driver);  // sends nothing: it asks for the route
      networks.add(probe.getLocalAddress());
    } catch (IOException | RuntimeException e) {
      LOG.debug("no route to {}", driver, e);
    }
    List<InetAddress> others = new ArrayList<>();
    for (NetworkInterface network : NetworkInterface.networkInterfaces().toList()) {
      if (network.isUp()) network.inetAddresses().forEach(others::add);
    }
    others.removeIf(address -> address.isLinkLocalAddress() || address.isMulticastAddress());
    others.sort(Comparator.comparing(address -> !(address instanceof Inet4Address)));
    networks.addAll(others);
    return networks;
  }
}

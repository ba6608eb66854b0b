// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cluster;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import org.apache.spark.SparkConf;

/**
 * Where the driver listens for executors: at spark.driver.bindAddress, on any free port or, behind a
 * firewall, on one of those that {@code spark.cafetiere.port} names, as in 41000-41015.
 */
public final class DriverPorts {
  private static final int BACKLOG = 64;

  private DriverPorts() {}

  /** The driver's name as the executors know it. */
  public static String host(SparkConf conf) {
    return conf.get("spark.driver.host", "localhost");
  }

  /** Listens on the first of the ports that is free. */
  public static ServerSocket listen(SparkConf conf) throws IOException {
    InetAddress address = InetAddress.getByName(conf.get("spark.driver.bindAddress", host(conf)));
    PortRange ports = PortRange.of(conf, PortRange.DRIVER);
    for (int port = ports.first(); port <= ports.last(); port++) {
      try {
        return new ServerSocket(port, BACKLOG, address);
      } catch (BindException e) {
        if (ports.isAny()) throw e;
      }
    }
    throw new IOException("no port of " + ports + " (" + PortRange.DRIVER + ") is free at "
        + address.getHostAddress() + ": name more of them; a fit uses up to two");
  }
}

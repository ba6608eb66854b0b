// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;

/**
 * Where the driver listens for executors: at spark.driver.bindAddress, on any free port or, behind a
 * firewall, on one of those that {@code spark.cafetiere.port} names, as in 41000-41015.
 */
final class DriverPorts {
  static final String SETTING = "spark.cafetiere.port";

  private static final Pattern RANGE = Pattern.compile("\\s*(\\d{1,5})\\s*(?:-\\s*(\\d{1,5})\\s*)?");
  private static final int BACKLOG = 64;
  private static final int LAST = 65_535;

  private DriverPorts() {}

  /** The driver's name as the executors know it. */
  static String host(SparkConf conf) {
    return conf.get("spark.driver.host", "localhost");
  }

  /** Listens on the first of the ports that is free. */
  static ServerSocket listen(SparkConf conf) throws IOException {
    InetAddress address = InetAddress.getByName(conf.get("spark.driver.bindAddress", host(conf)));
    String wanted = conf.get(SETTING, "0");
    Matcher range = RANGE.matcher(wanted);
    int first = range.matches() ? Integer.parseInt(range.group(1)) : -1;
    int last = range.matches() && range.group(2) != null ? Integer.parseInt(range.group(2)) : first;
    if (first < 0 || last < first || last > LAST) {
      throw new IOException(SETTING + " is '" + wanted + "': set it to a port, or to two of them as in"
          + " 41000-41015");
    }
    for (int port = first; port <= last; port++) {
      try {
        return new ServerSocket(port, BACKLOG, address);
      } catch (BindException e) {
        if (first == 0) throw e;  // no port of all is free
      }
    }
    throw new IOException("no port of " + wanted + " (" + SETTING + ") is free at "
        + address.getHostAddress() + ": name more of them; a fit uses up to two");
  }
}

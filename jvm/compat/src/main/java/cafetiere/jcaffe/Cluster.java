// SPDX-License-Identifier: Apache-2.0
package cafetiere.jcaffe;

import cafetiere.core.Group;
import java.io.IOException;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.IntConsumer;

/**
 * What joins the devices of all nodes: each is a rank of one group. A node's address names its devices'
 * ports and a part of the secret that all of them share: whoever does not know all addresses is refused.
 */
public final class Cluster implements AutoCloseable {
  private static final int SECRET_BYTES = 16;

  private final int nodes;
  private final int node;
  private final int devices;
  private final List<Group> groups = new ArrayList<>(); // this node's, by device
  private final String address;

  /** Listens, for each device of a node. */
  public Cluster(int nodes, int node, int devices, boolean rdma) throws IOException {
    this.nodes = nodes;
    this.node = node;
    this.devices = devices;
    byte[] random = new byte[SECRET_BYTES];
    new SecureRandom().nextBytes(random);
    String part = HexFormat.of().formatHex(random);
    List<String> ports = new ArrayList<>();
    for (int device = 0; device < devices; ++device) {
      groups.add(new Group(Json.object("rank", node * devices + device, "size", nodes * devices,
          "bind", nodes == 1 ? "127.0.0.1" : localAddress(), "secret", part,
          "connection", rdma ? "infiniband" : "ethernet")));
      ports.add(groups.get(device).address());
    }
    address = String.join(",", ports) + "/" + part;
  }

  /** What each other node is to be told; empty where there is none. */
  public String[] localAddresses() {
    String[] addresses = new String[nodes == 1 ? 0 : nodes];
    for (int i = 0; i < addresses.length; ++i) {
      addresses[i] = i == node ? "" : address;
    }
    return addresses;
  }

  /** Connects all devices; {@code addresses}: of each node, by rank, without this one's. */
  public void connect(String[] addresses) {
    List<String> ranks = new ArrayList<>();
    StringBuilder secret = new StringBuilder();
    for (int i = 0; i < nodes; ++i) {
      String of = i == node ? address : addresses != null && i < addresses.length ? addresses[i] : null;
      String[] parts = of == null ? new String[0] : of.split("/", -1);
      String[] ports = parts.length == 2 ? parts[0].split(",", -1) : new String[0];
      if (ports.length != devices) {
        throw new IllegalArgumentException("the address of node " + i + " is '" + of
            + "', not one that localAddresses() of a CaffeNet with " + devices
            + " devices gives");
      }
      ranks.addAll(List.of(ports));
      secret.append(parts[1]);
    }
    String list = Json.array(ranks.toArray());
    atOnce(device -> {
      groups.get(device).setSecret(secret.toString());
      groups.get(device).connect(list);
    });
  }

  /** The end of a device. */
  public Group group(int device) {
    return groups.get(device);
  }

  /** Returns when all devices of all nodes have come here. */
  public void sync() {
    atOnce(device -> groups.get(device).barrier());
  }

  /** Does what all ranks must do together, for each device on a thread of its own. */
  public void atOnce(IntConsumer work) {
    List<CompletableFuture<Void>> running = new ArrayList<>();
    for (int device = 0; device < devices; ++device) {
      int mine = device;
      running.add(CompletableFuture.runAsync(() -> work.accept(mine),
          task -> new Thread(task, "caffe-net-" + mine).start()));
    }
    try {
      CompletableFuture.allOf(running.toArray(new CompletableFuture<?>[0])).join();
    } catch (CompletionException e) {
      throw e.getCause() instanceof RuntimeException cause ? cause : e;
    }
  }

  @Override
  public void close() {
    groups.forEach(Group::cancel);
    groups.forEach(Group::close);
  }

  /** An address of this host that others reach: SPARK_LOCAL_IP, else its name's, else a network's. */
  private static String localAddress() throws IOException {
    String told = System.getenv("SPARK_LOCAL_IP");
    InetAddress named =
        told != null ? InetAddress.getByName(told) : InetAddress.getLocalHost();
    if (told != null || !named.isLoopbackAddress()) {
      return named.getHostAddress();
    }
    return NetworkInterface.networkInterfaces()
        .flatMap(NetworkInterface::inetAddresses)
        .filter(one -> one instanceof Inet4Address && !one.isLoopbackAddress())
        .map(InetAddress::getHostAddress)
        .findFirst()
        .orElse(named.getHostAddress());
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.io.IOException;
import java.io.Serializable;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import org.apache.spark.SparkConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Where the driver listens for the tasks of a run. Each connection has a thread of its own; those
 * that have not proved yet that they know the secret are bounded in number and time.
 */
final class LineServer implements AutoCloseable {
  /** Where a task finds the driver, and what proves that it belongs to the run. */
  record Address(String host, int port, String secret) implements Serializable {
    /** The task's end of a connection. */
    LineChannel connect() throws IOException {
      return LineChannel.connect(host, port, secret);
    }

    InetSocketAddress driver() {
      return new InetSocketAddress(host, port);
    }
  }

  /** Serves one connection until it ends. */
  interface Service {
    void serve(LineChannel channel) throws IOException;
  }

  private static final Logger LOG = LoggerFactory.getLogger(LineServer.class);
  private static final int STRANGERS = 64;
  private static final int BACKLOG = 64;

  private final String name;
  private final String secret;
  private final Service service;
  private final ServerSocket server;
  private final Semaphore strangers = new Semaphore(STRANGERS);
  private final Set<Socket> open = ConcurrentHashMap.newKeySet();

  /** Listens on a free port of {@code address}; {@code name} is for logs. */
  LineServer(InetAddress address, String name, String secret, Service service) throws IOException {
    this.name = name;
    this.secret = secret;
    this.service = service;
    this.server = new ServerSocket(0, BACKLOG, address);
    start("accept", this::accept);
  }

  /** The driver's name as the executors know it. */
  static String host(SparkConf conf) {
    return conf.get("spark.driver.host", "localhost");
  }

  /** The driver's own address. */
  static InetAddress bindAddress(SparkConf conf) throws IOException {
    return InetAddress.getByName(conf.get("spark.driver.bindAddress", host(conf)));
  }

  int port() {
    return server.getLocalPort();
  }

  /** Ends all connections. */
  @Override
  public void close() {
    closeQuietly(server);
    open.forEach(LineServer::closeQuietly);
  }

  private void accept() {
    while (!server.isClosed()) {
      try {
        Socket socket = server.accept();
        if (strangers.tryAcquire()) {
          start("serve", () -> serve(socket));
        } else {
          socket.close();
        }
      } catch (IOException e) {
        LOG.debug("{}: a connection was not accepted", name, e);
      }
    }
  }

  private void serve(Socket socket) {
    open.add(socket);
    // close() may have gone through the set before this one was in it.
    if (server.isClosed()) closeQuietly(socket);
    try (socket; LineChannel channel = meet(socket)) {
      service.serve(channel);
    } catch (IOException e) {
      if (!server.isClosed()) LOG.info("{}: a connection ended: {}", name, e.getMessage());
    } finally {
      open.remove(socket);
    }
  }

  private LineChannel meet(Socket socket) throws IOException {
    try {
      return LineChannel.accept(socket, secret);
    } finally {
      strangers.release();
    }
  }

  private void start(String what, Runnable work) {
    Thread thread = new Thread(work, name + "-" + what);
    thread.setDaemon(true);
    thread.start();
  }

  private static void closeQuietly(AutoCloseable socket) {
    try {
      socket.close();
    } catch (Exception e) {
      LOG.debug("closing a socket", e);
    }
  }
}

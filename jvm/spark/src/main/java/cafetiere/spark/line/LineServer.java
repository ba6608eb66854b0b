// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.line;

import java.io.IOException;
import java.io.Serializable;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Where the driver listens for the tasks of a run. Each connection has a thread of its own, and there
 * is a limit to them; those that have not proved yet that they know the secret are bounded in number
 * and time.
 */
public final class LineServer implements AutoCloseable {
  /** Where a task finds the driver, and what proves that it belongs to the run. */
  public record Address(String host, int port, String secret) implements Serializable {
    /** The task's end of a connection. */
    public LineChannel connect() throws IOException {
      return LineChannel.connect(host, port, secret);
    }

    public InetSocketAddress driver() {
      return new InetSocketAddress(host, port);
    }
  }

  /** What is done with connections. */
  public interface Service {
    /** Serves one until it ends. */
    void serve(LineChannel channel) throws IOException;

    /** No more of them can be accepted, by {@code why}; those that are open stay. */
    default void ended(Throwable why) {}
  }

  /**
   * What a server bears.
   *
   * @param unauthenticated connections that have not proved yet that they know the secret
   * @param connections all of them
   * @param handshakeMillis what a proof may take
   * @param failures failures to accept, one after the other, that end the server
   */
  record Limits(int unauthenticated, int connections, int handshakeMillis, int failures) {
    /** Failures of about half a minute end it. */
    static final Limits DEFAULT = new Limits(64, 4_096, 5_000, 12);
  }

  private static final Logger LOG = LoggerFactory.getLogger(LineServer.class);
  private static final int LEAST_PAUSE_MILLIS = 10;
  private static final int MOST_PAUSE_MILLIS = 10_000;

  private final String name;
  private final String secret;
  private final Service service;
  private final ServerSocket server;
  private final Limits limits;
  private final Semaphore unauthenticated;
  private final Set<Socket> open = ConcurrentHashMap.newKeySet();

  /** Accepts what comes to {@code server}, which it closes at its end; {@code name} is for logs. */
  public LineServer(ServerSocket server, String name, String secret, Service service) {
    this(server, name, secret, service, Limits.DEFAULT);
  }

  LineServer(ServerSocket server, String name, String secret, Service service, Limits limits) {
    this.name = name;
    this.secret = secret;
    this.service = service;
    this.server = server;
    this.limits = limits;
    this.unauthenticated = new Semaphore(limits.unauthenticated());
    start("accept", this::accept);
  }

  public int port() {
    return server.getLocalPort();
  }

  /** Ends all connections. */
  @Override
  public void close() {
    closeQuietly(server);
    open.forEach(LineServer::closeQuietly);
  }

  private void accept() {
    int failures = 0;
    while (!server.isClosed()) {
      try {
        take(server.accept());
        failures = 0;
      } catch (IOException | OutOfMemoryError e) {  // the latter: no thread can be started
        if (!server.isClosed() && !goesOnAfter(++failures, e)) return;
      }
    }
  }

  private void take(Socket socket) throws IOException {
    if (open.size() >= limits.connections() || !unauthenticated.tryAcquire()) {
      LOG.warn("{}: {} connections are open, and another one from {} is refused", name, open.size(),
          socket.getRemoteSocketAddress());
      socket.close();
      return;
    }
    open.add(socket);
    try {
      start("serve", () -> serve(socket));
    } catch (OutOfMemoryError e) {
      unauthenticated.release();
      open.remove(socket);
      closeQuietly(socket);
      throw e;
    }
  }

  /** What fails now may succeed when other files of the process are closed. */
  private boolean goesOnAfter(int failures, Throwable why) {
    LOG.warn("{}: a connection was not accepted: {}", name, why.getMessage());
    if (failures >= limits.failures()) {
      LOG.error("{}: no more connections are accepted", name, why);
      closeQuietly(server);
      service.ended(why);
      return false;
    }
    int pause = Math.min(MOST_PAUSE_MILLIS, LEAST_PAUSE_MILLIS << Math.min(failures, 16));
    try {
      Thread.sleep(pause);
      return true;
    } catch (InterruptedException e) {
      return false;
    }
  }

  private void serve(Socket socket) {
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
      return LineChannel.accept(socket, secret, limits.handshakeMillis());
    } finally {
      unauthenticated.release();
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

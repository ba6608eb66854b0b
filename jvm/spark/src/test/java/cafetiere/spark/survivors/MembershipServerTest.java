// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.survivors;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.Group;
import cafetiere.spark.line.LineServer;
import cafetiere.spark.survivors.MembershipMessage.Kind;
import cafetiere.spark.util.Json;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The membership service over real sockets, and groups that connect as it says. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
class MembershipServerTest {
  private static final String SECRET = "a secret of thirty-two characters";
  private static final long ROWS = 10;
  private static final int TIMEOUT_MILLIS = 2_000;

  private final Membership membership = new Membership(3, TIMEOUT_MILLIS, () -> 0, why -> {});
  private final List<Task> tasks = new ArrayList<>();
  private MembershipServer server;

  @BeforeEach
  void serve() throws IOException {
    server = new MembershipServer(
        new ServerSocket(0, 8, InetAddress.getLoopbackAddress()), "test", SECRET, membership, () -> {});
  }

  @AfterEach
  void close() {
    tasks.forEach(Task::close);
    server.close();
  }

  @Test
  void aViewConnectsAndTheNextOneIsThatOfTheSurvivors() throws Exception {
    start(3);
    connectAll(1, tasks);
    tasks.remove(0).close();
    for (Task task : tasks) task.client.ranTo(Kind.BROKEN, "a peer is gone");
    connectAll(2, tasks);
  }

  @Test
  void oneThatComesBackIsTakenIn() throws Exception {
    start(3);
    connectAll(1, tasks);
    tasks.remove(2).close();
    for (Task task : tasks) task.client.ranTo(Kind.BROKEN, "a peer is gone");
    connectAll(2, tasks);
    tasks.add(new Task(2, ROWS + 1));
    // The service has to know of it before the others' run ends, else the next view has two members.
    while (membership.account().path("partitions").path(2).path("rows").asLong() != ROWS + 1) {
      Thread.onSpinWait();
    }
    for (Task task : tasks.subList(0, 2)) task.client.ranTo(Kind.BROKEN, "cancelled");
    connectAll(3, tasks);
    for (Task task : tasks) task.client.ranTo(Kind.DONE, "");
    assertEquals(Kind.STORE, tasks.get(0).client.next().kind());
    tasks.get(0).client.send(MembershipMessage.of(Kind.STORED));
    for (Task task : tasks) assertEquals(Kind.END, task.client.next().kind());
    assertNull(membership.ended().get(5, TimeUnit.SECONDS));
  }

  @Test
  void aMemberMissesTheDriver() throws Exception {
    start(3);
    connectAll(1, tasks);
    server.close();
    String message = assertThrows(IOException.class, () -> tasks.get(0).client.next()).getMessage();
    assertTrue(message.contains("the driver"), message);
  }

  @Test
  void whoDoesNotKnowTheSecretIsNotHeard() throws Exception {
    LineServer.Address wrong = new LineServer.Address(
        InetAddress.getLoopbackAddress().getHostAddress(), server.port(), "another secret");
    try (MemberClient stranger = new MemberClient(wrong, 0)) {
      assertThrows(IOException.class, stranger::next);
    }
    start(3);
    connectAll(1, tasks);
  }

  private void start(int count) throws IOException {
    for (int partition = 0; partition < count; partition++) tasks.add(new Task(partition, ROWS));
  }

  private static void connectAll(long generation, List<Task> tasks) {
    List<CompletableFuture<Void>> all = tasks.stream()
        .map(task -> CompletableFuture.runAsync(() -> task.connect(generation))).toList();
    CompletableFuture.allOf(all.toArray(new CompletableFuture<?>[0])).join();
  }

  /** A member that connects and does not train. */
  private final class Task {
    final MemberClient client;
    Group group;

    Task(int partition, long rows) throws IOException {
      client = new MemberClient(new LineServer.Address(
          InetAddress.getLoopbackAddress().getHostAddress(), server.port(), SECRET), partition);
      client.send(MembershipMessage.ready(rows, 0));
    }

    void connect(long generation) {
      try {
        MembershipMessage view = client.next();
        assertEquals(Kind.PROPOSE, view.kind());
        if (group != null) group.close();
        group = new Group(Json.object().put("rank", view.rank()).put("size", view.size())
            .put("bind", "127.0.0.1").put("secret", SECRET).put("timeout_ms", TIMEOUT_MILLIS)
            .put("generation", "test/" + view.generation()).toString());
        client.agree(view.generation(), group);
        MembershipMessage commit = client.next();
        assertEquals(Kind.COMMIT, commit.kind());
        assertEquals(generation, commit.generation());
        group.connect(Json.array(commit.addresses()).toString());
      } catch (IOException | InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }

    void close() {
      client.close();
      if (group != null) group.close();
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.survivors;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.survivors.Membership.Member;
import cafetiere.spark.survivors.MembershipMessage.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;

/** Which orders the members get, whatever the order in which they come and go. */
class MembershipTest {
  private long step;
  private final Membership membership = new Membership(3, 60_000, () -> step, why -> {});

  @Test
  void theFirstViewWaitsForAllWorkers() {
    Task b = new Task(1).ready(20);
    Task a = new Task(0).ready(10);
    assertEquals(List.of(), a.orders);
    Task c = new Task(2);
    c.ready(30);
    assertEquals(MembershipMessage.propose(1, 0, 3), a.take());
    assertEquals(MembershipMessage.propose(1, 1, 3), b.take());
    a.agree(1);
    b.agree(1);
    assertEquals(0, a.orders.size());
    c.agree(1);
    assertEquals(MembershipMessage.commit(1, List.of("a", "b", "c")), a.take());
  }

  @Test
  void whoIsLostBeforeTheFirstViewIsWaitedFor() {
    List<Task> tasks = proposed();
    tasks.get(0).agree(1);
    tasks.get(2).lose();
    tasks.get(1).agree(1);
    assertEquals(0, tasks.get(0).orders.size());
    Task back = new Task(2).ready(30);
    assertEquals(MembershipMessage.propose(2, 0, 3), tasks.get(0).take());
    assertEquals(MembershipMessage.propose(2, 2, 3), back.take());
  }

  @Test
  void theOthersGoOnWhenOneIsLost() {
    List<Task> tasks = running();
    tasks.get(0).lose();
    assertEquals(Kind.REFORM, tasks.get(1).take().kind());
    tasks.get(1).say(Kind.BROKEN, 1, "rank 0 is gone");
    assertEquals(0, tasks.get(1).orders.size());
    tasks.get(2).say(Kind.BROKEN, 1, "rank 0 is gone");
    assertEquals(MembershipMessage.propose(2, 0, 2), tasks.get(1).take());
    tasks.get(1).agree(2);
    tasks.get(2).agree(2);
    assertEquals(MembershipMessage.commit(2, List.of("b", "c")), tasks.get(1).take());
  }

  @Test
  void peersMayMissItBeforeTheDriverDoes() {
    List<Task> tasks = running();
    tasks.get(0).say(Kind.BROKEN, 1, "rank 2 is gone");
    tasks.get(1).say(Kind.BROKEN, 1, "rank 2 is gone");
    assertEquals(1, tasks.get(1).orders.size());
    tasks.get(2).lose();
    assertEquals(MembershipMessage.propose(2, 0, 2), tasks.get(0).take(Kind.PROPOSE));
  }

  @Test
  void whoComesBackJoinsBehindTheOthers() {
    List<Task> tasks = running();
    step = 100;
    tasks.get(0).lose();
    view(2, tasks.get(1), tasks.get(2));
    step = 250;
    Task back = new Task(0);
    assertEquals(0, tasks.get(1).orders.size());
    back.ready(10);
    assertEquals(Kind.REFORM, tasks.get(1).orders.get(0).kind());
    view(3, tasks.get(1), tasks.get(2), back);
    for (Task task : List.of(tasks.get(1), tasks.get(2), back)) task.say(Kind.DONE, 3, "");
    assertEquals(Kind.STORE, tasks.get(1).take().kind());
    assertFalse(membership.ended().isDone());
    tasks.get(1).say(Kind.STORED, 0, "");
    assertEquals(Kind.END, back.take().kind());
    assertTrue(membership.ended().isDone());
    assertEquals(Kind.END, new Task(0).take().kind());
    assertEquals("{\"members_at_start\":3,\"members_at_end\":3,\"views\":3,\"rows_given\":60,\"rows_skipped\":0,"
        + "\"rows_per_epoch\":[],\"epochs\":0,\"partitions\":["
        + "{\"partition\":0,\"rows\":10,\"losses\":1,\"steps_away\":150},"
        + "{\"partition\":1,\"rows\":20,\"losses\":0,\"steps_away\":0},"
        + "{\"partition\":2,\"rows\":30,\"losses\":0,\"steps_away\":0}]}",
        membership.account().toString());
  }

  @Test
  void theRowsThatLostTasksUsedStayCounted() {
    List<Task> tasks = running();
    tasks.get(0).use(Map.of(2L, 10L, 3L, 4L));
    tasks.get(1).use(Map.of(2L, 20L));
    tasks.get(0).use(Map.of(3L, 6L));
    tasks.get(0).lose();
    view(2, tasks.get(1), tasks.get(2));
    Task back = new Task(0).ready(10);
    view(3, tasks.get(1), tasks.get(2), back);
    back.use(Map.of(5L, 3L));
    assertEquals("[30,6,0,3]", membership.account().path("rows_per_epoch").toString());
    assertEquals(4, membership.account().path("epochs").asInt());
    assertEquals(60, membership.account().path("rows_given").asLong());
  }

  @Test
  void whoEndedBeforeAnotherWasLostRunsAgainIfItMust() {
    List<Task> tasks = running();
    tasks.get(1).say(Kind.DONE, 1, "");
    tasks.get(2).say(Kind.BROKEN, 1, "rank 0 is gone");
    tasks.get(0).lose();
    view(2, tasks.get(1), tasks.get(2));
  }

  @Test
  void anotherStoresWhenTheFirstIsLostWithTheResult() {
    List<Task> tasks = running();
    for (Task task : tasks) task.say(Kind.DONE, 1, "");
    assertEquals(Kind.STORE, tasks.get(0).take().kind());
    tasks.get(0).lose();
    view(2, tasks.get(1), tasks.get(2));
    tasks.get(1).say(Kind.DONE, 2, "");
    tasks.get(2).say(Kind.DONE, 2, "");
    assertEquals(Kind.STORE, tasks.get(1).take().kind());
  }

  @Test
  void aLaterTaskOfThePartitionTakesItsPlace() {
    List<Task> tasks = running();
    new Task(1);
    assertTrue(tasks.get(1).isClosed);
    assertEquals(Kind.REFORM, tasks.get(0).take().kind());
  }

  @Test
  void whatOldViewsSayIsNotHeard() {
    List<Task> tasks = running();
    tasks.get(0).lose();
    view(2, tasks.get(1), tasks.get(2));
    tasks.get(1).say(Kind.BROKEN, 1, "late");
    tasks.get(2).say(Kind.DONE, 1, "");
    assertEquals(0, tasks.get(1).orders.size());
  }

  @Test
  void theAttemptEndsWhenNobodyKnowsTheWeights() {
    List<Task> tasks = running();
    for (Task task : tasks) task.lose();
    String message = assertThrows(ExecutionException.class, () -> membership.ended().get())
        .getCause().getMessage();
    assertEquals("all members that knew the weights are lost", message);
  }

  @Test
  void aViewThatBreaksTwiceByTheSameFaultEndsTheAttempt() {
    List<Task> tasks = running();
    for (Task task : tasks) task.say(Kind.BROKEN, 1, "rank 1 is not reached");
    view(2, tasks.toArray(new Task[0]));
    for (Task task : tasks) task.say(Kind.BROKEN, 2, "rank 1 is not reached");
    String message = assertThrows(ExecutionException.class, () -> membership.ended().get())
        .getCause().getMessage();
    assertEquals("rank 1 is not reached", message);
  }

  @Test
  void theSilentAreDropped() {
    Membership impatient = new Membership(1, 0, () -> 0, why -> {});
    Task quiet = new Task(0);
    impatient.join(0, quiet);
    impatient.dropSilent();
    assertTrue(quiet.isClosed);
  }

  private List<Task> proposed() {
    List<Task> tasks = new ArrayList<>();
    for (int partition = 0; partition < 3; partition++) tasks.add(new Task(partition));
    for (Task task : tasks) task.ready(10 * (task.partition + 1));
    for (Task task : tasks) task.take(Kind.PROPOSE);
    return tasks;
  }

  private List<Task> running() {
    List<Task> tasks = proposed();
    for (Task task : tasks) task.agree(1);
    for (Task task : tasks) task.take(Kind.COMMIT);
    return tasks;
  }

  /** Leads tasks that run or wait into a view whose ranks are theirs, in order. */
  private static void view(long generation, Task... tasks) {
    for (Task task : tasks) {
      if (task.orders.stream().anyMatch(order -> order.kind() == Kind.REFORM)) {
        task.say(Kind.BROKEN, generation - 1, "cancelled");
      }
    }
    for (int rank = 0; rank < tasks.length; rank++) {
      assertEquals(MembershipMessage.propose(generation, rank, tasks.length),
          tasks[rank].take(Kind.PROPOSE));
    }
    for (Task task : tasks) task.agree(generation);
    for (Task task : tasks) assertEquals(generation, task.take(Kind.COMMIT).generation());
  }

  /** A member that keeps what it is told. */
  private final class Task implements Membership.Link {
    final int partition;
    final List<MembershipMessage> orders = new ArrayList<>();
    final Member member;
    boolean isClosed;

    Task(int partition) {
      this.partition = partition;
      this.member = membership.join(partition, this);
    }

    @Override
    public void send(MembershipMessage notice) {
      orders.add(notice);
    }

    @Override
    public void close() {
      isClosed = true;
    }

    Task ready(long rows) {
      membership.heard(member, MembershipMessage.ready(rows, 0));
      return this;
    }

    void agree(long generation) {
      say(Kind.AGREE, generation, "abc".substring(partition, partition + 1));
    }

    void say(Kind kind, long generation, String text) {
      membership.heard(member, MembershipMessage.of(kind, generation, text));
    }

    void use(Map<Long, Long> rows) {
      membership.heard(member, MembershipMessage.rows(rows));
    }

    void lose() {
      membership.lost(member, "killed");
    }

    MembershipMessage take() {
      return orders.remove(0);
    }

    /** The next order of a kind; earlier ones of other kinds are passed over. */
    MembershipMessage take(Kind kind) {
      while (orders.get(0).kind() != kind) orders.remove(0);
      return orders.remove(0);
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.survivors;

import cafetiere.spark.run.RetryPolicy;
import cafetiere.spark.survivors.MembershipMessage.Kind;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Who takes part in a training that goes on while its members come and go. It gives out views: a
 * generation and its members in the order of their ranks. A view is proposed, every member opens
 * its end of a new group, and when all have agreed it is committed with their addresses. It is
 * followed by another one when a member is lost, when a run breaks, or when a member has loaded its
 * rows and wants in; members that know the weights keep their order and come first.
 *
 * <p>The first view waits for all workers. A later one needs one member that has run: when none is
 * left the weights are gone, and the attempt with them.
 */
final class Membership {
  private enum Phase { LOADING, WAITING, ASKED, AGREED, RUNNING, DONE }

  /** The way to a member. Neither method waits or fails: a broken way shows at the other end. */
  interface Link {
    void send(MembershipMessage message);

    void close();
  }

  /** A task that takes part, known by its partition. */
  static final class Member {
    private final int partition;
    private final Link link;
    private Phase phase = Phase.LOADING;
    private long heardNanos;
    private long rows;
    private final Map<Long, Long> used = new HashMap<>();
    private String address;
    private boolean hasRun;

    private Member(int partition, Link link) {
      this.partition = partition;
      this.link = link;
      this.heardNanos = System.nanoTime();
    }
  }

  /** How often a partition was away, and for how many steps of the others. */
  private static final class Partition {
    private long rows;
    private long skipped;
    private int losses;
    private long awaySteps;
    private long lostAt = -1;
  }

  private static final Logger LOG = LoggerFactory.getLogger(Membership.class);

  private final int workers;
  private final long timeoutMillis;
  private final LongSupplier step;
  private final Consumer<String> warn;
  private final CompletableFuture<Void> begun = new CompletableFuture<>();
  private final CompletableFuture<Void> ended = new CompletableFuture<>();
  private final TreeMap<Integer, Member> members = new TreeMap<>();
  private final TreeMap<Integer, Partition> partitions = new TreeMap<>();
  private final TreeMap<Long, Long> rowsByEpoch = new TreeMap<>();
  private final RetryPolicy policy = new RetryPolicy();
  private List<Member> view = List.of();
  private Member first;
  private Member storing;
  private long generation;
  private int views;
  private int membersAtEnd;
  private boolean broken;
  private boolean changed;
  private boolean reforming;
  private String lastError = "";

  /** {@code step} tells how far the training is; {@code warn} is told what it goes on without. */
  Membership(int workers, long timeoutMillis, LongSupplier step, Consumer<String> warn) {
    this.workers = workers;
    this.timeoutMillis = timeoutMillis;
    this.step = step;
    this.warn = warn;
  }

  /** Completes when all workers are there and the first view begins. */
  CompletableFuture<Void> begun() {
    return begun;
  }

  /** Completes when the result is stored; exceptionally when this attempt cannot go on. */
  CompletableFuture<Void> ended() {
    return ended;
  }

  /** Whether the result is stored: what fails from then on does not matter. */
  boolean hasResult() {
    return ended.isDone() && !ended.isCompletedExceptionally();
  }

  /** A task is there. It takes the place of an earlier one with its partition. */
  synchronized Member join(int partition, Link link) {
    Member member = new Member(partition, link);
    if (ended.isDone()) {
      link.send(MembershipMessage.of(Kind.END));
      return member;
    }
    Member before = members.get(partition);
    if (before != null) lost(before, "another task took its place");
    members.put(partition, member);
    return member;
  }

  /** Takes what a member says. */
  synchronized void heard(Member member, MembershipMessage message) {
    if (ended.isDone() || members.get(member.partition) != member) return;
    member.heardNanos = System.nanoTime();
    boolean current = message.generation() == generation;
    switch (message.kind()) {
      case READY -> {
        member.rows = message.rows();
        partition(member).rows = message.rows();
        partition(member).skipped = message.skipped();
        member.phase = Phase.WAITING;
      }
      case AGREE -> {
        if (!current || member.phase != Phase.ASKED) return;
        member.address = message.text();
        member.phase = Phase.AGREED;
      }
      case BROKEN -> {
        if (!current) return;
        member.phase = Phase.WAITING;
        broken = true;
        lastError = message.text();
      }
      case DONE -> {
        if (!current) return;
        member.phase = Phase.DONE;
      }
      case ROWS -> {
        message.used().forEach((epoch, rows) -> {
          Long before = member.used.put(epoch, rows);
          rowsByEpoch.merge(epoch, rows - (before == null ? 0 : before), Long::sum);
        });
        return;
      }
      case STORED -> {
        if (member == storing) end();
        return;
      }
      default -> {
        return;
      }
    }
    advance();
  }

  /** A member is gone, or has to go. */
  synchronized void lost(Member member, String why) {
    if (ended.isDone() || !members.remove(member.partition, member)) return;
    warn.accept("The task of partition " + member.partition + " is lost: " + why);
    member.link.close();
    changed = true;
    if (member.hasRun) {
      Partition partition = partition(member);
      partition.losses++;
      partition.lostAt = step.getAsLong();
    }
    if (view.contains(member)) {
      view = view.stream().filter(other -> other != member).toList();
      broken = true;
    }
    advance();
  }

  /** Drops those that have been silent for too long; whether there were any. */
  synchronized boolean dropSilent() {
    long limit = System.nanoTime() - TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
    boolean any = false;
    for (Member member : List.copyOf(members.values())) {
      if (member.heardNanos >= limit) continue;
      lost(member, "it was silent for " + timeoutMillis + " ms (peerTimeout)");
      any = true;
    }
    return any;
  }

  /** Forgets all silence so far: nobody has listened. */
  synchronized void excuseSilence() {
    members.values().forEach(member -> member.heardNanos = System.nanoTime());
  }

  /** Nobody will come for a partition any more: {@code message} says why. */
  synchronized void giveUp(int partition, String message) {
    if (views == 0) {
      fail(new IllegalStateException(message));
    } else {
      warn.accept("The training goes on without partition " + partition + ": " + message);
    }
  }

  /** This attempt is over. */
  synchronized void fail(Exception why) {
    ended.completeExceptionally(why);
  }

  /**
   * For the result: the members and views there were, the rows of all partitions and those used in
   * each epoch, also by tasks that were lost, and what became of each partition.
   */
  synchronized ObjectNode account() {
    ObjectNode account = Json.object();
    account.put("members_at_start", workers).put("members_at_end", membersAtEnd);
    account.put("views", views);
    account.put("rows_given", partitions.values().stream().mapToLong(part -> part.rows).sum());
    account.put("rows_skipped", partitions.values().stream().mapToLong(part -> part.skipped).sum());
    ArrayNode perEpoch = account.putArray("rows_per_epoch");
    if (!rowsByEpoch.isEmpty()) {
      for (long epoch = rowsByEpoch.firstKey(); epoch <= rowsByEpoch.lastKey(); epoch++) {
        perEpoch.add(rowsByEpoch.getOrDefault(epoch, 0L));
      }
    }
    account.put("epochs", perEpoch.size());
    partitions.forEach((number, partition) -> {
      long away = partition.awaySteps
          + (partition.lostAt < 0 ? 0 : Math.max(0, step.getAsLong() - partition.lostAt));
      account.withArray("partitions").addObject().put("partition", number)
          .put("rows", partition.rows).put("losses", partition.losses).put("steps_away", away);
    });
    return account;
  }

  /** Does what is due after any change. */
  private void advance() {
    if (ended.isDone()) return;
    List<Member> next = nextView();
    boolean joining = next.size() > view.size();
    if (views == 0) {
      if (next.size() == workers && (joining || broken)) propose(next);
      else if (isIn(view, Phase.AGREED) && view.size() == workers) commit();
    } else if (next.stream().noneMatch(member -> member.hasRun)) {
      fail(new IllegalStateException("all members that knew the weights are lost"
          + (lastError.isEmpty() ? "" : ", after " + lastError)));
    } else if (isIn(view, Phase.DONE) && view.contains(first)) {
      store();
    } else if (view.stream().anyMatch(member -> member.phase == Phase.RUNNING)) {
      if (broken || joining) breakOff();
    } else if (broken || joining) {
      proposeAgain(next, joining);
    } else if (isIn(view, Phase.AGREED)) {
      commit();
    }
  }

  /** Those in the view and, behind them, those that wait to be. */
  private List<Member> nextView() {
    List<Member> next = new ArrayList<>(view);
    for (Member member : members.values()) {
      if (member.phase == Phase.WAITING && !view.contains(member)) next.add(member);
    }
    return next;
  }

  private static boolean isIn(Collection<Member> members, Phase phase) {
    return !members.isEmpty() && members.stream().allMatch(member -> member.phase == phase);
  }

  /** A view of the same members that breaks again and again without a step forward is a fault. */
  private void proposeAgain(List<Member> next, boolean joining) {
    if (changed || joining || policy.retryAfter(step.getAsLong(), lastError)) {
      propose(next);
    } else {
      fail(new IllegalStateException(lastError));
    }
  }

  private void propose(List<Member> next) {
    view = next;
    generation++;
    broken = false;
    changed = false;
    reforming = false;
    for (int rank = 0; rank < view.size(); rank++) {
      view.get(rank).phase = Phase.ASKED;
      view.get(rank).link.send(MembershipMessage.propose(generation, rank, view.size()));
    }
  }

  private void commit() {
    views++;
    begun.complete(null);
    first = view.get(0);
    List<String> addresses = view.stream().map(member -> member.address).toList();
    LOG.info("View {}: partitions {}", generation,
        view.stream().map(member -> member.partition).toList());
    for (Member member : view) {
      member.phase = Phase.RUNNING;
      member.hasRun = true;
      back(partition(member));
      member.link.send(MembershipMessage.commit(generation, addresses));
    }
  }

  private void back(Partition partition) {
    if (partition.lostAt < 0) return;
    partition.awaySteps += Math.max(0, step.getAsLong() - partition.lostAt);
    partition.lostAt = -1;
  }

  private void breakOff() {
    if (reforming) return;
    reforming = true;
    for (Member member : view) {
      if (member.phase == Phase.RUNNING) {
        member.link.send(MembershipMessage.of(Kind.REFORM, generation, null));
      }
    }
  }

  private void store() {
    if (storing == first) return;
    storing = first;
    storing.link.send(MembershipMessage.of(Kind.STORE));
  }

  private void end() {
    membersAtEnd = view.size();
    members.values().forEach(member -> member.link.send(MembershipMessage.of(Kind.END)));
    ended.complete(null);
  }

  private Partition partition(Member member) {
    return partitions.computeIfAbsent(member.partition, number -> new Partition());
  }
}

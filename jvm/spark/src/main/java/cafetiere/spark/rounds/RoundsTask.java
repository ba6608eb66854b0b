// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.rounds;

import cafetiere.core.CafetiereException;
import cafetiere.core.Rounds.Replica;
import cafetiere.core.Rows;
import cafetiere.spark.cluster.InstructionSet;
import cafetiere.spark.events.MetricsRoute;
import cafetiere.spark.feed.RowRoom;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.rounds.RoundsCell.LiveReplica;
import cafetiere.spark.run.TaskWatch;
import cafetiere.spark.stall.StallWatch;
import cafetiere.spark.stall.TaskPlace;
import cafetiere.spark.store.CheckpointStore;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.Seconds;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.Serializable;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.FlatMapFunction2;
import org.apache.spark.broadcast.Broadcast;

/**
 * A shard's part of a round. Any executor can do it: one that has the shard's replica goes on with
 * it, another makes it from the shard's rows and the newest checkpoint and repeats the rounds since
 * then, which is why the broadcasts of those are kept. A repeated round has the same bits.
 *
 * @param cell the run, and where replicas live
 * @param from what the first of {@code rounds} starts from
 * @param rounds the rounds since {@code from}
 * @param wanted what to do when they are done
 * @param driver who is told of a shard that does not get on
 */
record RoundsTask(Broadcast<RoundsCell> cell, Root from, List<Round> rounds, Work wanted,
    MetricsRoute.Address driver) implements FlatMapFunction2<Iterator<byte[]>, Iterator<byte[]>, byte[]> {
  private static final long serialVersionUID = 1L;

  /** A checkpoint by its name, "" for the begin, and how many rounds and iterations lie before it. */
  record Root(String checkpoint, long rounds, long iter) implements Serializable {}

  /** Iterations that all replicas do from the same shared floats. */
  record Round(long iter, long steps, Broadcast<byte[]> shared) implements Serializable {}

  /** What is wanted of a shard. */
  enum Work {
    /** The last of the rounds, and its floats. */
    TRAIN,
    /** The same, and before it a test of what the round begins with. */
    TEST_AND_TRAIN,
    /** A test of what the last of the rounds would begin with. */
    TEST,
    /** The sums for a posterior, which is what the last of the rounds would begin with. */
    POSTERIOR,
    /** The history after all rounds. */
    HISTORY
  }

  @Override
  public Iterator<byte[]> call(Iterator<byte[]> train, Iterator<byte[]> validation)
      throws IOException {
    TaskContext context = TaskContext.get();
    int shard = context.partitionId();
    LiveReplica held = cell.value().of(shard);
    TaskPlace place = new TaskPlace();
    place.enter(from.iter(), "waiting for an earlier task of the shard");
    try (StallWatch stall = StallWatch.of("shard " + shard, cell.value().setup().stallSeconds(),
        place::json, driver, 0)) {
      return List.of(outcome(context, held, place, train, validation).toBytes()).iterator();
    }
  }

  private RoundsOutcome outcome(TaskContext context, LiveReplica held, TaskPlace place,
      Iterator<byte[]> train, Iterator<byte[]> validation) throws IOException {
    ObjectNode report = Json.object().put("shard", context.partitionId());
    report.put("executor", SparkInternals.executorId());
    synchronized (held) {
      try (TaskWatch watch = new TaskWatch(context, held::cancel)) {
        long begin = System.nanoTime();
        catchUp(held, context.partitionId(), place, train, validation);
        spend(report, "starting", begin);
        return RoundsOutcome.of(report, work(held, place, report));
      } catch (CafetiereException e) {
        held.close();
        if (e.isRetryable()) throw e;  // Spark repeats the task
        return RoundsOutcome.failed(report, e.code(), e.getMessage());
      } catch (RuntimeException | IOException | Error e) {
        held.close();
        throw e;
      }
    }
  }

  private byte[] work(LiveReplica held, TaskPlace place, ObjectNode report) {
    if (wanted == Work.HISTORY) return held.replica().history();
    Round last = rounds.get(rounds.size() - 1);
    byte[] shared = last.shared().value().clone();
    if (wanted == Work.POSTERIOR) return posterior(held, last.iter(), place, shared, report);
    if (wanted != Work.TRAIN) {
      long begin = System.nanoTime();
      place.enter(last.iter(), "testing");
      report.set("test", Json.parse(held.replica().test(shared)));
      spend(report, "testing", begin);
    }
    if (wanted == Work.TEST) return new byte[0];
    long begin = System.nanoTime();
    JsonNode round = Json.parse(train(held, place, last, shared));
    ObjectNode seconds = spend(report, "computing", begin);
    double waited = round.path("wait_seconds").asDouble();
    seconds.put("data", waited).put("computing", seconds.path("computing").asDouble() - waited);
    report.set("round", round);
    return shared;
  }

  private static byte[] posterior(LiveReplica held, long iter, TaskPlace place, byte[] begun,
      ObjectNode report) {
    long begin = System.nanoTime();
    place.enter(iter, "summing a posterior over its rows");
    byte[] sums = held.replica().posterior(begun);
    spend(report, "computing", begin);
    return sums;
  }

  private static ObjectNode spend(ObjectNode report, String activity, long begin) {
    return report.withObject("/" + RoundsClock.SECONDS)
        .put(activity, Seconds.since(begin));
  }

  private static String train(LiveReplica held, TaskPlace place, Round round, byte[] shared) {
    Replica replica = held.replica();
    place.enter(replica::step, "training a round of " + round.steps() + " steps");
    String report = replica.round(round.iter(), round.steps(), shared);
    held.set(replica, held.rounds() + 1);
    return report;
  }

  /** Brings the replica, whatever is here of it, to the state before the wanted work. */
  private void catchUp(LiveReplica held, int shard, TaskPlace place, Iterator<byte[]> train,
      Iterator<byte[]> validation) throws IOException {
    long behind = from.rounds() + rounds.size() - (wanted == Work.HISTORY ? 0 : 1);
    boolean fits = held.rounds() >= from.rounds() && held.rounds() <= behind;
    boolean keepsHistory = cell.value().setup().keepsHistory() && wanted != Work.POSTERIOR;
    if (held.replica() == null || keepsHistory && !fits) {
      held.close();
      held.set(make(shard, place, train, validation), from.rounds());
    }
    if (!keepsHistory) held.set(held.replica(), behind);
    while (held.rounds() < behind) {
      Round missed = rounds.get((int) (held.rounds() - from.rounds()));
      train(held, place, missed, missed.shared().value().clone());
    }
  }

  private Replica make(int shard, TaskPlace place, Iterator<byte[]> train,
      Iterator<byte[]> validation) throws IOException {
    place.enter(from.iter(), "reading the shard's rows");
    RoundsCell.Setup setup = cell.value().setup();
    InstructionSet.use(setup.instructionSet());
    Replica replica = new Replica(setup.options(shard));
    try (Rows rows = read(train); Rows heldOut = read(validation)) {
      replica.feed(rows, setup.rows());
      replica.validation(heldOut);
      if (setup.keepsHistory() && !from.checkpoint().isEmpty()) {
        place.enter(from.iter(), "reading " + from.checkpoint());
        var store = new CheckpointStore(setup.checkpoints(), setup.hadoop().value());
        replica.restore(store.load(store.read(from.checkpoint())).state().bytes());
      }
      return replica;
    } catch (RuntimeException | IOException | Error e) {
      replica.close();
      throw e;
    }
  }

  private Rows read(Iterator<byte[]> chunks) {
    Rows rows = RowRoom.open(cell.value().setup().schema());
    try {
      while (chunks.hasNext()) RoundsRows.append(chunks.next(), rows);
      return rows;
    } catch (RuntimeException | Error e) {
      rows.close();
      throw e;
    }
  }
}

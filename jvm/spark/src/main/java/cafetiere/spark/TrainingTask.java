// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.core.CafetiereException;
import cafetiere.core.CafetiereException.Code;
import cafetiere.core.Group;
import cafetiere.core.Rows;
import cafetiere.core.Trainer;
import cafetiere.spark.CheckpointStore.Checkpoint;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.SerializableConfiguration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One rank: reads its rows, meets the other ranks, trains. Nothing of it outlives the task or is
 * shared with another one: several ranks may live in one JVM, and a JVM comes back as another rank.
 */
final class TrainingTask implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final Logger LOG = LoggerFactory.getLogger(TrainingTask.class);
  private static final ObjectMapper JSON = new ObjectMapper();

  /**
   * What all tasks of one attempt share.
   *
   * @param plan the training, with this attempt's number of ranks and the run's shards
   * @param attempt number of the barrier stage within the run, from 0
   * @param generation text that no other attempt of any run has
   * @param secret known to the ranks and the driver only
   * @param checkpoints the run's folder for checkpoints
   * @param checkpointSeconds from one to the next, 0 where steps are counted instead
   * @param resume name of the checkpoint to go on from, "" to begin
   * @param instructionSet what the checkpoint was computed with, "" to begin
   * @param hadoop how Hadoop's file systems are reached
   * @param metrics how the driver is reached
   */
  record Setup(TrainingPlan plan, int attempt, String generation, String secret,
      String checkpoints, long checkpointSeconds, String resume, String instructionSet,
      SerializableConfiguration hadoop, MetricsRoute.Address metrics) implements Serializable {

    /** Reads a partition into native memory. */
    Rows read(Iterator<InternalRow> from) {
      Rows rows = new Rows(plan.schema().toJson().toString());
      try {
        RowEncoder.feed(plan.schema(), from, rows);
        return rows;
      } catch (Throwable e) {
        rows.close();
        throw e;
      }
    }

    /** Gives a trainer what the attempt begins with. */
    void restore(Trainer trainer) throws IOException {
      if (!resume.isEmpty()) {
        Checkpoint checkpoint = new CheckpointStore(checkpoints, hadoop.value()).read(resume);
        trainer.restore(checkpoint.model(), checkpoint.state());
      } else if (plan.model() != null) {
        trainer.restore(plan.model(), plan.state());
      }
    }

    /**
     * The same for a member of survivors, which may come back when the checkpoint that the attempt
     * began with is gone. Whatever it begins with, the group gives it what it has reached.
     */
    void restoreNewest(Trainer trainer) throws IOException {
      Optional<Checkpoint> newest = new CheckpointStore(checkpoints, hadoop.value()).newest();
      if (newest.isPresent()) {
        trainer.restore(newest.get().model(), newest.get().state());
      } else {
        restore(trainer);
      }
    }
  }

  private final Setup setup;

  TrainingTask(Setup setup) {
    this.setup = setup;
  }

  /** Trains on {@code train}; {@code validation} is null where there is nothing to test on. */
  TaskOutcome run(Iterator<InternalRow> train, Iterator<InternalRow> validation) {
    BarrierTaskContext context = BarrierTaskContext.get();
    int rank = context.partitionId();
    String executor = SparkEnv.get().executorId();
    String route = "";
    List<RunEvent> events = List.of();
    String result = "";
    Code code = Code.OK;
    String message = "";
    try (Rank0 first = rank == 0 ? new Rank0(setup, Integer.toString(setup.attempt())) : null) {
      try {
        result = train(context, first, train, validation);
      } catch (CafetiereException e) {
        code = e.code();
        message = e.getMessage();
      }
      if (first != null) {
        route = first.route();
        events = first.lastEvents();
      }
    } catch (IOException | UncheckedIOException e) {
      code = Code.IO;
      message = e.getMessage();
    }
    return new TaskOutcome(rank, executor, code, message, result, route, events);
  }

  private String train(BarrierTaskContext context, Rank0 first, Iterator<InternalRow> train,
      Iterator<InternalRow> validation) throws IOException {
    int rank = context.partitionId();
    TrainingPlan plan = setup.plan();
    try (Rows rows = setup.read(train);
        Rows testRows = validation == null ? null : setup.read(validation);
        Meeting met = meet(context, rows.count());
        Trainer trainer = new Trainer(plan.ofRows(met.rows()).trainerOptions(rank), first);
        TaskWatch watch = new TaskWatch(context, () -> cancel(trainer, met.group()))) {
      setup.restore(trainer);
      if (first != null) first.storeByTime(trainer);
      if (testRows != null) trainer.validation(testRows);
      if (met.group() == null) {
        trainer.run(rows);
      } else {
        trainer.run(met.group(), rows);
      }
      if (first == null) return "";
      return first.finish(trainer, rank, SparkEnv.get().executorId()).result();
    }
  }

  /** The ranks together, null for one that is alone, and the rows of all. */
  private record Meeting(Group group, long rows) implements AutoCloseable {
    @Override
    public void close() {
      if (group != null) group.close();
    }
  }

  /**
   * The one rendezvous of an attempt; Spark takes a second for it. The ranks also agree on an
   * instruction set there, before any code is generated, and tell how many rows each has.
   */
  private Meeting meet(BarrierTaskContext context, long ownRows) throws IOException {
    if (setup.plan().workers() == 1) {
      agree(List.of(InstructionSet.here()));
      return new Meeting(null, ownRows);
    }
    Group group = new Group(groupOptions(context));
    try (TaskWatch watch = new TaskWatch(context, group::cancel)) {
      ObjectNode note = JSON.createObjectNode();
      note.put("address", group.address()).put("isa", InstructionSet.here());
      note.put("rows", ownRows);
      long rows = 0;
      ArrayNode addresses = JSON.createArrayNode();
      List<String> sets = new ArrayList<>();
      for (String text : context.allGather(note.toString())) {
        JsonNode peer = JSON.readTree(text);
        addresses.add(peer.path("address").asText());
        sets.add(peer.path("isa").asText());
        rows += peer.path("rows").asLong();
      }
      agree(sets);
      group.connect(addresses.toString());
      return new Meeting(group, rows);
    } catch (Throwable e) {
      group.close();
      throw e;
    }
  }

  /** Takes the lowest set of all ranks, and of the attempt that left the checkpoint. */
  private void agree(List<String> sets) {
    String before = setup.instructionSet();
    String agreed = InstructionSet.lowest(sets);
    if (!before.isEmpty()) agreed = InstructionSet.lowest(List.of(agreed, before));
    if (!before.isEmpty() && !agreed.equals(before)) {
      LOG.warn("The run began with {} and goes on with {}: the weights may differ in their last"
          + " bits from those of an undisturbed run", before, agreed);
    }
    InstructionSet.use(agreed);
  }

  private String groupOptions(BarrierTaskContext context) throws IOException {
    int rank = context.partitionId();
    List<String> hosts = Arrays.stream(context.getTaskInfos())
        .map(task -> task.address().replaceFirst(":\\d+$", "")).toList();
    boolean alone = hosts.stream().distinct().count() == 1;
    String bind = PeerAddress.of(hosts.get(rank), alone, setup.metrics().driver());
    PortRange ports = PortRange.of(SparkEnv.get().conf(), PortRange.RANKS);
    return setup.plan().groupOptions(
        rank, setup.plan().workers(), bind, ports, setup.secret(), setup.generation());
  }

  private static void cancel(Trainer trainer, Group group) {
    trainer.cancel();
    if (group != null) group.cancel();
  }
}

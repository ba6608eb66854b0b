// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.barrier;

import cafetiere.core.CafetiereException;
import cafetiere.core.CafetiereException.Code;
import cafetiere.core.Group;
import cafetiere.core.Trainer;
import cafetiere.spark.cluster.InstructionSet;
import cafetiere.spark.cluster.PeerAddress;
import cafetiere.spark.cluster.PortRange;
import cafetiere.spark.cost.AccountBook;
import cafetiere.spark.events.RunEvent;
import cafetiere.spark.internal.BarrierGather;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.run.LeaderDuties;
import cafetiere.spark.run.RankWork;
import cafetiere.spark.run.TaskOutcome;
import cafetiere.spark.run.TaskSetup;
import cafetiere.spark.run.TaskSetup.Partition;
import cafetiere.spark.run.TaskWatch;
import cafetiere.spark.stall.StallWatch;
import cafetiere.spark.util.TaskFolder;
import cafetiere.spark.util.Unchecked;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One rank: reads its rows, meets the other ranks, trains. Nothing of it outlives the task or is
 * shared with another one: several ranks may live in one JVM, and a JVM comes back as another rank.
 */
final class TrainingTask extends RankWork {
  private static final long serialVersionUID = 1L;
  private static final Logger LOG = LoggerFactory.getLogger(TrainingTask.class);
  private static final ObjectMapper JSON = new ObjectMapper();

  private final TaskSetup setup;

  TrainingTask(TaskSetup setup) {
    this.setup = setup;
  }

  @Override
  public TaskOutcome run(Iterator<InternalRow> train, Iterator<InternalRow> validation) {
    long begin = System.nanoTime();
    BarrierTaskContext context = SparkInternals.barrierTask();
    int rank = context.partitionId();
    String executor = SparkInternals.executorId();
    String route = "";
    List<RunEvent> events = List.of();
    Done done = new Done("", "{}");
    Code code = Code.OK;
    String message = "";
    try (LeaderDuties first = rank != 0 ? null
        : new LeaderDuties(setup, Integer.toString(setup.attempt()))) {
      try {
        done = train(context, first, train, validation);
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
    return new TaskOutcome(rank, executor, code, message, done.result(), route, events,
        AccountBook.task(begin, done.seconds()));
  }

  /** The run's summary, from rank 0, and what the rank's time went to. */
  private record Done(String result, String seconds) {}

  private Done train(BarrierTaskContext context, LeaderDuties first, Iterator<InternalRow> train,
      Iterator<InternalRow> validation) throws IOException {
    int rank = context.partitionId();
    TrainingPlan plan = setup.plan();
    try (TaskFolder folder = setup.folder();
        Partition rows = setup.read(train);
        Partition testRows = setup.read(validation);
        Meeting met = meet(context, rows.rows().count(), rows.skipped() + testRows.skipped());
        Trainer trainer = new Trainer(
            setup.trainerOptions(plan.ofRows(met.rows()), rank, folder), first);
        TaskWatch watch = new TaskWatch(context, () -> cancel(trainer, met.group()));
        StallWatch stall = setup.watch(rank, trainer)) {
      setup.restore(trainer);
      if (first != null) first.storeByTime(trainer);
      if (testRows.rows() != null) trainer.validation(testRows.rows());
      if (met.group() == null) {
        trainer.run(rows.rows());
      } else {
        trainer.run(met.group(), rows.rows());
      }
      String result = first == null ? ""
          : first.finish(trainer, met.skipped(), rank, SparkInternals.executorId(), folder).result();
      return new Done(result, trainer.seconds());
    }
  }

  /** The ranks together, null for one that is alone, and the rows of all, and those left out. */
  private record Meeting(Group group, long rows, long skipped) implements AutoCloseable {
    @Override
    public void close() {
      if (group != null) group.close();
    }
  }

  /**
   * The one rendezvous of an attempt. The ranks also agree on an instruction set there, before any
   * code is generated, and tell how many rows each has.
   */
  private Meeting meet(BarrierTaskContext context, long ownRows, long ownSkipped) throws IOException {
    if (setup.plan().workers() == 1) {
      agree(List.of(InstructionSet.here()));
      return new Meeting(null, ownRows, ownSkipped);
    }
    Group group = new Group(groupOptions(context));
    try (TaskWatch watch = new TaskWatch(context, group::cancel)) {
      ObjectNode note = JSON.createObjectNode();
      note.put("address", group.address()).put("isa", InstructionSet.here());
      note.put("rows", ownRows).put("skipped", ownSkipped);
      long rows = 0;
      long skipped = 0;
      ArrayNode addresses = JSON.createArrayNode();
      List<String> sets = new ArrayList<>();
      for (String text : BarrierGather.texts(context, note.toString())) {
        JsonNode peer = JSON.readTree(text);
        addresses.add(peer.path("address").asText());
        sets.add(peer.path("isa").asText());
        rows += peer.path("rows").asLong();
        skipped += peer.path("skipped").asLong();
      }
      agree(sets);
      group.connect(addresses.toString());
      return new Meeting(group, rows, skipped);
    } catch (Throwable e) {
      group.close();
      throw Unchecked.rethrow(e);
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
    PortRange ports = PortRange.of(SparkInternals.executorConf(), PortRange.RANKS);
    return setup.plan().groupOptions(
        rank, setup.plan().workers(), bind, ports, setup.secret(), setup.generation());
  }

  private static void cancel(Trainer trainer, Group group) {
    trainer.cancel();
    if (group != null) group.cancel();
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.survivors;

import cafetiere.core.CafetiereException;
import cafetiere.core.CafetiereException.Code;
import cafetiere.core.Group;
import cafetiere.core.Rows;
import cafetiere.core.Trainer;
import cafetiere.spark.cluster.PeerAddress;
import cafetiere.spark.cluster.PortRange;
import cafetiere.spark.cost.AccountBook;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.line.LineServer;
import cafetiere.spark.run.LeaderDuties;
import cafetiere.spark.run.RankWork;
import cafetiere.spark.run.TaskOutcome;
import cafetiere.spark.run.TaskSetup;
import cafetiere.spark.run.TaskSetup.Partition;
import cafetiere.spark.run.TaskWatch;
import cafetiere.spark.survivors.MembershipMessage.Kind;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.TaskFolder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One member of a training that outlives the loss of others: it keeps the rows of its partition and
 * runs in one view after another, until the service says that all have come to the end.
 */
final class SurvivorTask extends RankWork {
  private static final long serialVersionUID = 1L;
  private static final Logger LOG = LoggerFactory.getLogger(SurvivorTask.class);

  private final TaskSetup setup;
  private final LineServer.Address service;

  SurvivorTask(TaskSetup setup, LineServer.Address service) {
    this.setup = setup;
    this.service = service;
  }

  /**
   * What the user has to change, and that a checkpoint found no room, comes back as an outcome; what
   * another attempt of this task may not meet is thrown, so that Spark makes one.
   */
  @Override
  public TaskOutcome run(Iterator<InternalRow> train, Iterator<InternalRow> validation)
      throws IOException, InterruptedException {
    long begin = System.nanoTime();
    TaskContext context = TaskContext.get();
    int partition = context.partitionId();
    String executor = SparkInternals.executorId();
    try (TaskFolder folder = setup.folder();
        LeaderDuties duties = new LeaderDuties(setup, setup.attempt() + "-" + partition);
        MemberClient client = new MemberClient(service, partition);
        Partition rows = setup.read(train);
        Partition testRows = setup.read(validation);
        Trainer trainer = new Trainer(
            setup.trainerOptions(setup.plan(), partition, folder), duties);
        Run run = new Run(begin, partition, client, trainer, rows.rows(), duties, folder);
        TaskWatch watch = new TaskWatch(context, run::cancel)) {
      setup.restoreNewest(trainer);
      duties.storeByTime(trainer);
      if (testRows.rows() != null) trainer.validation(testRows.rows());
      client.count(() -> used(trainer));
      client.send(MembershipMessage.ready(
          rows.rows().count(), rows.skipped() + testRows.skipped()));
      return run.toTheEnd();
    } catch (CafetiereException e) {
      if (e.isRetryable()) throw e;
      return failure(partition, executor, e.code(), e.getMessage());
    } catch (UncheckedIOException e) {
      // A checkpoint could not be stored: whoever is the first after this one would find the same.
      return failure(partition, executor, Code.IO, e.getMessage());
    }
  }

  private static Map<Long, Long> used(Trainer trainer) {
    Map<Long, Long> rows = new TreeMap<>();
    Json.parse(trainer.rows()).fields().forEachRemaining(
        epoch -> rows.put(Long.valueOf(epoch.getKey()), epoch.getValue().asLong()));
    return rows;
  }

  private static TaskOutcome failure(int partition, String executor, Code code, String message) {
    return TaskOutcome.failed(partition, executor, code, message);
  }

  /** The member's way through the views. */
  private final class Run implements AutoCloseable {
    private final long begin;
    private final int partition;
    private final MemberClient client;
    private final Trainer trainer;
    private final Rows rows;
    private final LeaderDuties duties;
    private final TaskFolder folder;
    private Group group;
    private boolean isFed;
    private TaskOutcome stored;

    Run(long begin, int partition, MemberClient client, Trainer trainer, Rows rows,
        LeaderDuties duties, TaskFolder folder) {
      this.begin = begin;
      this.partition = partition;
      this.client = client;
      this.trainer = trainer;
      this.rows = rows;
      this.duties = duties;
      this.folder = folder;
    }

    /** The outcome, with the summary if this member has stored the result. */
    TaskOutcome toTheEnd() throws IOException, InterruptedException {
      String executor = SparkInternals.executorId();
      while (true) {
        MembershipMessage order = client.next();
        switch (order.kind()) {
          case PROPOSE -> open(order);
          case COMMIT -> train(order);
          case STORE -> {
            stored = duties.finish(trainer, 0, partition, executor, folder);
            client.send(MembershipMessage.of(Kind.STORED));
          }
          case END -> {
            Map<String, Double> seconds = AccountBook.task(begin, trainer.seconds());
            return stored != null ? stored.with(seconds) : new TaskOutcome(partition, executor,
                Code.OK, "", "", duties.route(), duties.lastEvents(), seconds);
          }
          default -> throw new IOException("the driver sent " + order.kind());
        }
      }
    }

    /** From another thread: the task is to be killed. */
    void cancel() {
      trainer.cancel();
      client.close();
    }

    @Override
    public void close() {
      if (group != null) group.close();
    }

    private void open(MembershipMessage view) throws IOException {
      close();
      String host = SparkInternals.executorHost();
      String bind = PeerAddress.of(host, false, service.driver());
      PortRange ports = PortRange.of(SparkInternals.executorConf(), PortRange.RANKS);
      group = new Group(setup.plan().groupOptions(view.rank(), view.size(), bind, ports,
          setup.secret(), setup.generation() + "/" + view.generation()));
      duties.startView(view.generation(), view.rank() == 0);
      client.agree(view.generation(), group);
    }

    /** A lost peer ends the run, not the task. */
    private void train(MembershipMessage view) {
      try {
        group.connect(Json.array(view.addresses()).toString());
        if (isFed) {
          trainer.resume(group);
        } else {
          isFed = true;
          trainer.run(group, rows);
        }
        client.ranTo(Kind.DONE, "");
      } catch (CafetiereException e) {
        if (!e.code().isOfPeer()) throw e;
        LOG.info("The run in view {} was broken off: {}", view.generation(), e.getMessage());
        client.ranTo(Kind.BROKEN, e.getMessage());
      }
    }
  }
}

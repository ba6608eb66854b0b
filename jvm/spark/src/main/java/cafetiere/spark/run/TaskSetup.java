// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import cafetiere.core.CafetiereException;
import cafetiere.core.Rows;
import cafetiere.core.Trainer;
import cafetiere.spark.events.MetricsRoute;
import cafetiere.spark.feed.RowEncoder;
import cafetiere.spark.feed.RowRoom;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.stall.StallWatch;
import cafetiere.spark.store.CheckpointStore;
import cafetiere.spark.store.CheckpointStore.Fetched;
import cafetiere.spark.store.SnapshotFiles;
import cafetiere.spark.util.ModelPart;
import cafetiere.spark.util.TaskFolder;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.Optional;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.SerializableConfiguration;

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
 * @param snapshots the files that the solver wants in mid-run
 * @param isLarge whether the trained model is handed over as files
 * @param stallSeconds after which a rank that stands still is told of; 0 never
 * @param hadoop how Hadoop's file systems are reached
 * @param metrics how the driver is reached
 */
public record TaskSetup(TrainingPlan plan, int attempt, String generation, String secret,
    String checkpoints, long checkpointSeconds, String resume, String instructionSet,
    SnapshotFiles snapshots, boolean isLarge, long stallSeconds, SerializableConfiguration hadoop,
    MetricsRoute.Address metrics) implements Serializable {

  /**
   * A partition in native memory.
   *
   * @param skipped bad rows that are not in it
   */
  public record Partition(Rows rows, long skipped) implements AutoCloseable {
    @Override
    public void close() {
      if (rows != null) rows.close();
    }
  }

  /** Watches a rank that the calling thread is about to train. */
  public StallWatch watch(int rank, Trainer trainer) {
    return StallWatch.of(rank, stallSeconds, trainer, metrics, attempt);
  }

  /** Reads a partition into native memory; null is none. */
  public Partition read(Iterator<InternalRow> from) {
    if (from == null) return new Partition(null, 0);
    Rows rows = RowRoom.open(plan.schema());
    try {
      return new Partition(rows, RowEncoder.feed(plan.schema(), from, rows));
    } catch (Throwable e) {
      rows.close();
      throw e;
    }
  }

  /** A folder of this machine for what a task leaves or takes up as files. */
  public TaskFolder folder() throws IOException {
    return new TaskFolder(SparkInternals.localFolder());
  }

  /** The options of a rank whose files lie in {@code folder}. */
  public String trainerOptions(TrainingPlan of, int rank, TaskFolder folder) {
    return of.trainerOptions(rank, folder.path(), snapshots.areWritten());
  }

  /** The store of the run's checkpoints. */
  public CheckpointStore store() throws IOException {
    return new CheckpointStore(checkpoints, hadoop.value());
  }

  /** Gives a trainer what the attempt begins with. */
  public void restore(Trainer trainer) throws IOException {
    try (TaskFolder folder = folder()) {
      if (!resume.isEmpty()) {
        CheckpointStore store = store();
        Fetched here = store.fetch(store.read(resume), folder.path());
        trainer.restore(here.model(), here.state());
      } else if (plan.model() != null) {
        restoreGiven(trainer, folder);
      }
    }
  }

  /** Begins with the files of the params weights and snapshot, which errors name by these words. */
  private void restoreGiven(Trainer trainer, TaskFolder folder) throws IOException {
    Path model = fetch(plan.model(), folder, "weights");
    Path state = fetch(plan.state(), folder, "snapshot");
    try {
      trainer.restore(model, state);
    } catch (CafetiereException e) {
      throw new CafetiereException(e.code(), e.getMessage().replace(folder.path() + "/", ""), e);
    }
  }

  private Path fetch(ModelPart part, TaskFolder folder, String name) throws IOException {
    return part == null ? null : part.fetch(folder.path().resolve(name), hadoop.value());
  }

  /**
   * The same for a member of survivors, which may come back when the checkpoint that the attempt
   * began with is gone. Whatever it begins with, the group gives it what it has reached.
   */
  public void restoreNewest(Trainer trainer) throws IOException {
    try (TaskFolder folder = folder()) {
      Optional<Fetched> newest = store().fetchNewest(folder.path());
      if (newest.isPresent()) {
        trainer.restore(newest.get().model(), newest.get().state());
        return;
      }
    }
    restore(trainer);
  }
}

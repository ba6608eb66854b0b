// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import cafetiere.core.Rows;
import cafetiere.core.Trainer;
import cafetiere.spark.events.MetricsRoute;
import cafetiere.spark.feed.RowEncoder;
import cafetiere.spark.feed.RowRoom;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.store.CheckpointStore;
import cafetiere.spark.store.CheckpointStore.Checkpoint;
import java.io.IOException;
import java.io.Serializable;
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
 * @param hadoop how Hadoop's file systems are reached
 * @param metrics how the driver is reached
 */
public record TaskSetup(TrainingPlan plan, int attempt, String generation, String secret,
    String checkpoints, long checkpointSeconds, String resume, String instructionSet,
    SerializableConfiguration hadoop, MetricsRoute.Address metrics) implements Serializable {

  /** Reads a partition into native memory. */
  public Rows read(Iterator<InternalRow> from) {
    Rows rows = RowRoom.open(plan.schema());
    try {
      RowEncoder.feed(plan.schema(), from, rows);
      return rows;
    } catch (Throwable e) {
      rows.close();
      throw e;
    }
  }

  /** Gives a trainer what the attempt begins with. */
  public void restore(Trainer trainer) throws IOException {
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
  public void restoreNewest(Trainer trainer) throws IOException {
    Optional<Checkpoint> newest = new CheckpointStore(checkpoints, hadoop.value()).newest();
    if (newest.isPresent()) {
      trainer.restore(newest.get().model(), newest.get().state());
    } else {
      restore(trainer);
    }
  }
}

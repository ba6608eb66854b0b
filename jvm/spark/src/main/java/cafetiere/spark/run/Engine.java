// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.preflight.Preflight;
import java.io.IOException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/** A way to train on a Spark cluster. {@link Run#of} does so from the first check to the result. */
public interface Engine extends AutoCloseable {
  /** Its name in the summary. */
  String name();

  /** Throws a {@code PreflightException} with all that the user has to change before a start. */
  default void check(TrainingPlan plan, Dataset<Row> train) {
    Preflight.check(train.sparkSession(), plan, train);
  }

  /** Frees what it has made. */
  @Override
  default void close() {}

  /** Trains to the end. What it throws ends the run, whose checkpoints are kept. */
  TrainingResult run(Run run) throws IOException;
}

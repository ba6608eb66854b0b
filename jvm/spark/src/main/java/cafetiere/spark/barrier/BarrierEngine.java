// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.barrier;

import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.preflight.Preflight;
import cafetiere.spark.run.Attempts;
import cafetiere.spark.run.Engine;
import cafetiere.spark.run.Run;
import cafetiere.spark.run.TrainingResult;
import java.io.IOException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/** One barrier stage from the first step to the last, and another one when a rank is lost. */
public final class BarrierEngine implements Engine {
  @Override
  public String name() {
    return "barrier";
  }

  @Override
  public void check(TrainingPlan plan, Dataset<Row> train) {
    Preflight.check(train.sparkSession(), plan, train);
  }

  @Override
  public TrainingResult run(Run run) throws IOException {
    return new Attempts(run, (tag, setup, rows) ->
        new BarrierStage(run.sc(), tag, rows, new TrainingTask(setup))).train();
  }
}

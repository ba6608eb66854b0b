// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.barrier;

import cafetiere.spark.run.Attempts;
import cafetiere.spark.run.Engine;
import cafetiere.spark.run.Run;
import cafetiere.spark.run.TrainingResult;
import java.io.IOException;

/** One barrier stage from the first step to the last, and another one when a rank is lost. */
public final class BarrierEngine implements Engine {
  /** An engine for one run. */
  public static Engine create() {
    return new BarrierEngine();
  }

  @Override
  public String name() {
    return "barrier";
  }

  @Override
  public TrainingResult run(Run run) throws IOException {
    return new Attempts(run, (tag, setup, rows) ->
        new BarrierStage(run.sc(), tag, rows, new TrainingTask(setup))).train();
  }
}

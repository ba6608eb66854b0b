// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.survivors;

import cafetiere.spark.run.Attempts;
import cafetiere.spark.run.Engine;
import cafetiere.spark.run.Run;
import cafetiere.spark.run.TrainingResult;
import java.io.IOException;

/** Members that go on when others are lost, and take them in when they come back. */
public final class SurvivorEngine implements Engine {
  /** An engine for one run. */
  public static Engine create() {
    return new SurvivorEngine();
  }

  @Override
  public String name() {
    return "survivors";
  }

  @Override
  public TrainingResult run(Run run) throws IOException {
    return new Attempts(run, (tag, setup, rows) ->
        new SurvivorStage(run.sc(), tag, setup, rows, run.events()::step, run::warn)).train();
  }
}

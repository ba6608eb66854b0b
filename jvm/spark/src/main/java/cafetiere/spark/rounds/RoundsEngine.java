// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.rounds;

import cafetiere.core.Rounds;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.preflight.Preflight;
import cafetiere.spark.preflight.RoundsRoom;
import cafetiere.spark.run.Engine;
import cafetiere.spark.run.Run;
import cafetiere.spark.run.TrainingResult;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/** Ordinary Spark jobs, one a round. */
public final class RoundsEngine implements Engine {
  /** What the param engine calls it. */
  public static final String NAME = "rounds";

  private Rounds rounds;

  /** An engine for one run. */
  public static Engine create() {
    return new RoundsEngine();
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public void check(TrainingPlan plan, Dataset<Row> train) {
    SparkContext sc = train.sparkSession().sparkContext();
    rounds = RoundsJob.open(plan);
    Preflight.checkRounds(sc, sc.getConf(), plan, train, room(plan));
  }

  @Override
  public TrainingResult run(Run run) throws IOException {
    try (RoundsJob job = new RoundsJob(run, rounds)) {
      return job.train();
    }
  }

  @Override
  public void close() {
    if (rounds != null) rounds.close();
  }

  private RoundsRoom room(TrainingPlan plan) {
    JsonNode description = Json.parse(rounds.describe());
    int outcomes = RoundsStage.outcomes(
        RoundsJob.shards(plan), description.path("keeps_history").asBoolean());
    return RoundsRoom.of(outcomes, description.path("floats").asLong());
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.rounds;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** What each shard's time went to since the last event. */
final class ShardTimes {
  private double[] computing = new double[0];
  private double[] waiting = new double[0];
  private long steps;

  /** A round of so many steps begins to be counted. */
  void round(int shards, int steps) {
    if (computing.length != shards) {
      computing = new double[shards];
      waiting = new double[shards];
    }
    this.steps += steps;
  }

  /** Takes what a shard says of that round. */
  void add(int shard, JsonNode round) {
    computing[shard] += round.path("compute_seconds").asDouble();
    waiting[shard] += round.path("wait_seconds").asDouble();
  }

  double computing() {
    return sum(computing);
  }

  double waiting() {
    return sum(waiting);
  }

  /**
   * Tells it as a progress event does, and forgets it. Shards that take turns on fewer executors do
   * not wait for one another.
   */
  void tell(ObjectNode event, double elapsed, int executors) {
    ObjectNode ranks = event.putObject("ranks");
    ArrayNode stepMillis = ranks.putArray("step_ms");
    ArrayNode waitData = ranks.putArray("wait_data");
    ArrayNode waitComm = ranks.putArray("wait_comm");
    for (int shard = 0; shard < computing.length; shard++) {
      double busy = computing[shard] + waiting[shard];
      stepMillis.add(busy / Math.max(1, steps) * 1e3);
      waitData.add(waiting[shard] / elapsed);
      waitComm.add(executors < computing.length ? 0 : Math.max(0, 1 - busy / elapsed));
    }
    computing = new double[computing.length];
    waiting = new double[waiting.length];
    steps = 0;
  }

  private static double sum(double[] values) {
    double sum = 0;
    for (double value : values) sum += value;
    return sum;
  }
}

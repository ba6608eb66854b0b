// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import cafetiere.core.CafetiereException.Code;
import cafetiere.spark.events.RunEvent;
import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What a task of a training hands back. Errors of the engine come back in this way and are
 * not thrown: Spark would repeat what cannot succeed, and would keep the words of one rank only. It
 * travels as text, since a user may have chosen any serializer for results.
 *
 * @param rank the task's rank
 * @param executor Spark's id of its executor
 * @param code OK, or the kind of error
 * @param message what went wrong, "" for OK
 * @param result the engine's summary of the run, from the rank that stored the model; else ""
 * @param route how the rank's events travelled; "" where it had none to send
 * @param events the newest events, of rank 0
 * @param seconds what its time went to; none where it failed
 */
public record TaskOutcome(int rank, String executor, Code code, String message, String result,
    String route, List<RunEvent> events, Map<String, Double> seconds) {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Of a rank that could not do its part. */
  public static TaskOutcome failed(int rank, String executor, Code code, String message) {
    return new TaskOutcome(rank, executor, code, message, "", "", List.of(), Map.of());
  }

  /** The same, at the end of its task. */
  public TaskOutcome with(Map<String, Double> seconds) {
    return new TaskOutcome(rank, executor, code, message, result, route, events, seconds);
  }

  /** Whether the rank did its part to the end. */
  @JsonIgnore
  public boolean isGood() {
    return code == Code.OK;
  }

  /** Whether the user has to change something: another attempt would fail in the same way. */
  @JsonIgnore
  public boolean isPermanent() {
    return !isGood() && !code.mayPass();
  }

  /**
   * The failure to tell of: one with a cause of its own before those of ranks that lost a peer by it,
   * in whichever order they came in.
   */
  public static Optional<TaskOutcome> cause(List<TaskOutcome> outcomes) {
    return outcomes.stream().filter(o -> !o.isGood())
        .min(Comparator.comparing(o -> o.code.isOfPeer()));
  }

  String toJson() {
    try {
      return JSON.writeValueAsString(this);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("an outcome is plain data", e);
    }
  }

  public static TaskOutcome fromJson(String json) {
    try {
      return JSON.readValue(json, TaskOutcome.class);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not an outcome of a training task: " + json, e);
    }
  }
}

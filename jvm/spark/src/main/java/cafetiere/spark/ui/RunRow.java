// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ui;

import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.util.kvstore.KVIndex;

/** A run in the store of Spark's UI, which makes it by its fields. */
public final class RunRow {
  static final String RUNNING = "running";
  static final String ENDED = "ended";
  static final String FAILED = "failed";
  static final String CANCELLED = "cancelled";

  @KVIndex
  public String run;
  public String title;
  /** The uid of the estimator, "" where it is not known. */
  public String owner;
  public String state;
  public long started;
  public long heard;
  /** The newest event of progress, of steps or of keys, as JSON; "" before the first. */
  public String progress = "";
  /** The newest event of a test, as JSON; "" before the first. */
  public String test = "";
  public String result;
  public String failure;
  /** The first progress of this attempt. */
  public long firstStep;
  public double firstSeconds = Double.MAX_VALUE;

  /** For the store. */
  public RunRow() {}

  /** What is known after an update; {@code before} is null at the first one. */
  RunRow(RunUpdate update, RunRow before) {
    this.run = update.run();
    this.title = update.title();
    this.heard = update.time();
    this.started = before == null ? update.time() : before.started;
    this.result = update.result();
    this.failure = update.failure();
    this.owner = update.owner() == null ? "" : update.owner();
    this.state = update.state() == null ? stateOfOld() : update.state();
    if (before != null) {
      progress = before.progress;
      test = before.test;
      firstStep = before.firstStep;
      firstSeconds = before.firstSeconds;
    }
    for (String event : update.events().split("\n")) {
      if (!event.isEmpty()) hear(event, Json.parse(event));
    }
  }

  private String stateOfOld() {
    if (!failure.isEmpty()) return FAILED;
    return result.isEmpty() ? RUNNING : ENDED;
  }

  private void hear(String text, JsonNode event) {
    String kind = event.path("event").asText();
    if (kind.equals("test")) test = text;
    if (kind.equals("progress") || kind.equals("keys")) progress = text;
    if (!kind.equals("progress")) return;
    double seconds = event.path("seconds").asDouble();
    if (seconds < firstSeconds) {  // another attempt begins to count again
      firstSeconds = seconds;
      firstStep = event.path("step").asLong();
    }
  }

  /** The newest progress, without fields before the first. */
  JsonNode lastProgress() {
    return progress.isEmpty() ? Json.object() : Json.parse(progress);
  }

  /** Seconds until the last step at the pace so far; null where that is not known. */
  Double secondsLeft() {
    if (!isRunning()) return null;
    JsonNode last = lastProgress();
    if (last.has("tasks")) return secondsLeftOfKeys(last);
    long step = last.path("step").asLong();
    if (step <= firstStep) return null;
    double pace = (last.path("seconds").asDouble() - firstSeconds) / (step - firstStep);
    return pace * (last.path("max_iter").asLong() - step);
  }

  private static Double secondsLeftOfKeys(JsonNode last) {
    long tasks = last.path("tasks").asLong();
    if (tasks == 0) return null;
    return last.path("seconds").asDouble() / tasks * (last.path("of").asLong() - tasks);
  }

  /** Whether it goes on, as far as is known. */
  boolean isRunning() {
    return state.equals(RUNNING);
  }
}

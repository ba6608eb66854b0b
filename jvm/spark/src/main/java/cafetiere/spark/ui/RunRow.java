// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ui;

import cafetiere.spark.util.Json;
import org.apache.spark.util.kvstore.KVIndex;

/** A run in the store of Spark's UI, which makes it by its fields. */
public final class RunRow {
  @KVIndex
  public String run;
  public String title;
  public long started;
  public long heard;
  /** The newest event of this kind, as JSON; "" before the first. */
  public String progress = "";
  /** The newest event of this kind, as JSON; "" before the first. */
  public String test = "";
  public String result;
  public String failure;

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
    if (before != null) {
      progress = before.progress;
      test = before.test;
    }
    for (String event : update.events().split("\n")) {
      String kind = event.isEmpty() ? "" : Json.parse(event).path("event").asText();
      if (kind.equals("progress")) progress = event;
      if (kind.equals("test")) test = event;
    }
  }

  /** Whether it goes on, as far as is known. */
  boolean isRunning() {
    return result.isEmpty() && failure.isEmpty();
  }
}

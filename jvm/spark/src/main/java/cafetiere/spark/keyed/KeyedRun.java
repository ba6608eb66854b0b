// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.keyed;

import cafetiere.spark.TrainingSummary;
import cafetiere.spark.cost.Account;
import cafetiere.spark.cost.CoreHours;
import cafetiere.spark.events.RunEvent;
import cafetiere.spark.report.RunReporter;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.Seconds;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.Row;

/** A fit of the nets of keys, as its user sees it: progress, events, summary and account. */
final class KeyedRun implements AutoCloseable {
  static final String ENGINE = "keys";

  private final long start = System.nanoTime();
  private final KeyedReport report;
  private final int slots;
  private final int tasks;
  private final KeyedTally tally;
  private final KeyedTimes times;
  private final String id = UUID.randomUUID().toString().substring(0, 8);
  private final RunReporter reporter;
  private long begun = start;
  private long ended; // tasks

  /** {@code slots} tasks train at a time, {@code tasks} in all. */
  KeyedRun(SparkContext sc, KeyedReport report, int slots, int tasks) {
    this.report = report;
    this.slots = slots;
    this.tasks = tasks;
    this.tally = KeyedTally.of(sc);
    this.reporter = new RunReporter(
        sc, id, "a net for each key", report.events(), Optional.of(report.owner()));
    this.times = new KeyedTimes(sc, this::tell);
  }

  /** Begins. */
  void begin() {
    reporter.begin(0, 0);
    begun = System.nanoTime();
  }

  /** How many tasks train, all in all. */
  int tasks() {
    return tasks;
  }

  /** Where the tasks count. */
  KeyedTally tally() {
    return tally;
  }

  /** A task has ended, one that trains or another. */
  private void tell() {
    if (tally.tasks().value() == ended) return;
    ended = tally.tasks().value();
    long keys = tally.keys().value();
    double seconds = Seconds.since(begun);
    ObjectNode event = Json.object().put("event", "keys").put("keys", keys).put("tasks", ended)
        .put("of", tasks).put("seconds", seconds).put("keys_per_s", keys / seconds);
    reporter.events().accept(new RunEvent(id, 0, ended, event.toString()));
  }

  /**
   * Ends.
   *
   * @param totals keys, nets, rows, rows of keys that have a net
   */
  KeyedNets.Told end(Row totals) {
    double training = Seconds.since(begun);
    times.close();
    long keys = totals.getLong(0);
    long nets = totals.getLong(1);
    long rows = totals.isNullAt(2) ? 0 : totals.getLong(2);
    long used = totals.isNullAt(3) ? 0 : totals.getLong(3);
    ObjectNode told = Json.object().put("engine", ENGINE).put("attempts", 1).put("ranks", slots)
        .put("executors", times.executors()).put("rows_given", used).put("rows_skipped", rows - used)
        .put("keys", nets).put("failed_keys", keys - nets).put("seconds", training)
        .put("rows_per_s", used * report.epochs() / training).put("fit_seconds", Seconds.since(start));
    ArrayNode epochs = told.putArray("rows_per_epoch");
    for (int epoch = 0; epoch < report.epochs(); epoch++) epochs.add(used);
    TrainingSummary summary = TrainingSummary.fromJson(told.toString()).with(account());
    reporter.end(summary);
    return new KeyedNets.Told(summary.toJson(), reporter.events().jsonLines());
  }

  /** Ends otherwise. */
  void fail(Throwable why) {
    reporter.fail(why);
  }

  private Account account() {
    double wall = Seconds.since(start);
    Map<String, Double> seconds = new HashMap<>();
    double computing = tally.seconds().value();
    seconds.put("computing", computing);
    seconds.put("network", times.networkSeconds());
    seconds.put("data", Math.max(0, times.taskSeconds() - computing - times.networkSeconds()));
    seconds.put("lost", times.lostSeconds());
    seconds.put("starting", slots * (times.firstStageNanos().orElse(begun) - start) / 1e9);
    double busy = seconds.values().stream().mapToDouble(Double::doubleValue).sum();
    seconds.put("idle", Math.max(0, slots * wall - busy));
    return new Account(wall, slots, report.pricePerCoreHour(), CoreHours.of(1, seconds), List.of());
  }

  @Override
  public void close() {
    times.close();
    reporter.close();
  }
}

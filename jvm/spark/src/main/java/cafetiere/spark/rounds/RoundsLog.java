// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.rounds;

import cafetiere.spark.events.RunEvent;
import cafetiere.spark.events.RunEvents;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.Seconds;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Adds up what the shards report of their rounds, and tells it as the events of a run: at the steps of
 * the solver's display; without one, and where it shows very many, by the clock.
 */
final class RoundsLog {
  private static final long EVENT_NANOS = 200_000_000L;
  /** As many as the engine tells where a group trains. */
  private static final long MOST_SHOWN = 10_000;

  private final RunEvents events;
  private final String run;
  private final long maxIter;
  private final int lossWindow;
  private final long display;
  private final long start = System.nanoTime();
  private final Map<Long, Long> rowsByEpoch = new TreeMap<>();
  private final Deque<Double> losses = new ArrayDeque<>();
  private long sequence;
  private long lastEvent = start;
  private long rowsSince;
  private ObjectNode lastProgress;  // of the last iteration, until it has been tested
  private final ShardTimes times = new ShardTimes();

  /** {@code settings}: what the engine says of the run. */
  RoundsLog(RunEvents events, String run, JsonNode settings) {
    this.events = events;
    this.run = run;
    this.maxIter = settings.path("max_iter").asLong();
    this.lossWindow = settings.path("average_loss").asInt();
    this.display = settings.path("display").asLong();
  }

  /** Takes the reports of a round of the iterations from {@code begin} on to before {@code step}. */
  void round(List<RoundsOutcome> outcomes, long begin, long step, int executors) {
    double[] sums = new double[0];
    JsonNode last = null;
    int shards = outcomes.stream().mapToInt(outcome -> outcome.shards().size()).sum();
    int number = 0;
    for (RoundsOutcome outcome : outcomes) {
      for (JsonNode shard : outcome.shards()) {
        last = shard.path("round");
        if (number == 0) {
          sums = new double[last.path("losses").size()];
          times.round(shards, sums.length);
        }
        for (int i = 0; i < sums.length; i++) sums[i] += last.path("losses").path(i).asDouble();
        last.path("rows").forEach(entry -> count(entry.path(0).asLong(), entry.path(1).asLong()));
        times.add(number++, last);
      }
    }
    for (double loss : sums) {
      losses.addLast(loss);
      if (losses.size() > lossWindow) losses.removeFirst();
    }
    long now = System.nanoTime();
    boolean isBySteps = display > 0 && maxIter / display <= MOST_SHOWN;
    boolean isShown = isBySteps ? isDisplayed(begin, step) : now - lastEvent >= EVENT_NANOS;
    if (last == null || !isShown && step < maxIter) return;
    progress(last, step, (now - lastEvent) / 1e9, Math.max(1, executors));
    lastEvent = now;
    rowsSince = 0;
  }

  /** Takes the scores of the shards' validation rows after iteration {@code step}; the means of the outputs. */
  JsonNode test(List<RoundsOutcome> outcomes, long step) {
    ObjectNode event = Json.object().put("event", "test").put("step", step);
    Map<String, Double> means = new TreeMap<>();
    long rows = 0;
    for (RoundsOutcome outcome : outcomes) {
      for (JsonNode shard : outcome.shards()) rows += shard.path("test").path("rows").asLong();
    }
    if (rows == 0) return Json.object();
    for (RoundsOutcome outcome : outcomes) {
      for (JsonNode shard : outcome.shards()) {
        JsonNode test = shard.path("test");
        double share = test.path("rows").asDouble() / rows;
        if (share > 0) event.set("net", test.path("net"));
        test.path("outputs").forEach(
            out -> means.merge(out.path(0).asText(), share * out.path(1).asDouble(), Double::sum));
      }
    }
    ObjectNode outputs = event.putObject("outputs");
    means.forEach(outputs::put);
    send(event);
    return outputs;
  }

  /** Tells the progress of the last iteration, whose scores are there now. */
  void end() {
    if (lastProgress != null) send(lastProgress);
  }

  /** Rows used in each epoch that was begun, in order. */
  ArrayNode rowsPerEpoch() {
    ArrayNode rows = Json.array();
    rowsByEpoch.values().forEach(rows::add);
    return rows;
  }

  /** Rows used in all. */
  long rows() {
    return rowsByEpoch.values().stream().mapToLong(Long::longValue).sum();
  }

  /** The mean of the last losses, as the solver's average_loss says. */
  double loss() {
    return losses.stream().mapToDouble(Double::doubleValue).average().orElse(0);
  }

  /** Seconds since the first round began. */
  double seconds() {
    return Seconds.since(start);
  }

  /** Whether an iteration from {@code begin} on to before {@code end} is a multiple of display. */
  private boolean isDisplayed(long begin, long end) {
    return (end + display - 1) / display > (begin + display - 1) / display;
  }

  private void count(long epoch, long rows) {
    rowsByEpoch.merge(epoch, rows, Long::sum);
    rowsSince += rows;
  }

  private void progress(JsonNode report, long step, double elapsed, int executors) {
    ObjectNode event = Json.object().put("event", "progress");
    event.put("step", step).put("max_iter", maxIter).put("epoch", report.path("epoch").asDouble());
    event.put("loss", loss()).put("lr", report.path("lr").asDouble());
    event.put("rows_per_s", rowsSince / elapsed).put("wait_data", share(times.waiting(), elapsed, executors));
    event.put("wait_comm", Math.max(
        0, 1 - share(times.computing() + times.waiting(), elapsed, executors)));
    event.put("seconds", seconds());
    times.tell(event, elapsed, executors);
    if (step < maxIter) {
      send(event);
    } else {
      lastProgress = event;
    }
  }

  private static double share(double seconds, double elapsed, int executors) {
    return seconds / (elapsed * executors);
  }

  private void send(ObjectNode event) {
    events.accept(new RunEvent(run, 0, ++sequence, event.toString()));
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.gauges;

import cafetiere.spark.internal.MetricsSource;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;

/** Shows what the driver hears of a run in Spark's metrics system; of several runs the newest word. */
public final class RunGauges {
  /** Fields of a progress event, and what they are called. */
  private static final Map<String, String> PROGRESS = Map.of("step", "step", "max_iter", "maxIter",
      "epoch", "epoch", "loss", "loss", "lr", "learningRate", "rows_per_s", "rowsPerSecond",
      "wait_data", "waitData", "wait_comm", "waitNetwork");

  private final MetricsSource source = MetricsSource.ofApplication();
  private long lastStep;
  private double lastSeconds;

  /** Takes an event. */
  public synchronized void show(JsonNode event) {
    switch (event.path("event").asText()) {
      case "progress" -> progress(event);
      case "test" -> event.path("outputs").fields().forEachRemaining(
          output -> source.set("test." + output.getKey(), output.getValue().asDouble()));
      case "account" -> account(event);
      default -> { }
    }
  }

  private void progress(JsonNode event) {
    PROGRESS.forEach((field, name) -> source.set(name, event.path(field).asDouble(Double.NaN)));
    long step = event.path("step").asLong();
    double seconds = event.path("seconds").asDouble();
    if (step > lastStep && seconds > lastSeconds) {
      source.set("stepsPerSecond", (step - lastStep) / (seconds - lastSeconds));
    }
    lastStep = step;
    lastSeconds = seconds;
  }

  private void account(JsonNode event) {
    source.add("fits", 1);
    source.add("rowsUsed", event.path("rows_used").asDouble());
    event.path("core_hours").fields().forEachRemaining(
        part -> source.add("coreHours." + part.getKey(), part.getValue().asDouble()));
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cost;

import com.fasterxml.jackson.annotation.JsonIgnore;
import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/**
 * What cores were used for, in core-hours.
 *
 * @param computing forward, backward, sums and updates
 * @param data waiting for rows
 * @param network waiting for other ranks, or for weights that Spark carries
 * @param testing the test net, with its waits
 * @param storing checkpoints and the model
 * @param starting before the first step: checks, the shuffle of the rows, the ranks' meeting
 * @param lost in attempts that were given up
 * @param idle after a rank's end until that of the fit, and what nobody accounts for
 */
public record CoreHours(double computing, double data, double network, double testing,
    double storing, double starting, double lost, double idle) implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final double SECONDS = 3_600;

  /** Nothing. */
  public static final CoreHours NONE = new CoreHours(0, 0, 0, 0, 0, 0, 0, 0);

  /** The sum of all. */
  @JsonIgnore
  public double total() {
    return parts().values().stream().mapToDouble(Double::doubleValue).sum();
  }

  /** The parts by their names, in this order. */
  @JsonIgnore
  public Map<String, Double> parts() {
    Map<String, Double> parts = new LinkedHashMap<>();
    parts.put("computing", computing);
    parts.put("data", data);
    parts.put("network", network);
    parts.put("testing", testing);
    parts.put("storing", storing);
    parts.put("starting", starting);
    parts.put("lost", lost);
    parts.put("idle", idle);
    return parts;
  }

  /** Of {@code cores} that went through these seconds, by the names of {@link #parts}. */
  public static CoreHours of(double cores, Map<String, Double> seconds) {
    ToDoubleFunction<String> hours = name -> seconds.getOrDefault(name, 0.0) * cores / SECONDS;
    return new CoreHours(hours.applyAsDouble("computing"), hours.applyAsDouble("data"),
        hours.applyAsDouble("network"), hours.applyAsDouble("testing"),
        hours.applyAsDouble("storing"), hours.applyAsDouble("starting"),
        hours.applyAsDouble("lost"), hours.applyAsDouble("idle"));
  }

  /** This and {@code other} together. */
  CoreHours plus(CoreHours other) {
    Map<String, Double> sum = parts();
    other.parts().forEach((name, hours) -> sum.merge(name, hours, Double::sum));
    return of(SECONDS, sum);
  }
}

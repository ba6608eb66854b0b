// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.explain;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.Serializable;
import java.util.List;
import java.util.Locale;

/**
 * What a fit would do and take. A worker is a task that trains, on {@code threads} cores.
 *
 * @param blobs of the net, with a shard's batch as their first axis
 * @param parameters numbers that are learned or kept as statistics
 * @param rows of the table to train on
 * @param workers tasks that train side by side
 * @param shards parts of the rows, which the weights depend on
 * @param threads cores of a worker
 * @param stepRows rows of a step, of all shards together
 * @param stepsPerEpoch steps that take each row once
 * @param stepFlops operations of a step of all shards, a multiply-add being two
 * @param stepBytes bytes that these read and write, each buffer whole
 * @param exchangedBytes bytes that a worker sends in an exchange
 * @param netBytes memory of a worker's nets, weights, gradients, history and the model as it is stored, as
 *     predicted
 * @param rowBytes memory of a worker's rows
 * @param time of a step
 * @param isProbed whether the time was measured on the executors; else it follows from their
 *     machines' limits
 * @param scaling other numbers of workers
 */
public record Explanation(List<Blob> blobs, long parameters, long rows, int workers, int shards,
    int threads, long stepRows, long stepsPerEpoch, double stepFlops, double stepBytes,
    double exchangedBytes, long netBytes, long rowBytes, StepTime time, boolean isProbed,
    List<Scaling> scaling) implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final ObjectMapper JSON = JsonMapper.builder()
      .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE).build();
  private static final double MIB = 1 << 20;
  private static final double LEAST_EFFICIENCY = 0.5;
  /** What the first training of an executor loads, whatever the net: the engine and classes (bench/explain). */
  private static final long LOADED_BYTES = 23L << 20;

  /** A blob and its sizes. */
  public record Blob(String name, List<Long> shape) implements Serializable {
    private static final long serialVersionUID = 1L;
  }

  /** Seconds of a step: computing, waiting for rows, waiting for other workers. */
  public record StepTime(double computing, double data, double network) implements Serializable {
    private static final long serialVersionUID = 1L;

    /** All of it. */
    @JsonProperty("total")
    public double total() {
      return computing + data + network;
    }
  }

  /**
   * What a number of workers would reach.
   *
   * @param epochSeconds an epoch's steps
   * @param efficiency rows a second, against as many workers of which none waits for another
   */
  public record Scaling(int workers, double epochSeconds, double efficiency)
      implements Serializable {
    private static final long serialVersionUID = 1L;
  }

  /** Native memory of a worker, with what an executor's first training loads. */
  @JsonProperty("worker_bytes")
  public long workerBytes() {
    return netBytes + rowBytes + LOADED_BYTES;
  }

  /** An epoch's steps. */
  @JsonProperty("epoch_seconds")
  public double epochSeconds() {
    return stepsPerEpoch * time.total();
  }

  /** The number of {@link #scaling} with the shortest epoch that is used at half or more. */
  @JsonProperty("best_workers")
  public int bestWorkers() {
    int best = 1;
    double least = Double.MAX_VALUE;
    for (Scaling one : scaling) {
      if (one.efficiency() < LEAST_EFFICIENCY || one.epochSeconds() >= least) continue;
      least = one.epochSeconds();
      best = one.workers();
    }
    return best;
  }

  /** The fields by their names in snake_case. */
  public String toJson() {
    try {
      return JSON.writeValueAsString(this);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("an explanation is plain data", e);
    }
  }

  /** Some lines for a person. */
  public String text() {
    StringBuilder text = new StringBuilder();
    for (Blob blob : blobs) line(text, "%-24s %s", blob.name(), blob.shape());
    line(text, "%,d parameters", parameters);
    line(text, "%,d rows, %,d a step, %,d steps an epoch; %d workers of %d cores, %d shards", rows,
        stepRows, stepsPerEpoch, workers, threads, shards);
    line(text, "a step: %.4g GFLOP, %.4g MiB read and written, %.4g MiB sent by a worker",
        stepFlops / 1e9, stepBytes / MIB, exchangedBytes / MIB);
    line(text, "memory of a worker: %.1f MiB, of which %.1f for rows", workerBytes() / MIB,
        rowBytes / MIB);
    line(text, "a step %s %.4g ms: computing %.4g, waiting for rows %.4g, for workers %.4g",
        isProbed ? "took" : "should take", time.total() * 1e3, time.computing() * 1e3,
        time.data() * 1e3, time.network() * 1e3);
    line(text, "an epoch: %.4g s", epochSeconds());
    for (Scaling one : scaling) {
      line(text, "  %4d workers: %.4g s an epoch, %.0f %% used%s", one.workers(),
          one.epochSeconds(), 100 * one.efficiency(),
          one.workers() == bestWorkers() ? "  <- best" : "");
    }
    return text.toString();
  }

  @Override
  public String toString() {
    return text();
  }

  private static void line(StringBuilder text, String format, Object... values) {
    text.append(String.format(Locale.ROOT, format, values)).append('\n');
  }
}

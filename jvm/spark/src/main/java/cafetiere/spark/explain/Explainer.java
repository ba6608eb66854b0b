// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.explain;

import cafetiere.core.Engine;
import cafetiere.spark.explain.Explanation.Blob;
import cafetiere.spark.explain.Explanation.Scaling;
import cafetiere.spark.explain.Explanation.StepTime;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.feed.RowEncoder;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.TrainingPlan;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.SparkExecutorInfo;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;

/** Explains a training before it is done. */
public final class Explainer {
  private static final int MOST_WORKERS = 64;
  /** Assumed where workers were not timed together: 10 Gbit/s and what a message takes. */
  private static final double LINK_BYTES = 10e9 / 8;
  /** The same within a machine, whose memory each byte passes three times. */
  private static final double HOST_BYTES = 4e9;
  private static final double MESSAGE_SECONDS = 50e-6;
  private static final List<String> EACH_STEP = List.of("allreduce", "auto");

  private final TrainingPlan plan;
  private final Dataset<Row> train;
  private final JsonNode net;
  private final long memory;
  private final long batch;
  private final long passes;

  /** Of a plan and the table that it is for. */
  public Explainer(TrainingPlan plan, Dataset<Row> train) {
    this.plan = plan;
    this.train = train;
    NetDescription described = NetDescription.ofTraining(plan);
    this.net = described.json();
    this.memory = described.memoryBytes(plan);
    this.batch = described.batchSize();
    this.passes = described.iterSize();
  }

  /** {@code engine} makes engines to probe with; null asks the machine's limits instead. */
  public Explanation explain(Supplier<cafetiere.spark.run.Engine> engine) {
    long rows = train.count();
    long stepRows = batch * passes * plan.shards();
    Dataset<Row> sample = sample(2 * stepRows);
    double flops = passes * (net.path("flops_forward").asDouble()
        + net.path("flops_backward").asDouble());
    StepTime time = engine == null ? expectedTime()
        : new Probe(engine, plan, sample).stepTime(flops * shardsOf(plan.workers()), period());
    long steps = plan.stepsPerEpoch(rows);
    return new Explanation(blobs(), net.path("parameters").asLong(), rows, plan.workers(),
        plan.shards(), plan.threads(), stepRows, steps, flops * plan.shards(),
        net.path("pass_bytes").asDouble() * passes * plan.shards(), exchanged(plan.workers()),
        netBytes(), rowBytes(sample, rows), time, engine != null, scaling(time, steps));
  }

  private List<Blob> blobs() {
    List<Blob> blobs = new ArrayList<>();
    for (JsonNode blob : net.path("blobs")) {
      List<Long> shape = new ArrayList<>();
      blob.path("shape").forEach(size -> shape.add(size.asLong()));
      blobs.add(new Blob(blob.path("name").asText(), shape));
    }
    return blobs;
  }

  /** Some rows, taken once: what makes the table may be dear. */
  private Dataset<Row> sample(long rows) {
    List<Row> some = train.limit((int) Math.min(rows, Integer.MAX_VALUE)).collectAsList();
    return train.sparkSession().createDataFrame(some, train.schema());
  }

  private long shardsOf(int workers) {
    return (plan.shards() + workers - 1) / workers;
  }

  /** Steps from one exchange to the next. */
  private long period() {
    return exchangesEachStep() ? 1
        : Math.max(1, net.path("solver").path("sync_period").asLong());
  }

  private boolean exchangesEachStep() {
    return EACH_STEP.contains(net.path("solver").path("sync").asText());
  }

  /** Of a worker: to each other one's slice of the sum and back. */
  private double exchanged(int workers) {
    double bytes = net.path("parameters").asDouble() * Float.BYTES;
    return workers > 1 ? 2 * bytes * (workers - 1) / workers : 0;
  }

  /**
   * The engine's estimate for one shard, and the model as the first worker stores it; further shards of a
   * worker leave a partial sum or a few.
   */
  private long netBytes() {
    long more = 64 - Long.numberOfLeadingZeros(shardsOf(plan.workers()) - 1);
    long parameters = net.path("parameters").asLong() * Float.BYTES;
    return memory + parameters + (shardsOf(plan.workers()) > 1 ? more * parameters : 0);
  }

  private long rowBytes(Dataset<Row> sample, long rows) {
    FeedSchema schema = plan.schema();
    long taken = sample.count();
    long bytes = SparkInternals.rows(schema.select(sample)).toJavaRDD()
        .mapPartitions(part -> List.of(encodedBytes(schema, part)).iterator())
        .fold(0L, Long::sum);
    return taken == 0 ? 0 : (long) ((double) bytes / taken * rows / plan.workers());
  }

  private static long encodedBytes(FeedSchema schema, Iterator<InternalRow> rows) {
    long[] sum = {0};
    try (RowEncoder encoder = new RowEncoder(schema, (count, address, bytes) -> sum[0] += bytes)) {
      while (rows.hasNext()) encoder.add(rows.next());
      encoder.flush();
    }
    return sum[0];
  }

  /** By the limits of an executor's machine. */
  private StepTime expectedTime() {
    String text = NetDescription.optionsOf(plan);
    int threads = plan.threads();
    int ranks = exchangesEachStep() ? plan.workers() : 1;  // others update all weights on their own
    int shardPasses = Math.toIntExact(passes * shardsOf(plan.workers()));
    double step = JavaSparkContext.fromSparkContext(train.sparkSession().sparkContext())
        .parallelize(List.of(text), 1)
        .map(net -> Engine.stepSeconds(net, threads, shardPasses, ranks)).first();
    double wait = assumedWait(plan.workers(), isOneHost() ? HOST_BYTES : LINK_BYTES) / period();
    return new StepTime(step, 0, wait);
  }

  /** Whether the driver and all executors are on one machine. */
  private boolean isOneHost() {
    return Arrays.stream(train.sparkSession().sparkContext().statusTracker().getExecutorInfos())
        .map(SparkExecutorInfo::host).distinct().count() == 1;
  }

  private double assumedWait(int workers, double bytesPerSecond) {
    double levels = Math.ceil(Math.log(workers) / Math.log(2));
    return workers == 1 ? 0
        : exchanged(workers) / bytesPerSecond + 2 * levels * MESSAGE_SECONDS;
  }

  /** Seconds that a step waits for others: what was measured, by the share of the bytes that travel. */
  private double wait(StepTime time, int workers) {
    if (workers == 1) return 0;
    if (plan.workers() == 1) return assumedWait(workers, LINK_BYTES) / period();
    return time.network() * exchanged(workers) / exchanged(plan.workers());
  }

  /** Powers of two. With shards that were set a step has the same rows on any number of workers. */
  private List<Scaling> scaling(StepTime time, long steps) {
    boolean isFixed = plan.shards() != plan.workers();
    int most = isFixed ? plan.shards() : MOST_WORKERS;
    double own = (time.computing() + time.data()) / shardsOf(plan.workers());
    List<Scaling> all = new ArrayList<>();
    for (int workers = 1; workers <= most; workers *= 2) {
      double work = own * (isFixed ? shardsOf(workers) : 1);
      double step = work + wait(time, workers);
      double epoch = isFixed ? steps * step : Math.ceil((double) steps * plan.workers() / workers) * step;
      double ideal = isFixed ? own * plan.shards() / workers : own;
      all.add(new Scaling(workers, epoch, step > 0 ? ideal / step : 1));
    }
    return all;
  }
}

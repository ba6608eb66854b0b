// SPDX-License-Identifier: Apache-2.0
package cafetiere.bench;

import cafetiere.core.Rows;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.feed.RowEncoder;
import cafetiere.spark.internal.SparkInternals;
import java.lang.management.ManagementFactory;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.functions;
import org.apache.spark.storage.StorageLevel;

/**
 * Measures the feed: rows of floats from Spark into native memory, in rows per CPU-second of the
 * thread that does it.
 *
 * <p>spark-submit --master local[1] --jars cafetiere-spark.jar --class cafetiere.bench.FeedBench
 * cafetiere-examples.jar [ROWS [FLOATS]]
 */
public final class FeedBench {
  private static final int PASSES = 5;

  private FeedBench() {}

  /** What is timed for one partition; returns the number of rows. */
  private interface Work extends java.io.Serializable {
    long run(Iterator<InternalRow> rows);
  }

  /** Entry point. */
  public static void main(String[] args) {
    long rows = args.length > 0 ? Long.parseLong(args[0]) : 500_000;
    int floats = args.length > 1 ? Integer.parseInt(args[1]) : 64;
    SparkSession spark = SparkSession.builder().getOrCreate();
    Dataset<Row> table = spark.range(0, rows, 1, 1).select(
        functions.expr("transform(sequence(1, " + floats + "), i -> float(id + i))")
            .alias("features"));
    FeedSchema schema = FeedSchema.of(
        table.schema(), List.of(new FeedSchema.Input("data", "features")), "");
    JavaRDD<InternalRow> input = SparkInternals.rows(schema.select(table)).toJavaRDD()
        .map(InternalRow::copy).persist(StorageLevel.MEMORY_ONLY());
    measure("iteration alone", input, FeedBench::iterate);
    measure("encoding", input, partition -> encode(schema, partition));
    measure("encoding into a native table", input, partition -> feed(schema, partition));
    spark.stop();
  }

  private static void measure(String name, JavaRDD<InternalRow> input, Work work) {
    double best = 0;
    for (int pass = 0; pass < PASSES; pass++) {
      best = Math.max(best, input.mapPartitions(rows -> List.of(rate(rows, work)).iterator())
          .collect().get(0));
    }
    System.out.printf("%-30s %6.2f M rows per CPU-second%n", name, best / 1e6);
  }

  private static double rate(Iterator<InternalRow> rows, Work work) {
    long start = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    long count = work.run(rows);
    return count * 1e9 / (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - start);
  }

  private static long iterate(Iterator<InternalRow> rows) {
    long count = 0;
    while (rows.hasNext()) {
      if (rows.next().numFields() == 1) count++;
    }
    return count;
  }

  private static long encode(FeedSchema schema, Iterator<InternalRow> rows) {
    long[] count = {0};
    try (RowEncoder encoder = new RowEncoder(schema, (n, address, bytes) -> count[0] += n)) {
      while (rows.hasNext()) encoder.add(rows.next());
      encoder.flush();
    }
    return count[0];
  }

  private static long feed(FeedSchema schema, Iterator<InternalRow> rows) {
    try (Rows table = new Rows(schema.toJson().toString())) {
      RowEncoder.feed(schema, rows, table);
      return table.count();
    }
  }
}

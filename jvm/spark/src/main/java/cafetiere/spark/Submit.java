// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.submit.SubmittedRun;
import cafetiere.spark.util.JavaVersion;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * The main class for spark-submit: trains, tests and extracts features as CaffeOnSpark's command
 * line asks for. A command line that cannot be followed ends with exit code 2.
 */
public final class Submit {
  private Submit() {}

  /** Runs a command line in its own session. */
  public static void main(String[] args) {
    JavaVersion.require();
    SubmittedRun.main(args);
  }

  /** Runs a command line in a session that is there. */
  public static void run(SparkSession spark, String... args) {
    JavaVersion.require();
    new SubmittedRun(spark, args).run();
  }

  /**
   * Trains as a command line asks, and writes the model and its snapshots where that says.
   *
   * @param rows to train on, in place of the table that the command line or the net names
   * @param held to test on in mid-run; null for no such tests
   */
  public static CaffeModel train(
      SparkSession spark, Dataset<Row> rows, Dataset<Row> held, String... args) {
    JavaVersion.require();
    return new SubmittedRun(spark, args).with("trainData", rows).with("testData", held).train();
  }

  /** SampleID and the blobs of -features for each of {@code rows}. */
  public static Dataset<Row> features(SparkSession spark, Dataset<Row> rows, String... args) {
    JavaVersion.require();
    return new SubmittedRun(spark, args).with("testData", rows).features();
  }

  /** The means of the TEST net's outputs over {@code rows}, by their names in the net's order. */
  public static Map<String, List<Double>> test(
      SparkSession spark, Dataset<Row> rows, String... args) {
    JavaVersion.require();
    return new SubmittedRun(spark, args).with("testData", rows).test();
  }
}

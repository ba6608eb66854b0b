// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.submit.SubmittedRun;
import cafetiere.spark.util.JavaVersion;
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
    SubmittedRun.run(spark, args);
  }
}

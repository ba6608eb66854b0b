// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import org.apache.spark.sql.SparkSession;

/** The session of the tests: two executors in JVMs of their own, as long as the tests run. */
public final class TestCluster {
  private TestCluster() {}

  /** The session, started by the first test that asks for it. */
  public static SparkSession session() {
    return SparkSession.builder()
        .appName("cafetiere tests")
        .master("local-cluster[2,1,1024]")
        .getOrCreate();
  }
}

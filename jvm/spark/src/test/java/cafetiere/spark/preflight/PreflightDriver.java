// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import cafetiere.spark.CafetierePlugin;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.PreflightException;
import cafetiere.spark.TestNets;
import cafetiere.spark.cluster.ClusterSlots;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** A driver whose sessions are set up wrongly, one after the other. */
final class PreflightDriver {
  /** What starts an executor: the first sees another file system, of which nothing is executed. */
  private static final String WRAPPER = """
      #!/bin/sh
      unset LOCAL_DIRS SPARK_LOCAL_DIRS
      if mkdir %1$s/first 2> /dev/null; then
        exec unshare --mount %2$s sh -c 'mount -t tmpfs -o noexec tmpfs "$0" && cd "$0" && exec "$@"' \\
          %1$s/locked %3$s/bin/java -Djava.io.tmpdir=%1$s/locked "$@"
      fi
      exec %3$s/bin/java -Dos.arch=aarch64 "$@"
      """;

  private PreflightDriver() {}

  public static void main(String[] args) throws Exception {
    for (int i = 1; i < args.length; i++) answer(Path.of(args[0]), args[i]);
  }

  /** A session with the faults of that name. */
  private static void answer(Path dir, String name) throws Exception {
    switch (name) {
      case "cpus" -> answer(dir, name, "local[2]", Map.of("spark.task.cpus", "2"), "");
      case "settings" -> answer(dir, name, "local-cluster[1,1,512]", Map.of(
          "spark.dynamicAllocation.enabled", "true",
          "spark.dynamicAllocation.shuffleTracking.enabled", "true",
          "spark.executor.memoryOverhead", "1m",
          "spark.ssl.enabled", "true"), "");
      case "plug-in" -> answer(dir, name, "local-cluster[2,1,512]", Map.of(
          "spark.plugins", CafetierePlugin.class.getName(),
          "spark.executor.extraClassPath", ""), "");
      case "jar" -> answer(dir, name, "local-cluster[2,1,512]", Map.of(
          "spark.executor.extraClassPath", ""), "");
      case "executors" -> answer(dir, name, "local-cluster[2,1,512]", Map.of(
          "spark.executorEnv.JAVA_HOME", wrapper(dir).toString()),
          Files.createDirectories(dir.resolve("locked")).toUri().toString());
      default -> throw new IllegalArgumentException(name);
    }
  }

  private static Path wrapper(Path dir) throws Exception {
    boolean isRoot = "root".equals(System.getProperty("user.name"));
    Path java = Files.createDirectories(dir.resolve("java/bin")).resolve("java");
    Files.writeString(java, WRAPPER.formatted(
        dir, isRoot ? "" : "--map-root-user", System.getProperty("java.home")));
    Files.setPosixFilePermissions(java, PosixFilePermissions.fromString("rwxr-xr-x"));
    return dir.resolve("java");
  }

  /** Leaves what preflight found in a file: milliseconds, then a finding a line. */
  private static void answer(Path dir, String name, String master, Map<String, String> settings,
      String checkpoints) throws Exception {
    SparkSession.Builder builder = SparkSession.builder().appName(name).master(master)
        .config("spark.executor.memory", "512m");
    settings.forEach(builder::config);
    try (SparkSession spark = builder.getOrCreate()) {
      if (name.equals("executors") || name.equals("jar")) {  // what is timed is preflight and not how long they start
        ClusterSlots.await(spark.sparkContext(), 2, 60, TimeUnit.SECONDS);
      }
      Dataset<Row> table = TestNets.points(spark, 50);
      CaffeEstimator estimator = new CaffeEstimator()
          .setSolver(TestNets.SOLVER).setNet(TestNets.CLASSIFIER).setFeaturesCol("features")
          .setLabelCol("label").setIdCol("id").setNumWorkers(2).setCheckpointDir(checkpoints);
      long start = System.nanoTime();
      String findings;
      try {
        Preflight.check(spark, TestNets.plan(estimator, table), table);
        findings = "nothing was found";
      } catch (PreflightException e) {
        findings = String.join("\n", e.findings());
      }
      long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
      Files.writeString(dir.resolve(name), millis + "\n" + findings);
    }
  }

  /** On a processor that the engine does not run on: prints what an executor would say. */
  static final class OldProcessor {
    private OldProcessor() {}

    public static void main(String[] args) {
      System.out.println(ExecutorCheck.engineFault().orElse("the engine runs"));
    }
  }
}

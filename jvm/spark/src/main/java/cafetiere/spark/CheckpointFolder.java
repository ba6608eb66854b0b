// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.util.SerializableConfiguration;

/** Where a run keeps its checkpoints: a place that outlives its executors. */
final class CheckpointFolder {
  private CheckpointFolder() {}

  /**
   * The folder for a run. One that is to go on from an interrupted one has the folder of its plan
   * and rows: the folds of a cross-validation have the same plan.
   */
  static String ofRun(SparkContext sc, TrainingPlan plan, Dataset<Row> train, String run) {
    return of(sc, plan.checkpointDir(),
        plan.resume() ? plan.fingerprint(RowsHash.of(plan.schema(), train)) : run);
  }

  /**
   * The folder of that name: inside {@code wanted}, if the user named one, else inside Spark's
   * checkpoint folder, else in the home folder of the cluster's file system, else in the temporary
   * folder of this machine (which {@link Preflight} refuses where executors run elsewhere).
   */
  static String of(SparkContext sc, String wanted, String name) {
    if (!wanted.isEmpty()) return wanted + "/run-" + name;
    if (sc.getCheckpointDir().isDefined()) return sc.getCheckpointDir().get() + "/run-" + name;
    Configuration conf = sc.hadoopConfiguration();
    if (!isLocalMaster(sc) && !isNodeLocal(FileSystem.getDefaultUri(conf))) {
      try {
        return FileSystem.get(conf).getHomeDirectory() + "/.cafetiere/run-" + name;
      } catch (IOException e) {
        throw new IllegalStateException("cannot reach " + FileSystem.getDefaultUri(conf)
            + " for checkpoints (" + e.getMessage() + "): set checkpointDir", e);
      }
    }
    return new File(System.getProperty("java.io.tmpdir"), "cafetiere/run-" + name).toURI()
        .toString();
  }

  /** Whether the path's files are seen by one machine only, unless something is mounted there. */
  static boolean isNodeLocal(String path, Configuration conf) {
    URI uri = new Path(path).toUri();
    return isNodeLocal(uri.getScheme() == null ? FileSystem.getDefaultUri(conf) : uri);
  }

  /** Whether driver and executors share a machine by the master's definition. */
  static boolean isLocalMaster(SparkContext sc) {
    return sc.master().startsWith("local");
  }

  /** The hosts of those of {@code tasks} tasks that do not see the file. */
  static List<String> executorsWithout(SparkContext sc, Path file, int tasks) {
    String path = file.toString();
    SerializableConfiguration conf = new SerializableConfiguration(sc.hadoopConfiguration());
    List<Integer> numbers = IntStream.range(0, tasks).boxed().toList();
    return JavaSparkContext.fromSparkContext(sc).parallelize(numbers, tasks).map(number -> {
      Path probe = new Path(path);
      boolean seen = probe.getFileSystem(conf.value()).exists(probe);
      return seen ? "" : InetAddress.getLocalHost().getHostName();
    }).filter(host -> !host.isEmpty()).distinct().collect();
  }

  private static boolean isNodeLocal(URI uri) {
    return uri.getScheme() == null || uri.getScheme().equals("file");
  }
}

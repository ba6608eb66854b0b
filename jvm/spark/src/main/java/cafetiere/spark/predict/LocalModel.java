// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import cafetiere.core.Predictor;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.TaskFolder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;

/**
 * Weights too large for a broadcast, as a file of this machine. A process keeps the last one that it
 * has fetched, for all its tasks.
 */
public final class LocalModel {
  private static String fetched = "";
  private static TaskFolder folder;

  private LocalModel() {}

  /** A predictor with the weights at a Hadoop path; the caller closes it. */
  public static synchronized Predictor open(PredictionPlan plan, String file, Configuration conf) {
    try {
      return plan.open(at(file, conf));
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + file + ": " + e.getMessage(), e);
    }
  }

  private static Path at(String file, Configuration conf) throws IOException {
    String version = HadoopFiles.version(file, conf);
    if (!version.equals(fetched)) {
      if (folder == null) {
        folder = new TaskFolder(SparkInternals.localFolder());
        Runtime.getRuntime().addShutdownHook(new Thread(folder::close));
      }
      fetched = "";
      HadoopFiles.fetch(file, copy(), conf);
      fetched = version;
    }
    return copy();
  }

  private static Path copy() {
    return folder.path().resolve("weights");
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.saved;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.ml.util.MLWriter;

/**
 * Saves a model of which a part still lies in files. Spark deletes what is to be overwritten before it
 * writes, so a path that contains such a file is refused.
 */
public abstract class ModelWriter extends MLWriter {
  /** Hadoop paths that the model is read from as it is saved; "" is none. */
  protected abstract List<String> sources();

  @Override
  public void save(String path) throws IOException {
    Configuration conf = sc().hadoopConfiguration();
    for (String source : sources()) {
      if (source.isEmpty() || !contains(path, source, conf)) continue;
      throw new IllegalArgumentException("the model cannot be saved to " + path + ", because it is still"
          + " read from " + source + ": save it to another path");
    }
    super.save(path);
  }

  private static boolean contains(String folder, String file, Configuration conf) {
    try {
      Path whole = qualified(folder, conf);
      for (Path at = qualified(file, conf); at != null; at = at.getParent()) {
        if (at.equals(whole)) return true;
      }
      return false;
    } catch (IOException e) {
      throw new UncheckedIOException("cannot reach " + folder + ": " + e.getMessage(), e);
    }
  }

  private static Path qualified(String path, Configuration conf) throws IOException {
    Path file = new Path(path);
    return file.getFileSystem(conf).makeQualified(file);
  }
}

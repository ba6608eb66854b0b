// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;

/**
 * Local files under another scheme, for tests that steer their executors by files in a folder.
 * While there is one named {@code shut}, no result of a training is put in its place; while there
 * is one named {@code refuse-P}, the tasks of partition P find nothing readable.
 */
public final class GateFiles extends SchemeFiles {
  static final String SHUT = "shut";
  static final String REFUSE = "refuse-";

  private static final String SCHEME = "gate";
  private static final String FOLDER = "fs.gate.folder";
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  private java.nio.file.Path folder;

  /** Has driver and executors find the scheme; the path of the local folder, which steers, too. */
  static String path(SparkContext sc, java.nio.file.Path folder) {
    Configuration conf = sc.hadoopConfiguration();
    conf.set("fs." + SCHEME + ".impl", GateFiles.class.getName());
    conf.setBoolean("fs." + SCHEME + ".impl.disable.cache", true);
    conf.set(FOLDER, folder.toString());
    return SCHEME + "://" + folder;
  }

  public GateFiles() {
    super(SCHEME);
  }

  @Override
  public void initialize(URI uri, Configuration conf) throws IOException {
    super.initialize(uri, conf);
    folder = java.nio.file.Path.of(conf.get(FOLDER));
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    boolean result = to.getParent().getName().equals("result");
    while (result && Files.exists(folder.resolve(SHUT))) LockSupport.parkNanos(LOOK_NANOS);
    return super.rename(from, to);
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    TaskContext task = TaskContext.get();
    if (task != null && Files.exists(folder.resolve(REFUSE + task.partitionId()))) {
      throw new IOException("the test refuses partition " + task.partitionId());
    }
    return super.getFileStatus(path);
  }
}

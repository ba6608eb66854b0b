// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;

/**
 * Local files under another scheme, where moving a checkpoint in its place takes some seconds. Beside
 * the folder a file {@code _NAME-entered} tells that it has begun and {@code _NAME-left} that it is
 * over.
 */
public final class SlowFiles extends SchemeFiles {
  private static final String SCHEME = "slow";
  private static final long RENAME_NANOS = TimeUnit.SECONDS.toNanos(4);

  /** Has driver and executors find the scheme; the path of a local folder under it. */
  static String path(SparkContext sc, java.nio.file.Path folder) {
    sc.hadoopConfiguration().set("fs." + SCHEME + ".impl", SlowFiles.class.getName());
    return SCHEME + "://" + folder;
  }

  public SlowFiles() {
    super(SCHEME);
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    mark(to, "entered");
    long end = System.nanoTime() + RENAME_NANOS;
    while (System.nanoTime() < end) LockSupport.parkNanos(end - System.nanoTime());
    boolean done = super.rename(from, to);
    mark(to, "left");
    return done;
  }

  private void mark(Path folder, String what) throws IOException {
    Path mark = new Path(folder.getParent(), "_" + folder.getName() + "-" + what);
    Files.writeString(pathToFile(mark).toPath(), "");
  }
}

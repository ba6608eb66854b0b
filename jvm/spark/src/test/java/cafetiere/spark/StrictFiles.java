// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** Local files with HDFS's rule: a rename moves in one step, and never onto what is there. */
public final class StrictFiles extends SchemeFiles {
  private static final String SCHEME = "strict";

  /** Where it is found by its scheme. */
  public static Configuration configuration() {
    Configuration conf = new Configuration();
    conf.set("fs." + SCHEME + ".impl", StrictFiles.class.getName());
    return conf;
  }

  /** The path of a local file or folder under the scheme. */
  public static String path(java.nio.file.Path file) {
    return SCHEME + "://" + file;
  }

  public StrictFiles() {
    super(SCHEME);
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    synchronized (StrictFiles.class) {
      if (!exists(from)) throw new FileNotFoundException(from.toString());
      if (exists(to)) return false;
      Files.move(pathToFile(from).toPath(), pathToFile(to).toPath());
      return true;
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.files;

import cafetiere.core.CafetiereException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.compress.CompressionCodecFactory;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Finds and opens files by Hadoop path. */
public final class SourceFiles {
  private static final Logger LOG = LoggerFactory.getLogger(SourceFiles.class);

  private SourceFiles() {}

  /**
   * The files at a path, which may be a file, a folder or a pattern such as {@code part-*.tar}; of
   * folders those whose names end as said. In the order of their names, at least one.
   */
  public static List<FileStatus> find(String path, Configuration conf, String... endings) {
    try {
      Path pattern = new Path(path);
      FileSystem fs = pattern.getFileSystem(conf);
      FileStatus[] found = fs.globStatus(pattern);
      List<FileStatus> files = new ArrayList<>();
      for (FileStatus entry : found == null ? new FileStatus[0] : found) {
        if (entry.isFile()) files.add(entry);
        if (!entry.isDirectory()) continue;
        Arrays.stream(fs.listStatus(entry.getPath())).filter(FileStatus::isFile)
            .filter(file -> Arrays.stream(endings).anyMatch(file.getPath().getName()::endsWith))
            .forEach(files::add);
      }
      files.sort(null);
      if (!files.isEmpty()) return files;
    } catch (IOException e) {
      throw unread(path, e);
    }
    throw new CafetiereException(CafetiereException.Code.NOT_FOUND, "there is no file at " + path
        + ", nor one whose name ends with " + String.join(" or ", endings) + ": correct the path");
  }

  /** Whether its bytes are compressed, as its name tells. */
  static boolean isCompressed(Path path, Configuration conf) {
    return new CompressionCodecFactory(conf).getCodec(path) != null;
  }

  /** In a task: closes something when it ends. */
  public static void closeAfterTask(AutoCloseable opened) {
    TaskContext.get().addTaskCompletionListener((TaskCompletionListener) context -> {
      try {
        opened.close();
      } catch (Exception e) {
        LOG.debug("cannot close {}", opened, e); // all that was wanted has been read
      }
    });
  }

  /** What went wrong as a file was read. */
  public static UncheckedIOException unread(Object path, IOException e) {
    return new UncheckedIOException("cannot read " + path + ": " + e.getMessage(), e);
  }

  static CafetiereException fault(Object path, String what) {
    return new CafetiereException(CafetiereException.Code.INVALID_ARGUMENT, path + " " + what);
  }
}

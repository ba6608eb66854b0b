// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;

/** Whole files by Hadoop path: local, HDFS, object stores. */
public final class HadoopFiles {
  private HadoopFiles() {}

  /** The bytes of a file. */
  public static byte[] read(String path, Configuration conf) {
    Path file = new Path(path);
    try (FSDataInputStream in = file.getFileSystem(conf).open(file)) {
      return in.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + path + ": " + e.getMessage(), e);
    }
  }

  /** The text of a file. */
  public static String readText(String path, Configuration conf) {
    return new String(read(path, conf), UTF_8);
  }

  /** Writes a file, replacing one of that name. */
  public static void write(String path, byte[] bytes, Configuration conf) {
    Path file = new Path(path);
    try (FSDataOutputStream out = file.getFileSystem(conf).create(file, true)) {
      out.write(bytes);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + path + ": " + e.getMessage(), e);
    }
  }

  /** Writes a text file, replacing one of that name. */
  public static void writeText(String path, String text, Configuration conf) {
    write(path, text.getBytes(UTF_8), conf);
  }
}

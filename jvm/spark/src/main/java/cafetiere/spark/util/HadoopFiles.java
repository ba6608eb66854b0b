// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.util.Comparator;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Whole files by Hadoop path: local, HDFS, object stores. What goes wrong is an
 * {@link UncheckedIOException} that names the path.
 */
public final class HadoopFiles {
  /** As long as an array can be in most JVMs. */
  private static final int LARGEST = Integer.MAX_VALUE - 8;

  private HadoopFiles() {}

  /** What writes a file's bytes. */
  @FunctionalInterface
  public interface Content {
    void writeTo(OutputStream out) throws IOException;
  }

  private interface Work<T> {
    T on(FileSystem files, Path file) throws IOException;
  }

  /** The path of a local file, with its scheme. The text of its URI has %20 for a blank, as no file has. */
  public static String ofLocal(java.nio.file.Path file) {
    return new Path(file.toUri()).toString();
  }

  /** Whether there is a file. */
  public static boolean exists(String path, Configuration conf) {
    return done("look for", path, conf, FileSystem::exists);
  }

  /** Whether there is a file, and no folder. */
  public static boolean isFile(String path, Configuration conf) {
    return done("look for", path, conf,
        (files, file) -> files.exists(file) && files.getFileStatus(file).isFile());
  }

  /** How many bytes a file has. */
  public static long length(String path, Configuration conf) {
    return done("read", path, conf, (files, file) -> files.getFileStatus(file).getLen());
  }

  /** Text that is another one when the file has changed. */
  public static String version(String path, Configuration conf) {
    FileStatus status = done("read", path, conf, FileSystem::getFileStatus);
    return path + " " + status.getLen() + " " + status.getModificationTime();
  }

  /** The path of a file in the same folder, with its scheme. */
  public static String beside(String path, String name, Configuration conf) {
    return done("reach", path, conf,
        (files, file) -> new Path(files.makeQualified(file).getParent(), name).toString());
  }

  /** The bytes of a file; an error for one that is larger than an array. */
  public static byte[] read(String path, Configuration conf) {
    return done("read", path, conf, (files, file) -> {
      long length = files.getFileStatus(file).getLen();
      if (length > LARGEST) {
        throw new IOException("it has " + length + " bytes, and here " + LARGEST + " are possible");
      }
      try (InputStream in = files.open(file)) {
        return in.readAllBytes();
      }
    });
  }

  /** The text of a file. */
  public static String readText(String path, Configuration conf) {
    return new String(read(path, conf), UTF_8);
  }

  /** The text of the first file in a folder whose name begins so. */
  public static String readFirst(String folder, String prefix, Configuration conf) {
    String found = done("read a file " + prefix + "* in", folder, conf, (files, path) ->
        Stream.of(files.listStatus(path)).map(status -> status.getPath())
            .filter(file -> file.getName().startsWith(prefix)).min(Comparator.naturalOrder())
            .orElseThrow(() -> new IOException("there is none")).toString());
    return readText(found, conf);
  }

  /** Copies a file into one of this machine. */
  public static void fetch(String from, java.nio.file.Path to, Configuration conf) {
    done("read", from, conf, (files, file) -> {
      try (InputStream in = files.open(file)) {
        return Files.copy(in, to, StandardCopyOption.REPLACE_EXISTING);
      }
    });
  }

  /** An error unless a file can be written there. */
  public static void requireWritable(String path, Configuration conf) {
    done("write", path, conf, (files, file) -> {
      if (files.exists(file) && files.getFileStatus(file).isDirectory()) {
        throw new IOException("it is a folder");
      }
      Path aside = file.suffix("." + UUID.randomUUID());
      files.create(aside, false).close();
      return files.delete(aside, false);
    });
  }

  /** Writes a file as {@link #replace} does. */
  public static void write(String path, byte[] bytes, Configuration conf) {
    replace(path, out -> out.write(bytes), conf);
  }

  /** The same of a text. */
  public static void writeText(String path, String text, Configuration conf) {
    write(path, text.getBytes(UTF_8), conf);
  }

  /**
   * Writes a file aside, and renames it over one of that name, so that a reader sees all of it or
   * nothing. A stream that is closed on the way leaves a file that looks whole, on object stores too.
   */
  public static void replace(String path, Content content, Configuration conf) {
    done("write", path, conf, (files, file) -> {
      Path aside = file.suffix("." + UUID.randomUUID());
      try {
        try (OutputStream out = files.create(aside, true)) {
          content.writeTo(out);
        }
        files.delete(file, false);
        if (!files.rename(aside, file)) throw new IOException("cannot rename " + aside);
        return file;
      } catch (IOException | FSError e) {
        files.delete(aside, false);
        throw e;
      }
    });
  }

  /** Copies a file as {@link #replace} writes one. */
  public static void copy(String from, String to, Configuration conf) {
    replace(to, out -> {
      Path source = new Path(from);
      try (InputStream in = source.getFileSystem(conf).open(source)) {
        in.transferTo(out);
      }
    }, conf);
  }

  /** Removes the folder that a file is in. */
  public static void deleteFolderOf(String path, Configuration conf) {
    done("remove the folder of", path, conf,
        (files, file) -> files.delete(file.getParent(), true));
  }

  /** A local disk that is full throws an FSError. */
  private static <T> T done(String what, String path, Configuration conf, Work<T> work) {
    Path file = new Path(path);
    try {
      return work.on(file.getFileSystem(conf), file);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot " + what + " " + path + ": " + e.getMessage(), e);
    } catch (FSError e) {
      String message = "cannot " + what + " " + path + ": " + e.getMessage();
      throw new UncheckedIOException(message, new IOException(e));
    }
  }
}

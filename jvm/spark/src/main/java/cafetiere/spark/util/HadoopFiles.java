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
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Options.Rename;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionCodecFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whole files by Hadoop path: local, HDFS, object stores. What goes wrong is an
 * {@link UncheckedIOException} that names the path.
 */
public final class HadoopFiles {
  private static final Logger LOG = LoggerFactory.getLogger(HadoopFiles.class);
  /** As long as an array can be in most JVMs. */
  private static final int LARGEST = Integer.MAX_VALUE - 8;

  private HadoopFiles() {}

  /** What writes a file's bytes. */
  @FunctionalInterface
  public interface Content {
    void writeTo(OutputStream out) throws IOException;
  }

  /** What is still to do when something has been moved. */
  @FunctionalInterface
  public interface Ending {
    void run() throws IOException;
  }

  /** A move failed, and what it was to replace could not be put back. */
  public static final class NotRestoredException extends IOException {
    private static final long serialVersionUID = 1L;

    private NotRestoredException(String message, Throwable cause) {
      super(message, cause);
    }
  }

  private interface Work<T> {
    T on(FileSystem files, Path file) throws IOException;
  }

  /** The path of a local file, with its scheme. The text of its URI has %20 for a blank, as no file has. */
  public static String ofLocal(java.nio.file.Path file) {
    return new Path(file.toUri()).toString();
  }

  /** The file system of a path. */
  public static FileSystem system(String path, Configuration conf) {
    return done("reach", path, conf, (files, file) -> files);
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

  /** The text of the first file in a folder whose name begins so; it may be compressed. */
  public static String readFirst(String folder, String prefix, Configuration conf) {
    return done("read a file " + prefix + "* in", folder, conf, (files, path) -> {
      Path found = Stream.of(files.listStatus(path)).map(status -> status.getPath())
          .filter(file -> file.getName().startsWith(prefix)).min(Comparator.naturalOrder())
          .orElseThrow(() -> new IOException("there is none"));
      try (InputStream in = open(found, conf)) {
        return new String(in.readAllBytes(), UTF_8);
      }
    });
  }

  /** Opens a file; a compressed one, as its name tells, gives what it was made of. */
  public static InputStream open(Path path, Configuration conf) throws IOException {
    CompressionCodec codec = new CompressionCodecFactory(conf).getCodec(path);
    InputStream bytes = path.getFileSystem(conf).open(path);
    if (codec == null) return bytes;
    try {
      return codec.createInputStream(bytes);
    } catch (IOException | RuntimeException | LinkageError e) {  // as of a codec without its native library
      bytes.close();
      throw e;
    }
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
   * nothing. A stream that is closed on the way leaves a file that looks whole, on object stores too. Of
   * several writers at once one at least succeeds, and what is there is the file of one that did.
   */
  public static void replace(String path, Content content, Configuration conf) {
    done("write", path, conf, (files, file) -> {
      if (files.exists(file) && files.getFileStatus(file).isDirectory()) {
        throw new IOException("it is a folder");
      }
      replace(withoutChecksum(files, file), file, content);
      return file;
    });
  }

  private static void replace(FileSystem files, Path file, Content content) throws IOException {
    Path aside = file.suffix("." + UUID.randomUUID());
    try {
      try (OutputStream out = files.create(aside, true)) {
        content.writeTo(out);
      }
      if (!isPutOver(files, aside, file)) moveOver(files, aside, file, () -> {});
    } catch (NotRestoredException e) {
      throw e;
    } catch (IOException | RuntimeException | FSError e) {
      discard(files, aside);
      throw e;
    }
  }

  /** Local files lie beside files of their checksums; no rename replaces both at once. */
  private static FileSystem withoutChecksum(FileSystem files, Path file) throws IOException {
    if (!(files instanceof LocalFileSystem local)) return files;
    local.getRaw().delete(local.getChecksumFile(file), false);
    return local.getRaw();
  }

  /** Replaces a file in one step, as HDFS and local disks can; false where another one cannot be replaced. */
  private static boolean isPutOver(FileSystem files, Path from, Path to) throws IOException {
    if (!(files instanceof DistributedFileSystem hdfs)) return isRenamed(files, from, to);
    hdfs.rename(from, to, Rename.OVERWRITE);
    return true;
  }

  /**
   * Renames a file or folder over another one, then runs {@code ending}. What was at {@code to} is kept
   * beside it until both are done, and is put back if one of them fails. A rename may copy file after file.
   *
   * @throws NotRestoredException if it could not be put back: {@code from} is to be kept, too
   */
  public static void moveOver(FileSystem files, Path from, Path to, Ending ending) throws IOException {
    Path old = new Path(to.getParent(), "_" + to.getName() + "." + UUID.randomUUID() + ".old");
    boolean isAside = false;
    boolean mayBeOurs = false;
    try {
      if (files.exists(to)) move(files, to, old);
      isAside = true;
      mayBeOurs = true;  // in part, too, if the rename copies and throws on the way
      mayBeOurs = isRenamed(files, from, to);
      if (!mayBeOurs) throw notRenamed(from, to);
      ending.run();
    } catch (IOException | RuntimeException | FSError e) {
      restore(files, from, to, old, isAside, mayBeOurs, e);
      throw e;
    }
    discard(files, old);
  }

  private static void restore(FileSystem files, Path from, Path to, Path old, boolean isAside,
      boolean isOurs, Throwable fault) throws NotRestoredException {
    try {
      if (isOurs) files.delete(to, true);
      // What is there although all was moved aside is another writer's, and replaces the old.
      boolean isAnothers = isAside && files.exists(to);
      if (!isAnothers && files.exists(old)) moveBack(files, old, to);
    } catch (IOException | RuntimeException | FSError e) {
      throw new NotRestoredException(fault.getMessage() + "; " + to + " could not be put back ("
          + e.getMessage() + "): what was there may be in " + old + ", and what was written is in " + from
          + ": rename one of them to " + to, fault);
    }
    discard(files, old);
  }

  /** After a rename that copies and was broken off, each file is whole in one of the two places at least. */
  private static void moveBack(FileSystem files, Path old, Path to) throws IOException {
    if (!files.exists(to)) {
      move(files, old, to);
    } else if (files.getFileStatus(to).isDirectory()) {
      for (FileStatus entry : files.listStatus(old)) {
        moveBack(files, entry.getPath(), new Path(to, entry.getPath().getName()));
      }
    }
  }

  /** Renames; where that is not possible it is an error. */
  public static void move(FileSystem files, Path from, Path to) throws IOException {
    if (!isRenamed(files, from, to)) throw notRenamed(from, to);
  }

  private static IOException notRenamed(Path from, Path to) {
    return new IOException("cannot rename " + from + " to " + to);
  }

  /** Renames; false if the file system did nothing, as most do where something is there already. */
  private static boolean isRenamed(FileSystem files, Path from, Path to) throws IOException {
    try {
      if (!(files instanceof DistributedFileSystem hdfs)) return files.rename(from, to);
      hdfs.rename(from, to, Rename.NONE);  // without it a folder ends up in one that is there
      return true;
    } catch (FileAlreadyExistsException e) {
      return false;
    }
  }

  /** Removes what nobody needs any more, if it is there; that it stays is no more than a warning. */
  public static void discard(FileSystem files, Path path) {
    try {
      files.delete(path, true);
    } catch (IOException | RuntimeException | FSError e) {
      LOG.warn("{} could not be removed: {}", path, e.getMessage());
    }
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

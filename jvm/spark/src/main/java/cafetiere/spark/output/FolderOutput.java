// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.output;

import cafetiere.core.CafetiereException;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.HadoopFiles.NotRestoredException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.UUID;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SaveMode;

/**
 * Writes a folder aside, hidden beside its path, and renames it when it is whole: the rows may be read
 * from what it replaces. The marker {@link #SUCCESS} goes first and comes last, as a rename may copy file
 * after file.
 */
public final class FolderOutput {
  /** The name of a file that is in a folder when all others are. */
  public static final String SUCCESS = "_SUCCESS";

  /** What writes the files. */
  @FunctionalInterface
  public interface Content {
    /** Writes below {@code staging}, which is not there yet; gives the whole folder: it, or one in it. */
    Path writeTo(Path staging) throws IOException;
  }

  private FolderOutput() {}

  /** Writes the folder; what {@code mode} says of one that is there is done, or refused. */
  public static void write(FileSystem files, String path, SaveMode mode, Content content) {
    Path target = files.makeQualified(new Path(path));
    try {
      if (files.exists(target)) {
        if (mode == SaveMode.Ignore) return;
        if (mode != SaveMode.Overwrite) throw refused(path, mode);
      }
      Path staging = new Path(target.getParent(), "_" + target.getName() + "." + UUID.randomUUID());
      boolean isKept = false;
      try {
        place(files, content.writeTo(staging), target);
      } catch (NotRestoredException e) {
        isKept = true;
        throw e;
      } finally {
        if (!isKept) HadoopFiles.discard(files, staging);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + path + ": " + e.getMessage(), e);
    }
  }

  private static CafetiereException refused(String path, SaveMode mode) {
    return new CafetiereException(CafetiereException.Code.INVALID_ARGUMENT,
        mode == SaveMode.Append ? "rows cannot be appended to what is at " + path
            + ": write them to a path of their own"
            : path + " is there already: write with mode(\"overwrite\"), or to another path");
  }

  private static void place(FileSystem files, Path whole, Path target) throws IOException {
    Path marker = new Path(target, SUCCESS);
    boolean wasMarked = files.exists(target) && files.getFileStatus(target).isDirectory()
        && files.exists(marker);
    try {
      if (wasMarked) files.delete(marker, false);
      files.delete(new Path(whole, SUCCESS), false);
      HadoopFiles.moveOver(files, whole, target, () -> mark(files, marker));
    } catch (NotRestoredException e) {
      throw e;
    } catch (IOException | RuntimeException | FSError e) {
      if (wasMarked) markAgain(files, marker, e);
      throw e;
    }
  }

  /** A fault on the way is told beside the one that came first. */
  private static void markAgain(FileSystem files, Path marker, Throwable first) {
    try {
      mark(files, marker);
    } catch (IOException | RuntimeException | FSError e) {
      first.addSuppressed(e);
    }
  }

  private static void mark(FileSystem files, Path marker) throws IOException {
    files.create(marker, true).close();
  }
}

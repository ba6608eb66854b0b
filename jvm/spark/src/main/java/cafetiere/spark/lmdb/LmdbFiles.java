// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.lmdb;

import cafetiere.core.CafetiereException;
import cafetiere.spark.output.FolderOutput;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Where databases are. */
public final class LmdbFiles {
  /** A database's file in its folder, as liblmdb names it. */
  static final String DATA = "data.mdb";

  private LmdbFiles() {}

  /** The folder of a partition's database. */
  static String part(int number) {
    return String.format(Locale.ROOT, "part-%05d", number);
  }

  /** Whether a table's path is one of databases: a folder of liblmdb's, or what LmdbOutput writes. */
  public static boolean areAt(String path, Configuration conf) {
    try {
      Path folder = new Path(path);
      FileSystem fs = folder.getFileSystem(conf);
      return folder.getName().equals(DATA) || fs.exists(new Path(folder, DATA))
          || fs.exists(new Path(new Path(folder, part(0)), DATA));
    } catch (IOException | IllegalArgumentException e) {
      return false; // Whoever reads the table says what is wrong with its path.
    }
  }

  /** The files of the databases at a path, in the order of their names; at least one. */
  static List<FileStatus> at(String path, Configuration conf) {
    try {
      Path folder = new Path(path);
      FileSystem fs = folder.getFileSystem(conf);
      List<FileStatus> files = fs.getFileStatus(folder).isFile()
          ? List.of(fs.getFileStatus(folder)) : find(path, conf);
      if (!files.isEmpty()) return files;
      throw notFound(fs.exists(new Path(folder, "CURRENT"))
          ? "the folder " + path + " is a LevelDB and no LMDB: convert it"
          : "the folder " + path + " is no LMDB: neither it nor a folder in it has a " + DATA);
    } catch (FileNotFoundException e) {
      throw notFound("there is no LMDB at " + path + ": correct the path");
    } catch (IOException e) {
      throw unread(path, e);
    }
  }

  /** In the folder itself or, if it has none, in those inside. */
  private static List<FileStatus> find(String path, Configuration conf) throws IOException {
    Path folder = new Path(path);
    FileSystem fs = folder.getFileSystem(conf);
    List<FileStatus> files = new ArrayList<>();
    FileStatus[] inside = fs.listStatus(folder);
    Arrays.sort(inside);
    for (FileStatus entry : inside) {
      if (entry.isFile() && entry.getPath().getName().equals(DATA)) return List.of(entry);
    }
    for (FileStatus entry : inside) {
      if (!entry.isDirectory() || entry.getPath().getName().matches("[._].*")) continue;
      Path file = new Path(entry.getPath(), DATA);
      if (fs.exists(file)) files.add(fs.getFileStatus(file));
    }
    boolean areParts = files.stream()
        .anyMatch(file -> file.getPath().getParent().getName().matches("part-\\d{5}"));
    if (areParts && !fs.exists(new Path(folder, FolderOutput.SUCCESS))) {
      throw notFound("the folder " + path + " has no " + FolderOutput.SUCCESS
          + ", which is written when all of its databases are there:"
          + " write them again, or make that file if you know them to be");
    }
    return files;
  }

  private static CafetiereException notFound(String text) {
    return new CafetiereException(CafetiereException.Code.NOT_FOUND, text);
  }

  private static UncheckedIOException unread(String path, IOException e) {
    return new UncheckedIOException("cannot read " + path + ": " + e.getMessage(), e);
  }
}

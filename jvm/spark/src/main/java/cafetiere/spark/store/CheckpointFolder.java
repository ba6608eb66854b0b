// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.store;

import cafetiere.spark.feed.RowsHash;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.util.HadoopFiles;
import java.io.IOException;
import java.net.URI;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Where a run keeps its checkpoints: a place that outlives its executors. */
public final class CheckpointFolder {
  private static final Logger LOG = LoggerFactory.getLogger(CheckpointFolder.class);
  private static final String PREFIX = "run-";
  private static final long KEPT_MILLIS = TimeUnit.DAYS.toMillis(7);

  private CheckpointFolder() {}

  /**
   * The folder for a run. One that is to go on from an interrupted one has the folder of its plan
   * and rows: the folds of a cross-validation have the same plan. {@code validation} may be null.
   */
  public static String ofRun(SparkContext sc, TrainingPlan plan, Dataset<Row> train,
      Dataset<Row> validation, String run) {
    String folder = of(sc, plan.checkpointDir(),
        plan.resume() ? plan.fingerprint(rows(plan, train, validation)) : run);
    if (plan.checkpointDir().isEmpty()) {
      sweep(new Path(folder), sc.hadoopConfiguration(), System.currentTimeMillis());
    }
    return folder;
  }

  /** With early stopping a checkpoint holds the best test so far, which is one of these validation rows. */
  private static String rows(TrainingPlan plan, Dataset<Row> train, Dataset<Row> validation) {
    String rows = RowsHash.of(plan.schema(), train);
    if (validation == null || !plan.solver().contains("early_stopping")) return rows;
    return rows + ", " + RowsHash.of(plan.schema(), validation);
  }

  /** The folders of other runs beside that of a run, by their names; none where that cannot be found out. */
  public static List<String> others(String folder, Configuration conf) {
    Path own = new Path(folder);
    List<String> names = new ArrayList<>();
    try {
      FileSystem files = own.getFileSystem(conf);
      if (!files.exists(own.getParent())) return names;
      for (FileStatus entry : files.listStatus(own.getParent())) {
        String name = entry.getPath().getName();
        if (entry.isDirectory() && name.startsWith(PREFIX) && !name.equals(own.getName())) names.add(name);
      }
    } catch (IOException e) {
      LOG.info("{} could not be looked into: {}", own.getParent(), e.getMessage());
    }
    Collections.sort(names);
    return names;
  }

  /** Where a model stays that is files, of the run whose folder is {@code folder}. */
  public static String ofModel(String folder, String run) {
    return new Path(new Path(folder).getParent(), "model-" + run).toString();
  }

  /** The time from one checkpoint to the next where neither params nor solver have an interval. */
  public static long seconds(SparkSession spark) {
    return JavaUtils.timeStringAsSec(spark.conf().get("spark.cafetiere.checkpointTime", "10min"));
  }

  /**
   * After a run that failed: what it stored is kept for a week, for whom its log tells the folder, and
   * one in which nothing is finished is removed.
   */
  public static void leave(CheckpointStore checkpoints) {
    try {
      if (checkpoints.keepFinished()) {
        LOG.warn("The checkpoints of the run that failed are kept in {}", checkpoints.location());
      }
    } catch (IOException e) {
      LOG.warn("{} could not be looked into: {}", checkpoints.location(), e.getMessage());
    }
  }

  /** Removes what runs that nobody can go on from have left beside {@code run} a week ago. */
  static void sweep(Path run, Configuration conf, long now) {
    try {
      FileSystem files = run.getFileSystem(conf);
      if (!files.exists(run.getParent())) return;
      for (FileStatus entry : files.listStatus(run.getParent())) {
        if (entry.isDirectory() && entry.getPath().getName().startsWith(PREFIX)) {
          sweepOne(files, entry, now - KEPT_MILLIS);
        }
      }
    } catch (IOException e) {
      LOG.info("Old checkpoints beside {} were not removed: {}", run, e.getMessage());
    }
  }

  /** What is in the folder may vanish meanwhile, as its own run, or the sweep of another, removes it. */
  private static void sweepOne(FileSystem files, FileStatus folder, long oldest) {
    try {
      long written = lastWritten(files, folder, oldest);
      if (written <= 0 || written >= oldest) return;
      LOG.info("Removing the checkpoints of a run that failed: {}", folder.getPath());
      files.delete(folder.getPath(), true);
    } catch (IOException e) {
      LOG.info("Old checkpoints in {} were not removed: {}", folder.getPath(), e.getMessage());
    }
  }

  /**
   * When an entry or something in it was written last, or a time from {@code enough} on; 0 if not known,
   * as object stores know it of files only. FileSystem.listFiles would run a process for each local file.
   */
  private static long lastWritten(FileSystem files, FileStatus entry, long enough) throws IOException {
    long last = entry.getModificationTime();
    if (!entry.isDirectory() || last >= enough) return last;
    for (FileStatus inside : files.listStatus(entry.getPath())) {
      last = Math.max(last, lastWritten(files, inside, enough));
      if (last >= enough) break;
    }
    return last;
  }

  /**
   * The folder of that name: inside {@code wanted}, if the user named one, else inside Spark's
   * checkpoint folder, else in the home folder of the cluster's file system, else in a folder of this
   * user below the temporary one of this machine (which {@code Preflight} refuses where executors run
   * elsewhere).
   */
  public static String of(SparkContext sc, String wanted, String name) {
    if (!wanted.isEmpty()) return wanted + "/" + PREFIX + name;
    if (sc.getCheckpointDir().isDefined()) return sc.getCheckpointDir().get() + "/" + PREFIX + name;
    Configuration conf = sc.hadoopConfiguration();
    if (!isLocalMaster(sc) && !isNodeLocal(FileSystem.getDefaultUri(conf))) {
      try {
        return FileSystem.get(conf).getHomeDirectory() + "/.cafetiere/" + PREFIX + name;
      } catch (IOException e) {
        throw new IllegalStateException("cannot reach " + FileSystem.getDefaultUri(conf)
            + " for checkpoints (" + e.getMessage() + "): set checkpointDir", e);
      }
    }
    return HadoopFiles.ofLocal(temporary().resolve(PREFIX + name));
  }

  private static java.nio.file.Path temporary() {
    return java.nio.file.Path.of(
        System.getProperty("java.io.tmpdir"), "cafetiere-" + System.getProperty("user.name"));
  }

  /**
   * Makes the parent of {@code folder}, which {@link #of} gave, if it is the one below the temporary folder:
   * nobody but its owner may enter it.
   *
   * @throws IOException if something is there that is no folder of this user
   */
  public static void makeTemporary(String folder) throws IOException {
    java.nio.file.Path own = temporary();
    if (!new Path(folder).getParent().equals(new Path(HadoopFiles.ofLocal(own)))) return;
    if (!Files.isDirectory(own.getParent())) Files.createDirectories(own.getParent());  // it may be a link
    try {
      var ownerOnly = PosixFilePermissions.fromString("rwx------");
      Files.createDirectory(own, PosixFilePermissions.asFileAttribute(ownerOnly));
    } catch (FileAlreadyExistsException e) {
      requireOwn(own);
    }
  }

  private static void requireOwn(java.nio.file.Path folder) throws IOException {
    if (!Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)) {
      throw new IOException(folder + " is no folder");
    }
    UserPrincipal owner = Files.getOwner(folder, LinkOption.NOFOLLOW_LINKS);
    java.nio.file.Path ours = Files.createTempFile(folder.getParent(), "cafetiere-", "");
    try {
      if (Files.getOwner(ours).equals(owner)) return;
      throw new IOException(folder + " belongs to " + owner.getName());
    } finally {
      Files.delete(ours);
    }
  }

  /** Whether the path's files are seen by one machine only, unless something is mounted there. */
  public static boolean isNodeLocal(String path, Configuration conf) {
    URI uri = new Path(path).toUri();
    return isNodeLocal(uri.getScheme() == null ? FileSystem.getDefaultUri(conf) : uri);
  }

  /** Whether driver and executors share a machine by the master's definition. */
  public static boolean isLocalMaster(SparkContext sc) {
    return sc.master().startsWith("local");
  }

  private static boolean isNodeLocal(URI uri) {
    return uri.getScheme() == null || uri.getScheme().equals("file");
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import cafetiere.spark.store.CheckpointFolder;
import java.io.IOException;
import java.util.Optional;
import java.util.UUID;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A file that the driver writes where checkpoints would go, as long as preflight looks. */
final class CheckpointProbe implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(CheckpointProbe.class);

  private final SparkContext sc;
  private final String folder;
  private final Path file;
  private String finding;

  /** Writes it; {@code wanted}: the param checkpointDir. */
  CheckpointProbe(SparkContext sc, String wanted) {
    this.sc = sc;
    folder = CheckpointFolder.of(
        sc, wanted, "preflight-" + UUID.randomUUID());  // others may look as well
    file = new Path(folder, "probe");
    try {
      CheckpointFolder.makeTemporary(folder);
      files().create(file, true).close();
    } catch (IOException e) {
      finding = "checkpoints cannot be written to " + folder + " (" + e.getMessage()
          + "): set checkpointDir to a folder that driver and executors can write to";
    }
  }

  /** Why it could not be written. */
  Optional<String> finding() {
    return Optional.ofNullable(finding);
  }

  /** The file, if it is there and one machine's: null where nobody has to look for it. */
  Path toBeSeen() {
    boolean isTried =
        finding == null && CheckpointFolder.isNodeLocal(folder, sc.hadoopConfiguration());
    return isTried ? file : null;
  }

  @Override
  public void close() {
    try {
      files().delete(new Path(folder), true);
    } catch (IOException e) {
      LOG.info("{} was not removed: {}", folder, e.getMessage());
    }
  }

  private FileSystem files() throws IOException {
    return file.getFileSystem(sc.hadoopConfiguration());
  }
}

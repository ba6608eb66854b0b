// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.store;

import cafetiere.core.Engine;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.util.HadoopFiles;
import java.io.Serializable;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * The snapshots that a solver asks for in mid-run, as Caffe names and forms them:
 * {@code PREFIX_iter_STEP.caffemodel} and {@code .solverstate}, with .h5 where they are HDF5.
 *
 * @param prefix Hadoop path, with a scheme; "" where none are written
 * @param every steps from one to the next
 * @param isHdf5 whether the solver wants HDF5
 */
public record SnapshotFiles(String prefix, long every, boolean isHdf5) implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final Pattern URI = Pattern.compile("[A-Za-z][A-Za-z0-9+.-]*:/");

  /** What a solver asks for: files where its snapshot_prefix is a URI, which all executors reach. */
  public static SnapshotFiles of(NetDescription description) {
    String prefix = description.snapshotPrefix();
    boolean areWritten = description.hasSnapshots() && URI.matcher(prefix).lookingAt();
    return new SnapshotFiles(
        areWritten ? prefix : "", description.snapshotInterval(), description.wantsHdf5());
  }

  /** Whether there are any. */
  public boolean areWritten() {
    return !prefix.isEmpty();
  }

  /** Whether one is due after {@code step} steps, when {@code before} was the last look. */
  public boolean isDue(long before, long step) {
    return areWritten() && step / every > before / every;
  }

  /** Writes one; contents in the binary form become what the solver wants. */
  public void write(long step, Contents contents, Configuration conf) {
    String stem = prefix + "_iter_" + step;
    HadoopFiles.replace(stem + ".caffemodel" + contents.ending(), contents.model(), conf);
    HadoopFiles.replace(stem + ".solverstate" + contents.ending(), contents.state(), conf);
  }

  /** The same of bytes. */
  public void write(long step, byte[] model, byte[] state, Configuration conf) {
    if (!isHdf5) {
      write(step, Contents.of(model, state), conf);
      return;
    }
    String weights = new Path(prefix).getName() + "_iter_" + step + ".caffemodel" + Contents.HDF5;
    write(step, new Contents(out -> out.write(Engine.weightsHdf5(model)),
        out -> out.write(Engine.stateHdf5(state, weights)), Contents.HDF5), conf);
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.store;

import cafetiere.spark.util.HadoopFiles.Content;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Weights and solver state that are to be stored: in the binary form, which are bytes, or as HDF5,
 * which are files of this machine and of any size.
 *
 * @param ending of the files' names: "" or {@link #HDF5}
 */
public record Contents(Content model, Content state, String ending) {
  public static final String HDF5 = ".h5";

  /** A caffemodel and a solverstate; the buffers keep their positions. */
  public static Contents of(ByteBuffer model, ByteBuffer state) {
    return new Contents(out -> write(model, out), out -> write(state, out), "");
  }

  /** The same as arrays. */
  public static Contents of(byte[] model, byte[] state) {
    return of(ByteBuffer.wrap(model), ByteBuffer.wrap(state));
  }

  /** HDF5 files. */
  public static Contents of(Path model, Path state) {
    return new Contents(out -> Files.copy(model, out), out -> Files.copy(state, out), HDF5);
  }

  private static void write(ByteBuffer bytes, OutputStream out) throws IOException {
    Channels.newChannel(out).write(bytes.duplicate());
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.hdf5;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.Handle;
import cafetiere.core.NativeLibrary;
import java.nio.file.Path;
import java.util.Arrays;

/** An HDF5 file on a local disk, whose datasets are read as floats. */
public final class Hdf5 extends Handle {
  /** Opens the file. */
  public Hdf5(Path file) {
    super(open(file), NativeHdf5::close);
  }

  /** The sizes of a dataset, to be asked for before it is read. */
  public long[] shape(String dataset) {
    String sizes = new String(
        call(hdf5 -> NativeHdf5.shape(hdf5, dataset.getBytes(UTF_8))), UTF_8);
    String bare = sizes.substring(1, sizes.length() - 1);
    if (bare.isEmpty()) return new long[0];
    return Arrays.stream(bare.split(",")).mapToLong(Long::parseLong).toArray();
  }

  /** Fills {@code out} with the floats of a dataset from number {@code begin} on, in row-major order. */
  public void read(String dataset, long begin, float[] out) {
    run(hdf5 -> NativeHdf5.read(hdf5, dataset.getBytes(UTF_8), begin, out));
  }

  private static long open(Path file) {
    NativeLibrary.load();
    return NativeHdf5.open(file.toString().getBytes(UTF_8));
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

/** Snapshots in the form that Caffe writes with {@code snapshot_format: HDF5}. */
public final class Hdf5Form {
  private Hdf5Form() {}

  /** A .caffemodel.h5 of a caffemodel's bytes. */
  public static byte[] ofWeights(byte[] model) {
    NativeLibrary.load();
    return Native.weightsHdf5(model);
  }

  /** A .solverstate.h5 of a solverstate's bytes; {@code learnedNet}: path of its weights. */
  public static byte[] ofState(byte[] state, String learnedNet) {
    NativeLibrary.load();
    return Native.stateHdf5(state, Native.utf8(learnedNet));
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * The JNI functions of libcafetiere.so, one for one those of the C interface. Text crosses as UTF-8
 * bytes, because JNI's own strings are a modified UTF-8; handles cross as addresses.
 */
final class Native {
  private Native() {}

  static native byte[] version();

  static native byte[] instructionSet();

  static native void useInstructionSet(byte[] name);

  static native byte[] describe(byte[] options);

  static native byte[] syncModes();

  static native byte[] report(byte[] events, byte[] result);

  static native long rowBudgetCreate(byte[] options);

  static native void rowBudgetDestroy(long budget);

  /** Under no budget where that is 0. */
  static native long rowsCreate(byte[] schema, long budget);

  static native void rowsAppend(long rows, long count, long address, long bytes);

  static native long rowsCount(long rows);

  /** As many keys of 32 bytes as there are rows. */
  static native byte[] rowsKeys(long rows, long seed, long count);

  static native void rowsDestroy(long rows);

  static native long rowCheckCreate(byte[] options);

  /** Sets good[i] to whether row i can be taken; says what is wrong with the first that cannot. */
  static native byte[] rowCheckRun(long check, long count, long address, long bytes, byte[] good);

  static native void rowCheckDestroy(long check);

  static native long groupCreate(byte[] options);

  static native byte[] groupAddress(long group);

  static native void groupSetSecret(long group, byte[] secret);

  static native void groupConnect(long group, byte[] addresses);

  static native void groupBarrier(long group);

  static native void groupCancel(long group);

  static native void groupDestroy(long group);

  static native long trainerCreate(byte[] options, Trainer.Listener listener);

  static native void trainerRestore(long trainer, byte[] model, byte[] state);

  static native void trainerRestoreFiles(long trainer, byte[] model, byte[] state);

  static native void trainerSave(long trainer, byte[] model, byte[] state);

  static native void trainerValidation(long trainer, long rows);

  static native void trainerRun(long trainer, long group, long rows);

  static native void trainerCancel(long trainer);

  static native void trainerCheckpoint(long trainer);

  static native byte[] weightsHdf5(byte[] model);

  static native byte[] stateHdf5(byte[] state, byte[] learnedNet);

  static native byte[] onnx(byte[] options, byte[] model);

  static native byte[] explain(byte[] options);

  static native double stepSeconds(byte[] options, int threads, int passes, int ranks);

  static native void ofOnnx(byte[] file, byte[][] netAndWeights);

  static native byte[] trainerRows(long trainer);

  static native byte[] trainerSeconds(long trainer);

  static native byte[] trainerPlace(long trainer);

  static native byte[] threadStacks(int thread);

  static native byte[] trainerResult(long trainer);

  static native byte[] trainerModel(long trainer);

  static native byte[] trainerState(long trainer);

  static native void trainerDestroy(long trainer);

  static native byte[] treeSum(byte[][] arrays);

  static native long replicaCreate(byte[] options);

  static native void replicaRows(long replica, long rows, long totalRows);

  static native void replicaValidation(long replica, long rows);

  static native void replicaRestore(long replica, byte[] state);

  static native byte[] replicaRound(long replica, long iter, long steps, byte[] shared);

  static native byte[] replicaTest(long replica, byte[] shared);

  static native byte[] replicaPosterior(long replica, byte[] begun);

  static native byte[] replicaHistory(long replica);

  static native long replicaStep(long replica);

  static native void replicaCancel(long replica);

  static native void replicaDestroy(long replica);

  static native long roundsCreate(byte[] options);

  static native void roundsRestore(long rounds, byte[] model, byte[] state);

  static native byte[] roundsDescribe(long rounds);

  static native byte[] roundsShared(long rounds, long floats);

  static native void roundsEnd(long rounds, byte[][] sums);

  static native void roundsTest(long rounds, double value);

  static native byte[] roundsBeginPosterior(long rounds);

  static native void roundsEndPosterior(long rounds, byte[][] sums);

  static native byte[] roundsModel(long rounds);

  static native byte[] roundsState(long rounds, byte[][] histories);

  static native void roundsDestroy(long rounds);

  static native long predictorCreate(byte[] options, byte[] model);

  static native long predictorShare(long predictor);

  static native void predictorReset(long predictor);

  static native byte[] predictorDescribe(long predictor);

  static native void predictorRun(
      long predictor, long count, long address, long bytes, ByteBuffer[] outputs);

  static native void predictorDestroy(long predictor);

  /** The address of a direct buffer's memory. */
  static native long address(ByteBuffer buffer);

  static byte[] utf8(String text) {
    return text.getBytes(UTF_8);
  }

  static String text(byte[] utf8) {
    return new String(utf8, UTF_8);
  }

  /** Called by the library to make the exception that it throws. */
  static CafetiereException error(int code, byte[] message) {
    CafetiereException.Code[] codes = CafetiereException.Code.values();
    boolean known = code > 0 && code < codes.length;
    return new CafetiereException(
        known ? codes[code] : CafetiereException.Code.INTERNAL, text(message));
  }

  /** Called by the library when a trainer has something to tell. */
  static void event(Trainer.Listener listener, byte[] json) {
    listener.event(text(json));
  }

  /** Called by the library with a checkpoint; the buffers live only during the call, or are null. */
  static void checkpoint(
      Trainer.Listener listener, byte[] json, ByteBuffer model, ByteBuffer state) {
    listener.checkpoint(text(json), view(model), view(state));
  }

  private static ByteBuffer view(ByteBuffer memory) {
    return memory == null ? null : memory.asReadOnlyBuffer().order(ByteOrder.LITTLE_ENDIAN);
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.net;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;

/**
 * The JNI functions of libcafetiere.so for nets and solvers, in the manner of {@code
 * cafetiere.core.Native}.
 */
final class NativeNet {
  private NativeNet() {}

  static native long create(byte[] options, NetListener listener);

  static native byte[] describe(long net);

  /** The name, an array for each layer, the blobs' names, the numbers of inputs and of outputs. */
  static native Object[] structure(long net);

  /** Sizes, data, diff, and the two addresses to give to release() when these are no more. */
  static native Object[] blob(long net, boolean param, int number);

  static native void release(long memory);

  static native void reshapeBlob(long net, int number, long[] sizes);

  static native void reshape(long net);

  static native float forward(long net, int from, int to);

  static native void backward(long net, int from, int to);

  static native void clearParamDiffs(long net);

  /** The buffers are direct and hold as many rows. */
  static native void setInput(
      long net, byte[] layer, ByteBuffer data, ByteBuffer labels, long rows);

  static native void copyFrom(long net, byte[] path);

  static native void shareWith(long net, long other);

  static native void save(long net, byte[] path, boolean hdf5);

  /** Of a net and of a solver alike. */
  static native void destroy(long handle);

  static native long solverCreate(byte[] options, NetListener listener);

  static native byte[] solverDescribe(long solver);

  static native double solverNumber(long solver, byte[] name);

  static native long solverNet(long solver, int test);

  static native void solverJoin(long solver, long group);

  static native void solverStep(long solver, int iterations);

  static native void solverSolve(long solver);

  static native void solverApplyUpdate(long solver);

  static native void solverSetBaseRate(long solver, float rate);

  static native void solverSnapshot(long solver);

  static native void solverRestore(long solver, byte[] path);

  static byte[] utf8(String text) {
    return text.getBytes(UTF_8);
  }

  static String text(Object utf8) {
    return new String((byte[]) utf8, UTF_8);
  }

  /** {"text": .., "phase": ..} and the like: text values by name. */
  static String options(String... namesAndValues) {
    StringBuilder json = new StringBuilder("{");
    for (int i = 0; i < namesAndValues.length; i += 2) {
      json.append(i == 0 ? "" : ", ");
      quote(json, namesAndValues[i]);
      quote(json.append(": "), namesAndValues[i + 1]);
    }
    return json.append("}").toString();
  }

  private static void quote(StringBuilder json, String text) {
    json.append('"');
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') {
        json.append('\\').append(c);
      } else if (c < ' ') {
        json.append(String.format("\\u%04x", (int) c));
      } else {
        json.append(c);
      }
    }
    json.append('"');
  }

  /** Called by the library. */
  static void message(NetListener listener, int level, byte[] text) {
    listener.message(level, text(text));
  }

  /** Called by the library. */
  static void pass(NetListener listener) {
    listener.pass();
  }

  /** Called by the library. */
  static void gradients(NetListener listener) {
    listener.gradients();
  }
}

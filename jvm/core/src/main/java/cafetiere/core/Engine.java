// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

/**
 * What the engine does without an object: tell its version, look at nets, render reports, write
 * snapshots and models in other forms.
 */
public final class Engine {
  private Engine() {}

  /** The engine's version, as "major.minor.patch". */
  public static String version() {
    NativeLibrary.load();
    return Native.text(Native.version());
  }

  /** What this process generates code for, as cft_instruction_set names it. */
  public static String instructionSet() {
    NativeLibrary.load();
    return Native.text(Native.instructionSet());
  }

  /** Lowers the instruction set, before this process has trained or predicted. */
  public static void useInstructionSet(String name) {
    NativeLibrary.load();
    Native.useInstructionSet(Native.utf8(name));
  }

  /** Checks a solver and net without running them; options and answer as in cft_describe. */
  public static String describe(String options) {
    NativeLibrary.load();
    return Native.text(Native.describe(Native.utf8(options)));
  }

  /** The layers and steps of a net and the memory that training takes, as text; see cft_explain. */
  public static String explain(String options) {
    NativeLibrary.load();
    return Native.text(Native.explain(Native.utf8(options)));
  }

  /**
   * The seconds that a step of some passes should take on this machine, by its limits; see
   * cft_step_seconds.
   */
  public static double stepSeconds(String options, int threads, int passes, int ranks) {
    NativeLibrary.load();
    return Native.stepSeconds(Native.utf8(options), threads, passes, ranks);
  }

  /** The modes of training together and what each allows, as JSON; see cft_sync_modes. */
  public static String syncModes() {
    NativeLibrary.load();
    return Native.text(Native.syncModes());
  }

  /**
   * The native stacks of the engine's threads in this process and of the one with the kernel's id
   * {@code thread}, 0 for none, for a person to read.
   */
  public static String threadStacks(int thread) {
    NativeLibrary.load();
    return Native.text(Native.threadStacks(thread));
  }

  /** Renders a run's events (one JSON object a line) and its result as an HTML page. */
  public static String report(String events, String result) {
    NativeLibrary.load();
    return Native.text(Native.report(Native.utf8(events), Native.utf8(result)));
  }

  /** A .caffemodel.h5, as Caffe writes with {@code snapshot_format: HDF5}, of a caffemodel's bytes. */
  public static byte[] weightsHdf5(byte[] model) {
    NativeLibrary.load();
    return Native.weightsHdf5(model);
  }

  /** A .solverstate.h5 of a solverstate's bytes; {@code learnedNet}: path of its weights. */
  public static byte[] stateHdf5(byte[] state, String learnedNet) {
    NativeLibrary.load();
    return Native.stateHdf5(state, Native.utf8(learnedNet));
  }

  /** A net and its weights, a caffemodel's bytes, as an ONNX model; options as in cft_onnx_export. */
  public static byte[] onnx(String options, byte[] model) {
    NativeLibrary.load();
    return Native.onnx(Native.utf8(options), model);
  }

  /** A net with its weights. */
  public record NetWithWeights(String net, byte[] weights) {}

  /** The net that an ONNX model is, as cft_onnx_import reads it, for one row where the file says no number. */
  public static NetWithWeights ofOnnx(byte[] file) {
    NativeLibrary.load();
    byte[][] parts = new byte[2][];
    Native.ofOnnx(file, parts);
    return new NetWithWeights(Native.text(parts[0]), parts[1]);
  }
}

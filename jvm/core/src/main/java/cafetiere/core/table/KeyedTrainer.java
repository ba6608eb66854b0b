// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.table;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.Handle;
import cafetiere.core.NativeLibrary;

/**
 * Trains small nets in great number, one after another on the calling thread, each on the rows of one key.
 * One thread at a time, except {@link #cancel}.
 */
public final class KeyedTrainer extends Handle {
  private static final int PARTS = 3;

  /**
   * What a key ends with.
   *
   * @param loss of the last step
   * @param net prototxt, in UTF-8
   * @param weights a caffemodel
   * @param classes of the label, a JSON array in UTF-8
   */
  public record Net(
      long rows, long steps, double loss, byte[] net, byte[] weights, byte[] classes) {}

  /** Has seen no row yet; {@code options} is the JSON that cft_keyed_create describes. */
  public KeyedTrainer(String options) {
    super(create(options), NativeTable::keyedDestroy);
  }

  /** Adds rows, encoded in native memory as for Rows.append, to those of the key under way. */
  public void add(long count, long address, long bytes) {
    run(keyed -> NativeTable.keyedAdd(keyed, count, address, bytes));
  }

  /** Ends the key: trains its net. What is thrown is the key's fault, and the next one may begin. */
  public Net train() {
    double[] figures = new double[PARTS];
    byte[][] parts = new byte[PARTS][];
    run(keyed -> NativeTable.keyedTrain(keyed, figures, parts));
    return new Net((long) figures[0], (long) figures[1], figures[2], parts[0], parts[1], parts[2]);
  }

  /** Ends the key without a net. */
  public void drop() {
    run(NativeTable::keyedDrop);
  }

  /** Any thread: the net under way and all later ones end with the code CANCELLED. */
  public void cancel() {
    runUnlessClosed(NativeTable::keyedCancel);
  }

  private static long create(String options) {
    NativeLibrary.load();
    return NativeTable.keyedCreate(options.getBytes(UTF_8));
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

import java.util.List;

/**
 * The end of a training in rounds that makes what the replicas agree on next out of what they
 * trained. Floats cross as bytes in the machine's order.
 */
public final class Rounds extends Handle {
  /** Makes the first weights; `options` is the JSON that cft_rounds_create describes. */
  public Rounds(String options) {
    super(create(options), Native::roundsDestroy);
  }

  /** Starts from these weights and, unless `state` is null, goes on from this solver state. */
  public void restore(byte[] model, byte[] state) {
    run(rounds -> Native.roundsRestore(rounds, model, state));
  }

  /** Where the training stands and how it is set, as cft_rounds_describe says. */
  public String describe() {
    return call(rounds -> Native.text(Native.roundsDescribe(rounds)));
  }

  /** What the next round begins with: `floats` of them, as described. */
  public byte[] shared(long floats) {
    return call(rounds -> Native.roundsShared(rounds, floats));
  }

  /** Ends a round with the tree sums of consecutive groups of shards, as cft_rounds_end says. */
  public void end(List<byte[]> sums) {
    run(rounds -> Native.roundsEnd(rounds, sums.toArray(new byte[0][])));
  }

  /** The weights as a caffemodel. */
  public byte[] model() {
    return call(Native::roundsModel);
  }

  /** Iteration and history as a solverstate; `histories` of all shards, or of none. */
  public byte[] state(List<byte[]> histories) {
    return call(rounds -> Native.roundsState(rounds, histories.toArray(new byte[0][])));
  }

  /** The sum of arrays of floats in the shard tree, as cft_tree_sum says. */
  public static byte[] treeSum(List<byte[]> arrays) {
    NativeLibrary.load();
    return Native.treeSum(arrays.toArray(new byte[0][]));
  }

  private static long create(String options) {
    NativeLibrary.load();
    return Native.roundsCreate(Native.utf8(options));
  }
}

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

  /** Takes a test of the shared floats, for early stopping, as cft_rounds_test says. */
  public void test(double value) {
    run(rounds -> Native.roundsTest(rounds, value));
  }

  /** Begins the posterior that is due, as cft_rounds_begin_posterior says. */
  public byte[] beginPosterior() {
    return call(Native::roundsBeginPosterior);
  }

  /** Ends it with the tree sums of consecutive groups of shards, like a round. */
  public void endPosterior(List<byte[]> sums) {
    run(rounds -> Native.roundsEndPosterior(rounds, sums.toArray(new byte[0][])));
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

  /**
   * One shard of a training in rounds: it trains on its own from what all replicas agree on. Floats
   * cross as bytes in the machine's order.
   */
  public static final class Replica extends Handle {
    /** Makes a replica; `options` is the JSON that cft_replica_create describes. */
    public Replica(String options) {
      super(create(options), Native::replicaDestroy);
    }

    /** Hands over the shard's rows, in the order of their keys, out of `totalRows` of all shards. */
    public void feed(Rows rows, long totalRows) {
      run(replica -> rows.run(table -> Native.replicaRows(replica, table, totalRows)));
    }

    /** Hands over rows to test on, which may be none. */
    public void validation(Rows rows) {
      run(replica -> rows.run(table -> Native.replicaValidation(replica, table)));
    }

    /** Takes the shard's history out of a solverstate. */
    public void restore(byte[] state) {
      run(replica -> Native.replicaRestore(replica, state));
    }

    /**
     * Trains `steps` iterations from `iter` on, from the `shared` floats, which become this replica's.
     * Returns the report that cft_replica_round describes. After an exception, close the replica.
     */
    public String round(long iter, long steps, byte[] shared) {
      return call(replica -> Native.text(Native.replicaRound(replica, iter, steps, shared)));
    }

    /** Tests `shared` weights on the validation rows; the answer is that of cft_replica_test. */
    public String test(byte[] shared) {
      return call(replica -> Native.text(Native.replicaTest(replica, shared)));
    }

    /** The shard's sums for a posterior that {@link Rounds#beginPosterior} began. */
    public byte[] posterior(byte[] begun) {
      return call(replica -> Native.replicaPosterior(replica, begun));
    }

    /** The shard's history, for {@link Rounds#state}. */
    public byte[] history() {
      return call(Native::replicaHistory);
    }

    /** The iterations done, those of the round under way included. Any thread; after close 0. */
    public long step() {
      long[] step = {0};
      runUnlessClosed(replica -> step[0] = Native.replicaStep(replica));
      return step[0];
    }

    /** Stops the round under way at its next iteration. Any thread; safe after close. */
    public void cancel() {
      runUnlessClosed(Native::replicaCancel);
    }

    private static long create(String options) {
      NativeLibrary.load();
      return Native.replicaCreate(Native.utf8(options));
    }
  }
}

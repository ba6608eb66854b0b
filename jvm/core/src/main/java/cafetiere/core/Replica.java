// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

/**
 * One shard of a training in rounds: it trains on its own from what all replicas agree on. Floats
 * cross as bytes in the machine's order.
 */
public final class Replica extends Handle {
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

  /** The shard's history, for {@link Rounds#state}. */
  public byte[] history() {
    return call(Native::replicaHistory);
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

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import java.io.Serializable;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a plan leaves to be said in steps once its rows have been read, so that nobody has to count
 * them before.
 *
 * @param count passes over the table to train for, 0 where the plan has a number of steps
 * @param areTested whether the validation rows are to be tested on once in each pass
 * @param batch rows of a shard that the net takes at a time
 * @param iterSize batches of a shard that make a step
 */
public record Epochs(int count, boolean areTested, long batch, long iterSize) implements Serializable {
  public static final Epochs NONE = new Epochs(0, false, 1, 1);

  private static final Logger LOG = LoggerFactory.getLogger(Epochs.class);

  /** Of {@code net}; with {@code isValidated}, tests each epoch unless its solver says when. */
  public static Epochs of(NetDescription net, int count, boolean isValidated) {
    boolean areTested = isValidated && net.testInterval() == 0;
    if (areTested) {
      LOG.info("The solver has no test_interval: the validation rows are tested on once an epoch");
    }
    return new Epochs(count, areTested, net.batchSize(), net.iterSize());
  }

  public boolean needRows() {
    return count > 0 || areTested;
  }

  /** Steps that make {@code passes} over {@code rows} rows when they are shuffled to the shards. */
  long steps(int passes, long rows, int shards) {
    return ceilDiv(passes * ceilDiv(ceilDiv(rows, shards), batch), iterSize);
  }

  /** The rows of a table, in a pass of its own, for an engine that must know them before. */
  public static long rows(Dataset<Row> table) {
    String advice = table.storageLevel().useMemory() || table.storageLevel().useDisk() ? ""
        : ", in a pass of its own: cache it if it is dear to make, or set maxIter and the"
            + " solver's test_interval instead";
    LOG.info("Counting the rows of the table for the length of an epoch{}", advice);
    return table.count();
  }

  private static long ceilDiv(long a, long b) {
    return (a + b - 1) / b;
  }
}

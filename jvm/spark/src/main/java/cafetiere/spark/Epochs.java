// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** How many steps make an epoch of a table. Its rows are counted once, when that is asked first. */
final class Epochs {
  private static final Logger LOG = LoggerFactory.getLogger(Epochs.class);

  private final NetDescription net;
  private final Dataset<Row> table;
  private final int shards;
  private long rows = -1;

  Epochs(NetDescription net, Dataset<Row> table, int shards) {
    this.net = net;
    this.table = table;
    this.shards = shards;
  }

  /** The steps of so many epochs. */
  long steps(int epochs) {
    return net.steps(epochs, rows(), shards);
  }

  /** The solver with a test of the validation rows each epoch, unless it says when to test. */
  String testedEachEpoch(String solver) {
    if (net.testInterval() > 0) return solver;
    long interval = Math.max(1, steps(1));
    LOG.info("The solver has no test_interval: the validation rows are tested every {} steps, once"
        + " an epoch", interval);
    return NetDescription.withField(solver, "test_interval", interval);
  }

  private long rows() {
    if (rows < 0) {
      String advice = table.storageLevel().useMemory() || table.storageLevel().useDisk() ? ""
          : ", in a pass of its own: cache it if it is dear to make, or set maxIter and the"
              + " solver's test_interval instead";
      LOG.info("Counting the rows of the table for the length of an epoch{}", advice);
      rows = table.count();
    }
    return rows;
  }
}

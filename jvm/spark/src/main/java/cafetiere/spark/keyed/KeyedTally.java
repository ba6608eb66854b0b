// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.keyed;

import java.io.Serializable;
import org.apache.spark.SparkContext;
import org.apache.spark.util.DoubleAccumulator;
import org.apache.spark.util.LongAccumulator;

/**
 * What tasks add up for the driver, which hears of it as they end. A task that is repeated counts twice, so
 * it is for progress and times alone.
 *
 * @param keys that have ended, with a net or without
 * @param tasks that have ended
 * @param seconds in which nets were trained
 */
record KeyedTally(LongAccumulator keys, LongAccumulator tasks, DoubleAccumulator seconds)
    implements Serializable {
  static KeyedTally of(SparkContext sc) {
    return new KeyedTally(sc.longAccumulator(), sc.longAccumulator(), sc.doubleAccumulator());
  }
}

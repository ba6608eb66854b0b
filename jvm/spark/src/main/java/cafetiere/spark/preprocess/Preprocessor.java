// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preprocess;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;

/**
 * What is done to each row before the net sees it, to train and to predict alike. A class with a
 * constructor without arguments, which the param {@code preprocessor} names: a model is saved with the
 * name. Each task makes one, for one thread. What becomes of a row may depend on the row alone, since
 * tasks run again; a random choice is one made by its id.
 *
 * @since 0.2.0
 */
public interface Preprocessor {
  /** The columns of the rows that it gives, for rows of these columns. */
  StructType schema(StructType given);

  /** What becomes of a row; the columns that feed the net, and idCol, are those of its result. */
  Row apply(Row row);

  /** The same of a row to train on, if that is to differ. */
  default Row applyToTrain(Row row) {
    return apply(row);
  }
}

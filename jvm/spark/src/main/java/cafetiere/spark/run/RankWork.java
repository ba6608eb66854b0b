// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import cafetiere.spark.util.Unchecked;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.collection.Iterator;
import scala.collection.Iterator$;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/**
 * What runs in a task: one or two lists of rows in, those to train on and those to test on, and one
 * outcome as text out.
 */
public abstract class RankWork
    extends AbstractFunction1<Iterator<java.util.Iterator<InternalRow>>, Iterator<String>>
    implements Serializable {
  private static final long serialVersionUID = 1L;
  public static final ClassTag<String> STRING = ClassTag$.MODULE$.apply(String.class);

  /** {@code validation} is null where there is nothing to test on. */
  public abstract TaskOutcome run(
      java.util.Iterator<InternalRow> train, java.util.Iterator<InternalRow> validation)
      throws Exception;

  @Override
  public final Iterator<String> apply(Iterator<java.util.Iterator<InternalRow>> parts) {
    try {
      java.util.Iterator<InternalRow> train = parts.next();
      return Iterator$.MODULE$.single(run(train, parts.hasNext() ? parts.next() : null).toJson());
    } catch (Exception e) {
      throw Unchecked.rethrow(e);
    }
  }
}

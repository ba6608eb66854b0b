// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import cafetiere.spark.util.JavaVersion;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Gives a session the function {@code cafetiere_predict}, as {@code predict} of {@link Functions}. Spark
 * finds it in the jar; PySpark 3.5, which does not look, takes it as the conf
 * {@code spark.sql.extensions} = {@code cafetiere.spark.sql.Extensions}.
 */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit>
    implements SparkSessionExtensionsProvider {
  /** Made by Spark. */
  public Extensions() {}

  @Override
  public BoxedUnit apply(SparkSessionExtensions session) {
    if (JavaVersion.isNewEnough()) NamedFunction.inject(session);
    return BoxedUnit.UNIT;
  }
}
